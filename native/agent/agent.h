// What the agent does once the machine's root is in place: runs commands for the host until the channel
// closes.
#pragma once

#include "channel.h"

void ServeCommands(Channel* channel);
