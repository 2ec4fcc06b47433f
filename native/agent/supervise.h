#pragma once

// Runs a machine's process so that it cannot outlive its owner, on the host: `supervise GRACE-MS PROGRAM
// ARGS…`.
//
// Standard input is the owner's lifeline. When it closes, the owner is gone: the machine has the grace to end
// by itself. A byte on it ends the machine at once. The whole process group is killed, since the processes
// that a User-Mode Linux kernel traces live on without it. Exits as the program did.
int Supervise(int argc, char** argv);
