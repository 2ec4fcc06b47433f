/** Real Soft-RoCE for test suites: start a machine with two rxe devices, run commands in it. */
export type { Command, Exit, RunOptions, RunResult, SpawnOptions } from './command.js';
export { RxeError, rxeExitStatuses, type RxeErrorCode } from './errors.js';
export type { Machine, MachineFacts } from './machine.js';
export type { Accelerator, EngineName, MachineOptions } from './options.js';
export { startMachine } from './start.js';
