#pragma once

// What process 1 of a machine does: sets it up, serves commands until the host is gone, powers it off.
[[noreturn]] void RunMachine();
