/**
 * Why a command did not run on Soft-RoCE. Each code has an exit status of its own: a command's status is passed on
 * unchanged, so the runner's own lie where few commands have theirs: 124 to 127 as `timeout` and `env` use them, and
 * from 200 up (128 + n is a command ended by signal n).
 */
export const rxeExitStatuses = {
  ERR_RXE_TIMEOUT: [124, 'the command did not end within --timeout'],
  ERR_RXE_USAGE: [125, 'a bad option or option value'],
  ERR_RXE_INTERNAL: [125, 'the runner itself failed'],
  ERR_RXE_NOT_EXECUTABLE: [126, 'the command exists and cannot be executed'],
  ERR_RXE_COMMAND_NOT_FOUND: [127, 'the command does not exist'],
  ERR_RXE_NO_ENGINE: [200, 'no engine works on this machine'],
  ERR_RXE_NO_QEMU: [201, 'QEMU is not installed'],
  ERR_RXE_NO_KERNEL: [202, 'no kernel for the machine'],
  ERR_RXE_NO_RXE: [203, 'the kernel has no rdma_rxe'],
  ERR_RXE_NO_PTRACE: [204, 'uml needs ptrace, and it is forbidden here'],
  ERR_RXE_NO_MEMORY: [205, 'not enough memory for the machine'],
  ERR_RXE_NO_SPACE: [206, 'no room, or no right to execute, in the folder for temporary files'],
  ERR_RXE_NO_AGENT: [207, 'the program that runs inside the machine is not built'],
  ERR_RXE_NO_TOOLS: [208, 'a tool of the host is missing (ip, rdma)'],
  ERR_RXE_BOOT: [209, 'the machine did not come up'],
  ERR_RXE_MACHINE_DIED: [210, 'the machine ended before the command did'],
  ERR_RXE_NOT_RUNNING: [211, 'no machine is kept up: see `rxe start`'],
  ERR_RXE_OTHER_MACHINE: [212, 'a machine with other settings is kept up'],
  ERR_RXE_NO_FOLDER: [213, 'the current directory, or --out, is not there'],
  ERR_RXE_DOWNLOAD: [214, 'a kernel package could not be fetched or unpacked'],
  ERR_RXE_NO_ACCEL: [215, 'KVM was asked for and does not work'],
  ERR_RXE_NO_HOST: [216, 'the host engine was asked for and cannot work here'],
  ERR_RXE_BUILD: [217, 'the UML kernel could not be built'],
} as const satisfies Record<string, readonly [status: number, meaning: string]>;

export type RxeErrorCode = keyof typeof rxeExitStatuses;

/** What went wrong in the runner, with a message that says what to do and the status that `node-rdma rxe` exits with. */
export class RxeError extends Error {
  override readonly name = 'RxeError';
  readonly code: RxeErrorCode;

  constructor(code: RxeErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }

  /** The exit status of `node-rdma rxe` for this error. */
  get exitStatus(): number {
    return rxeExitStatuses[this.code][0];
  }
}
