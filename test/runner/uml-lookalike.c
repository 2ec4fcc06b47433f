// Answers as a User-Mode Linux kernel does when it is asked what it is, and cannot start: for hosts that have no such kernel, and
// for failures that a kernel at hand does not have. CONFIG is its configuration, SAYS what it says instead of starting.
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--version") == 0) return puts("6.1.0-lookalike"), 0;
    if (strcmp(argv[i], "--showconfig") == 0) return puts("CONFIG_UML=y\n" CONFIG), 0;
  }
  puts(SAYS);
  return 1;
}
