// The machine's file system: the host's files, read-only, below a layer of memory that takes all writes.
#pragma once

#include <map>
#include <string>

// What the host asks for: the `key=value` strings of SETUP.
using Settings = std::map<std::string, std::string>;

// What the agent itself needs before the host can be asked: /proc and /dev.
void MountEarly();
// Loads the modules that lie in the initial file system, in the order of their names. False, and what went
// wrong, at the first that the kernel refuses.
bool LoadModules(std::string* error);
// Makes the machine's root and changes to it. False and what went wrong, else.
bool EnterRoot(const Settings& settings, std::string* error);
// Writes what was written to the --out folder back to the host.
void SyncSharedFolders();
