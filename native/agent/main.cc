// The one program that `node-rdma rxe` needs besides the kernel. As process 1 it runs a machine; on the host
// it keeps watch over one.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "machine.h"
#include "supervise.h"

int main(int argc, char** argv) {
  if (getpid() == 1 && getenv("NODE_RDMA_RXE_CHANNEL") != nullptr) RunMachine();
  if (argc >= 2 && strcmp(argv[1], "supervise") == 0) return Supervise(argc - 2, argv + 2);
  fputs("usage: rxe_agent supervise GRACE-MS PROGRAM [ARGUMENT...]\n", stderr);
  return 125;
}
