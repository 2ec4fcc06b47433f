// For what changes a process: rights that it gives up, limits, what the system shows it. The kernel knows a file that was opened
// before a change of rights, or by a thread with others, no more as the process's own: later tests would have EACCES from rdma_cm.
import { spawnSync } from 'node:child_process';
import { pathToFileURL } from 'node:url';
import { expect } from 'vitest';

/**
 * Runs the body of a module, where `rdma` is the library, in a process of its own; what it passes to `tell()` is returned.
 * `through` is a command that runs the command after it.
 */
export function inOwnProcess(body: string, through: readonly string[] = []): unknown {
  const program = `import * as rdma from '${pathToFileURL('dist/index.js').href}';
    const tell = (value) => console.log(JSON.stringify(value));
    ${body}`;
  const command = [...through, process.execPath, '--input-type=module', '-e', program];
  const { stdout, stderr, status } = spawnSync(command[0]!, command.slice(1), {
    encoding: 'utf8',
    timeout: 120_000,
  });
  expect(status, stderr).toBe(0);
  return JSON.parse(stdout) as unknown;
}
