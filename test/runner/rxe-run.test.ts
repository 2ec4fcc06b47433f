// A machine for each command: its beginning, its end, and what can go wrong with either.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync, chmodSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { findProgram } from '../../lib/rxe/search.js';
import { processesOfMachine, rxe, startRxe, waitUntil } from './cli.js';
import { engines } from './engines.js';

const hasQemu = (await findProgram('qemu-system-x86_64')) !== undefined;
const folder = mkdtempSync(join(tmpdir(), 'rxe-run-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe.each(engines)('a machine of the %s engine', (engine) => {
  const run = ['run', '--engine', engine, '--memory', '512'];
  let killed: number;

  it('leaves nothing behind when its caller is killed', async () => {
    const running = startRxe([...run, '--', 'sh', '-c', 'echo ready; sleep 600']);
    const pid = running.child.pid!;
    killed = pid;
    await new Promise((resolve) => running.child.stdout!.once('data', resolve));
    expect(processesOfMachine(pid)).not.toHaveLength(0);
    running.child.kill('SIGKILL');
    await waitUntil('no process of the machine is left', () => processesOfMachine(pid).length === 0);
  });

  it('is ended when its kernel does not answer any more', async () => {
    const running = startRxe([
      ...run,
      '--timeout',
      '2',
      '--out',
      folder,
      '--',
      'sh',
      '-c',
      'echo ready; sleep 600',
    ]);
    const pid = running.child.pid!;
    await new Promise((resolve) => running.child.stdout!.once('data', resolve));
    // Its supervisor stays as it is: what hangs is the machine.
    const machine = processesOfMachine(pid).filter(
      (one) => !readFileSync(`/proc/${one}/cmdline`, 'latin1').includes('supervise'),
    );
    expect(machine).not.toHaveLength(0);
    for (const one of machine) process.kill(one, 'SIGSTOP');
    const { status, stderr } = await running.outcome;
    expect(stderr.toString()).toContain('the command did not end within 2 s');
    expect(status).toBe(124);
    expect(processesOfMachine(pid)).toEqual([]);
  });

  it('sweeps the folder of a killed one, and tells when the kernel dies', async () => {
    const outcome = await rxe([...run, '--', 'sh', '-c', 'echo c > /proc/sysrq-trigger; sleep 60']);
    expect(outcome.stderr.toString()).toMatch(/the machine ended/);
    expect(outcome.status).toBe(210);
    expect(foldersOfMachine(killed)).toEqual([]);
  });
});

describe('what cannot be done is said at once', () => {
  const refused = async (args: string[], env: NodeJS.ProcessEnv = {}): Promise<[number | null, string]> => {
    const { status, stderr } = await rxe(args, { env: { ...process.env, ...env } });
    return [status, stderr.toString()];
  };

  it.each([
    [['run', '--engine', 'vmware', '--', 'true'], 'Allowed choices are auto, host, uml, qemu'],
    [['run', '--memory', '1G', '--', 'true'], 'must be a whole number'],
    [['run', '--memory', '16', '--', 'true'], 'from 256 to'],
    [['run', '--mtu', '100', '--', 'true'], 'from 1280 to 65535'],
    [['run', '--timeout', '-1', '--', 'true'], 'a number of seconds'],
    [['run', '--engine', 'uml', '--cpus', '2', '--', 'true'], 'one CPU'],
    [['run', '--no-such-option', '--', 'true'], 'unknown option'],
    [['run'], "missing required argument 'command'"],
  ])('%j', async (args, message) => {
    const [status, said] = await refused(args);
    expect(said).toContain(message);
    expect(status).toBe(125);
  });

  it('no QEMU', async () => {
    const [status, said] = await refused(['run', '--engine', 'qemu', '--', 'true'], { PATH: folder });
    expect(said).toContain('apt-get install qemu-system-x86');
    expect(status).toBe(201);
  });

  it('no kernel for uml', async () => {
    const [status, said] = await refused(['run', '--engine', 'uml', '--kernel', '/no/such', '--', 'true']);
    expect(said).toContain('/no/such does not exist');
    expect(status).toBe(202);
  });

  it('a kernel in the environment that is none, though another engine would work', async () => {
    const [status, said] = await refused(['run', '--', 'true'], { NODE_RDMA_RXE_KERNEL: '/no/such' });
    expect(said).toContain('NODE_RDMA_RXE_KERNEL: /no/such does not exist');
    expect(status).toBe(202);
  });

  it('a file that is no User-Mode Linux kernel', async () => {
    const kernel = join(folder, 'linux');
    writeFileSync(kernel, '');
    const [status, said] = await refused(['run', '--engine', 'uml', '--kernel', kernel, '--', 'true']);
    expect(said).toContain('is not executable');
    expect(status).toBe(202);
    chmodSync(kernel, 0o755);
    expect((await refused(['run', '--engine', 'uml', '--kernel', kernel, '--', 'true']))[0]).toBe(202);
  });

  it.skipIf(!hasQemu)('no kernel for qemu', async () => {
    const [status] = await refused(['run', '--engine', 'qemu', '--kernel', '/no/such.deb', '--', 'true']);
    expect(status).toBe(202);
  });

  it('no folder to bring back', async () => {
    const [status, said] = await refused(['run', '--out', join(folder, 'absent'), '--', 'true']);
    expect(said).toContain('is not there');
    expect(status).toBe(213);
  });

  it.runIf(engines.includes('uml'))('more memory than there is room for', async () => {
    const args = ['run', '--engine', 'uml', '--memory', '1048576', '--', 'true'];
    const [status, said] = await refused(args);
    expect(said).toContain('ask for less with --memory');
    expect(status).toBe(206);
  });

  it.runIf(engines.includes('qemu'))('more memory than QEMU gets', async () => {
    const args = ['run', '--engine', 'qemu', '--accel', 'tcg', '--memory', '1048576', '--', 'true'];
    const [status, said] = await refused(args);
    expect(said).toContain('ask for less with --memory');
    expect(status).toBe(205);
  });
});

function foldersOfMachine(pid: number): string[] {
  return ['/dev/shm', tmpdir()]
    .flatMap((place) => readdirSync(place))
    .filter((name) => name.startsWith(`node-rdma-rxe-${pid}-`));
}
