// @ts-check
// The Debian packages that the project needs, by what needs them. One list, used by the set-up and named in its messages.

/**
 * `command` (in PATH) or `file` tells that the need is met without the package, as on another distribution.
 *
 * @typedef {{ name: string, why: string, command?: string, file?: string }} DebianPackage
 * @typedef {'build' | 'run' | 'machine' | 'test' | 'bench' | 'check'} PackageGroup
 */

/** @type {Record<PackageGroup, DebianPackage[]>} */
export const debianPackages = {
  build: [
    { name: 'python3', why: 'node-gyp is a Python program', command: 'python3' },
    { name: 'make', why: 'node-gyp writes a Makefile', command: 'make' },
    { name: 'g++', why: 'compiles the addon (C++20)', command: 'g++' },
    { name: 'libibverbs-dev', why: 'headers of the verbs', file: '/usr/include/infiniband/verbs.h' },
    { name: 'librdmacm-dev', why: 'headers of the connection manager', file: '/usr/include/rdma/rdma_cma.h' },
  ],
  run: [
    {
      name: 'ibverbs-providers',
      why: 'the user-space drivers: rxe, mlx5, …',
      file: '/etc/libibverbs.d/rxe.driver',
    },
    { name: 'iproute2', why: 'makes the wire and its RDMA devices (ip, rdma, tc)', command: 'rdma' },
  ],
  machine: [
    {
      name: 'qemu-system-x86',
      why: 'the machine that runs a kernel with rxe',
      command: 'qemu-system-x86_64',
    },
    { name: 'kmod', why: "resolves that kernel's modules", command: 'depmod' },
    { name: 'xz-utils', why: "unpacks that kernel's modules", command: 'xz' },
  ],
  test: [
    { name: 'ibverbs-utils', why: 'peers: ibv_devinfo, ibv_rc_pingpong', command: 'ibv_devinfo' },
    { name: 'rdmacm-utils', why: 'peers: rping, ucmatose', command: 'rping' },
    { name: 'perftest', why: 'peers: ib_send_bw, ib_write_lat, …', command: 'ib_send_bw' },
    { name: 'tcpdump', why: 'shows what really goes over the wire', command: 'tcpdump' },
    { name: 'chromium', why: 'reads the pages that perf --report writes', command: 'chromium' },
  ],
  bench: [
    {
      name: 'python3-pyverbs',
      why: 'what we are compared with',
      file: '/usr/lib/python3/dist-packages/pyverbs/__init__.py',
    },
    { name: 'valgrind', why: 'counts instructions (callgrind)', command: 'valgrind' },
  ],
  check: [
    { name: 'cmake', why: 'writes compile_commands.json', command: 'cmake' },
    { name: 'clang-format', why: 'the format of the C++', command: 'clang-format' },
    { name: 'clang-tidy', why: 'lints the C++', command: 'clang-tidy' },
  ],
};
