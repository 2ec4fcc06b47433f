// Hosts that do not let a machine be: each is told by what it lacks, with a status of its own.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findUmlKernel } from '../../lib/rxe/kernel/uml.js';
import { engines } from './engines.js';

const main = join(import.meta.dirname, '../../dist/cli/main.js');
const umlKernel = (await findUmlKernel())?.path;

let folder: string;
beforeAll(() => (folder = mkdtempSync(join(tmpdir(), 'surroundings-'))));
afterAll(() => rmSync(folder, { recursive: true }));

function compile(name: string, ...definitions: [macro: string, text: string][]): string {
  const program = join(folder, name);
  const options = definitions.map(([macro, text]) => `-D${macro}=${JSON.stringify(text)}`);
  execFileSync('cc', ['-o', program, ...options, join(import.meta.dirname, `${name}.c`)]);
  return program;
}

/** `rxe run` below a command that changes its surroundings. */
function rxe(below: string[], args: string[], kernel = '') {
  const [command, ...rest] = [...below, process.execPath, main, 'rxe', 'run', ...args];
  const env = { ...process.env, NODE_RDMA_RXE_KERNEL: kernel };
  return spawnSync(command!, rest, { env, encoding: 'utf8' });
}

/** A mount namespace in which a script has made changes. */
const mounted = (script: string) => ['unshare', '--mount', 'sh', '-c', `set -e\n${script}\nexec "$@"`, 'sh'];
const mayMount = spawnSync('unshare', ['--mount', 'mount', '-t', 'tmpfs', 'none', '/mnt']).status === 0;

describe('a kernel for uml', () => {
  it('without rdma_rxe is refused', () => {
    const kernel = compile('uml-lookalike', ['CONFIG', '# CONFIG_RDMA_RXE is not set'], ['SAYS', '']);
    const { status, stderr } = rxe([], ['--engine', 'uml', '--', 'true'], kernel);
    expect(stderr).toContain('without CONFIG_RDMA_RXE=y');
    expect(status).toBe(203);
  });

  it('that ends before it is up is told of with what it said', () => {
    const kernel = compile('uml-lookalike', ['CONFIG', 'CONFIG_RDMA_RXE=y'], ['SAYS', 'Kernel panic: dizzy']);
    const { status, stderr } = rxe([], ['--engine', 'uml', '--', 'true'], kernel);
    expect(stderr).toMatch(/ended \(status 1\) before it was up\nKernel panic: dizzy/);
    expect(status).toBe(209);
  });
});

describe('where ptrace is forbidden', () => {
  /** The kernel at hand under a filter of system calls; otherwise the words of one. */
  function forbidden(): { below: string[]; kernel: string } {
    if (umlKernel !== undefined) return { below: [compile('without-ptrace')], kernel: umlKernel };
    const says: [string, string] = ['SAYS', 'ptrace: Operation not permitted'];
    return { below: [], kernel: compile('uml-lookalike', ['CONFIG', 'CONFIG_RDMA_RXE=y'], says) };
  }

  it('uml says so', () => {
    const { below, kernel } = forbidden();
    const { status, stderr } = rxe(below, ['--engine', 'uml', '--', 'true'], kernel);
    expect(stderr).toContain('the uml engine needs ptrace, which is forbidden here');
    expect(status).toBe(204);
  });

  it.runIf(engines.includes('qemu'))('auto goes on to the next engine', () => {
    const { below, kernel } = forbidden();
    const command = ['sh', '-c', 'echo "$NODE_RDMA_RXE_ENGINE"'];
    const { status, stdout, stderr } = rxe(below, ['--', ...command], kernel);
    expect({ status, stdout }, stderr).toEqual({ status: 0, stdout: 'qemu\n' });
  });
});

describe.runIf(mayMount)('where the folders for temporary files', () => {
  const kernel = () => umlKernel ?? compile('uml-lookalike', ['CONFIG', 'CONFIG_RDMA_RXE=y'], ['SAYS', '']);

  it.each([
    ['are mounted noexec', 'noexec', '/dev/shm is mounted noexec; /tmp is mounted noexec'],
    ['are full', 'size=1m', '/dev/shm has 1 MiB free of the 2048 MiB needed; /tmp has 1 MiB free'],
  ])('%s, uml says so', (_, option, message) => {
    // The lookalike lies in one of them.
    const keep = `mkdir -p /mnt; mount --bind ${folder} /mnt`;
    const hide = ['/dev/shm', '/tmp'].map((place) => `mount -t tmpfs -o ${option} none ${place}`).join('\n');
    const path = umlKernel ?? kernel().replace(folder, '/mnt');
    const env = 'export TMPDIR=/tmp';
    const { status, stderr } = rxe(
      mounted([keep, hide, env].join('\n')),
      ['--engine', 'uml', '--', 'true'],
      path,
    );
    expect(stderr).toContain(message);
    expect(status).toBe(206);
  });
});

it.runIf(mayMount && engines.length > 0)('where the host lacks a tool, it says what to install', () => {
  const { status, stderr } = rxe(
    mounted('mount --bind /dev/null "$(readlink -f "$(command -v rdma)")"'),
    ['--engine', engines[0]!, '--', 'true'],
    umlKernel,
  );
  expect(stderr).toContain('rdma is not installed; install it: apt-get install iproute2');
  expect(status).toBe(208);
});
