/** Runs a program of the system to its end and collects what it says. */
import { spawn } from 'node:child_process';

import { RxeError } from './errors.js';

export interface ToolResult {
  status: number;
  stdout: string;
  stderr: string;
}

export interface ToolOptions {
  cwd?: string;
  env?: NodeJS.ProcessEnv;
  /** Each line of standard output as it comes; it is then not collected. */
  onLine?: (line: string) => void;
  /** Ends the program, and is then the reason of the rejection. */
  signal?: AbortSignal;
  /** Milliseconds until the program is killed. */
  timeout?: number;
  /** The Debian package that brings the program, for the error when it is missing. */
  package?: string;
}

/** The result whatever the status was; throws only where the program could not run or was killed. */
export function runTool(
  command: string,
  args: readonly string[],
  options: ToolOptions = {},
): Promise<ToolResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd: options.cwd,
      signal: options.signal,
      timeout: options.timeout,
      // Make ends its compilers on SIGTERM; a program past its time may not even listen.
      killSignal: options.timeout ? 'SIGKILL' : 'SIGTERM',
      // Messages are matched by their text: they must be the untranslated ones.
      env: { ...(options.env ?? process.env), LC_ALL: 'C' },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
      if (!options.onLine) return;
      const lines = stdout.split('\n');
      stdout = lines.pop() ?? '';
      lines.forEach(options.onLine);
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    child.once('error', (error: NodeJS.ErrnoException) => {
      if (error.name === 'AbortError') return;
      const remedy = error.code === 'ENOENT' && options.package;
      reject(
        new RxeError(
          remedy ? 'ERR_RXE_NO_TOOLS' : 'ERR_RXE_INTERNAL',
          remedy
            ? `${command} is not installed; install it: apt-get install ${remedy}`
            : `cannot run ${command}: ${error.message}`,
          { cause: error },
        ),
      );
    });
    child.once('close', (status, signal) => {
      if (options.signal?.aborted) reject(options.signal.reason as Error);
      else if (status !== null) resolve({ status, stdout, stderr });
      else reject(new RxeError('ERR_RXE_INTERNAL', `${command} was killed by ${signal}`));
    });
  });
}
