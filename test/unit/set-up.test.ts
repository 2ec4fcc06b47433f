import { spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { debianPackages } from '../../scripts/debian-packages.js';

const scripts = fileURLToPath(new URL('../../scripts/', import.meta.url));
const folder = mkdtempSync(path.join(tmpdir(), 'node-rdma-set-up-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs a piece of JavaScript beside the scripts, for a user, with only the programs in `folder` at hand. */
function evaluate(script: string, { user = 0 } = {}) {
  const pretend = `data:text/javascript,process.getuid = () => ${user}`;
  const child = spawn(process.execPath, ['--import', pretend, '--input-type=module', '-e', script], {
    cwd: scripts,
    env: { PATH: folder, HOME: folder },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  return new Promise<{ status: number | null; output: string }>((resolve) =>
    child.on('close', (status) => resolve({ status, output })),
  );
}

function program(name: string, script: string) {
  writeFileSync(path.join(folder, name), `#!/bin/sh\n${script}\n`);
  chmodSync(path.join(folder, name), 0o755);
}

describe('Debian packages', () => {
  const calls = path.join(folder, 'calls');
  const install = `
    const { installDebianPackages } = await import('${scripts}debian.js');
    const { runMain } = await import('${scripts}progress.js');
    await runMain(() => installDebianPackages(['check']));
  `;
  const installs = [
    'install',
    '--yes',
    '--no-install-recommends',
    ...debianPackages.check.map(({ name }) => name),
  ];

  beforeEach(() => {
    rmSync(calls, { force: true });
    program('dpkg-query', 'exit 1');
    program('sudo', 'exit 1');
    program('env', 'exec /usr/bin/env "$@"');
    program('apt-get', `echo "$@" >> '${calls}'`);
  });

  test('that are missing are installed, with nothing that they only recommend', async () => {
    const { status, output } = await evaluate(install);
    expect(status, output).toBe(0);
    expect(readFileSync(calls, 'utf8')).toContain(`-q ${installs.join(' ')}\n`);
  });

  test('are installed by sudo where it asks for no password', async () => {
    program('sudo', `shift; echo sudo >> '${calls}'; "$@"`);
    const { status, output } = await evaluate(install, { user: 1000 });
    expect(status, output).toBe(0);
    expect(readFileSync(calls, 'utf8')).toContain(`sudo\n-q ${installs.join(' ')}\n`);
  });

  test('are tried again with new lists when the archive has moved on', async () => {
    program(
      'apt-get',
      `echo "$@" >> '${calls}'; case "$*" in *install*) [ -e '${calls}.updated' ];; *update*) touch '${calls}.updated';; esac`,
    );
    program('touch', 'exec /usr/bin/touch "$@"');
    const { status, output } = await evaluate(install);
    expect(status, output).toBe(0);
    expect(readFileSync(calls, 'utf8').trimEnd().split('\n').at(-1)).toBe(`-q ${installs.join(' ')}`);
  });

  test('that cannot be installed are named with their use and the exact command', async () => {
    const { status, output } = await evaluate(install, { user: 1000 });
    expect(status).toBe(1);
    const width = Math.max(...debianPackages.check.map(({ name }) => name.length));
    for (const { name, why } of debianPackages.check)
      expect(output).toContain(`  ${name.padEnd(width)}  ${why}
`);
    expect(output).toContain(
      'sudo apt-get update && sudo apt-get install --no-install-recommends cmake clang-format clang-tidy\n',
    );
    expect(output).not.toMatch(/^ +at /m); // no stack
  });

  test('are not wanted where their programs are at hand from elsewhere', async () => {
    for (const name of ['cmake', 'clang-format', 'clang-tidy']) program(name, '');
    const { status, output } = await evaluate(install, { user: 1000 });
    expect({ status, output }).toEqual({ status: 0, output: '' });
  });
});

test('of two set-ups in one folder the second waits for the first, even for one that is killed', async () => {
  symlinkSync('/usr/bin/flock', path.join(folder, 'flock'));
  const log = path.join(folder, 'log');
  const hold = (name: string, work: string) => `
    import { appendFileSync } from 'node:fs';
    const { withLock } = await import('${scripts}lock.js');
    await withLock('${folder}', async () => {
      appendFileSync('${log}', '${name} in\\n');
      ${work}
      appendFileSync('${log}', '${name} out\\n');
    });`;
  const wait = 'await new Promise((resolve) => setTimeout(resolve, 300));';
  const outcomes = await Promise.all([evaluate(hold('a', wait)), evaluate(hold('b', wait))]);
  expect(outcomes.map(({ status }) => status)).toEqual([0, 0]);
  expect(outcomes.map(({ output }) => output).join('')).toContain('waiting for another set-up');
  const [first, ...rest] = readFileSync(log, 'utf8').trimEnd().split('\n');
  const [one, other] = first === 'a in' ? ['a', 'b'] : ['b', 'a'];
  expect(rest).toEqual([`${one} out`, `${other} in`, `${other} out`]);

  await evaluate(hold('killed', `process.kill(process.pid, 'SIGKILL');`));
  const { status, output } = await evaluate(hold('next', ''));
  expect({ status, output }).toEqual({ status: 0, output: '' });
});
