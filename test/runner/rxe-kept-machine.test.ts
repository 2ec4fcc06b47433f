// One machine of each engine, kept up: what commands see and do in it.
import { createHash, randomBytes } from 'node:crypto';
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { rxe, startRxe, waitUntil, type Outcome } from './cli.js';
import { engines } from './engines.js';

const mebibyte = 1024 * 1024;

it('has an engine to test', () => expect(engines).not.toHaveLength(0));

describe.each(engines)('a kept machine of the %s engine', (engine) => {
  let folder: string;
  let env: NodeJS.ProcessEnv;
  let starts: Outcome[];
  const out = (): string => join(folder, 'what comes back');
  const exec = (argv: string[], input?: Buffer | string): Promise<Outcome> =>
    rxe(['exec', '--', ...argv], { env, cwd: folder, input });
  const sh = (script: string, input?: Buffer | string): Promise<Outcome> => exec(['sh', '-c', script], input);

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), `a folder with blanks, ${engine} `));
    mkdirSync(out());
    mkdirSync(join(folder, 'run'), { mode: 0o700 });
    env = { ...process.env, XDG_RUNTIME_DIR: join(folder, 'run') };
    const start = ['start', '--engine', engine, '--memory', '1024', '--mtu', '4200', '--out', out()];
    starts = await Promise.all([rxe(start, { env }), rxe(start, { env })]);
  });

  afterAll(async () => {
    await rxe(['stop'], { env });
    rmSync(folder, { recursive: true, force: true });
  });

  it('is one, though two starts ran at once', () => {
    expect(starts.map(({ status, stderr }) => [status, status === 0 ? '' : stderr.toString()])).toEqual([
      [0, ''],
      [0, ''],
    ]);
    const said = starts.map(({ stdout }) => stdout.toString().trim());
    expect(said.filter((text) => text.endsWith('up already'))).toHaveLength(1);
    expect(new Set(said.map((text) => /process \d+/.exec(text)?.[0])).size).toBe(1);
  });

  it('refuses a start with other settings', async () => {
    expect(await rxe(['start', '--mtu', '1500'], { env })).toMatchObject({ status: 212 });
  });

  it('describes itself', async () => {
    const { stdout } = await rxe(['status', '--json'], { env });
    expect(JSON.parse(stdout.toString())).toMatchObject({ engine, options: { memory: 1024, mtu: 4200 } });
  });

  it('has two active devices with a path MTU of 4096', async () => {
    const { stdout, status } = await exec(['ibv_devinfo']);
    expect(status).toBe(0);
    expect(stdout.toString().match(/PORT_ACTIVE/g)).toHaveLength(2);
    expect(stdout.toString().match(/active_mtu:\s+4096/g)).toHaveLength(2);
  });

  it.each([1, 2])('carries what the devices send over its wire (GID index %i)', async (index) => {
    const { stdout, stderr, status } = await sh(`
      sent() { cat /sys/class/net/$NODE_RDMA_RXE_NETDEV_A/statistics/tx_packets; }
      before=$(sent)
      ibv_rc_pingpong -e -n 50 -g ${index} -d $NODE_RDMA_RXE_DEVICE_B > /dev/null &
      tries=0
      until ibv_rc_pingpong -e -n 50 -g ${index} -d $NODE_RDMA_RXE_DEVICE_A 127.0.0.1 2> /tmp/said; do
        grep -q "Couldn't connect" /tmp/said && [ $((tries += 1)) -lt 50 ] || { cat /tmp/said >&2; exit 1; }
        sleep 0.2
      done
      wait
      echo "crossed $(($(sent) - before))"`);
    expect(stderr.toString()).toBe('');
    expect(status).toBe(0);
    expect(Number(/crossed (\d+)/.exec(stdout.toString())?.[1])).toBeGreaterThanOrEqual(50);
  });

  it('lets faults be put on the wire', async () => {
    const { stdout, stderr } = await sh(`
      tc qdisc add dev $NODE_RDMA_RXE_NETDEV_A root netem delay 20ms
      ibv_rc_pingpong -e -n 20 -g 1 -d $NODE_RDMA_RXE_DEVICE_B > /dev/null &
      tries=0
      until ibv_rc_pingpong -e -n 20 -g 1 -d $NODE_RDMA_RXE_DEVICE_A 127.0.0.1 2> /dev/null; do
        [ $((tries += 1)) -lt 50 ] || exit 1
        sleep 0.2
      done
      wait
      tc qdisc del dev $NODE_RDMA_RXE_NETDEV_A root`);
    expect(stderr.toString()).toBe('');
    const roundTrip = Number(/([\d.]+) usec\/iter/.exec(stdout.toString())?.[1]);
    expect(roundTrip).toBeGreaterThan(19_000);
  });

  it('keeps standard output and error apart and passes the status on', async () => {
    const { stdout, stderr, status } = await sh('echo out; echo err >&2; exit 77');
    expect([stdout.toString(), stderr.toString(), status]).toEqual(['out\n', 'err\n', 77]);
  });

  it('runs a command in the current folder, with its environment', async () => {
    const outcome = await rxe(['exec', '--', 'sh', '-c', 'pwd; echo "$SOME_VARIABLE"'], {
      env: { ...env, SOME_VARIABLE: 'a  b\n"c"' },
      cwd: folder,
    });
    expect(outcome.stdout.toString()).toBe(`${folder}\na  b\n"c"\n`);
  });

  it('tells a command that does not exist from one that is not executable', async () => {
    expect(await exec(['no-such-command'])).toMatchObject({ status: 127 });
    expect(await exec(['/etc/passwd'])).toMatchObject({ status: 126 });
  });

  it('says so when the folder is not there', async () => {
    const outcome = await rxe(['exec', '--', 'true'], { env, cwd: '/dev/shm' });
    expect(outcome).toMatchObject({ status: 0 });
    expect(await rxe(['exec', '--', 'true'], { env, cwd: '/proc/self' })).toMatchObject({ status: 213 });
  });

  it('tells an end by a signal', async () => {
    expect(await sh('kill -SEGV $$')).toMatchObject({ status: 128 + 11 });
  });

  it('ends a command that takes too long, with what it started', async () => {
    const { status } = await rxe(['exec', '--timeout', '1', '--', 'sh', '-c', 'sleep 987 & wait'], {
      env,
      cwd: folder,
    });
    expect(status).toBe(124);
    expect((await sh('cat /proc/[0-9]*/cmdline | tr "\\0" " "')).stdout.toString()).not.toContain(
      'sleep 98' + '7',
    );
  });

  it('loses nothing of a flood on both streams', async () => {
    const size = (engine === 'qemu' ? 8 : 50) * mebibyte;
    const { stdout, stderr } = await sh(`head -c ${size} /dev/zero & head -c ${size} /dev/zero >&2; wait`);
    const zeros = sha256(Buffer.alloc(size));
    expect([stdout.length, sha256(stdout)]).toEqual([size, zeros]);
    expect([stderr.length, sha256(stderr)]).toEqual([size, zeros]);
  });

  it('goes on while the reader of a flood is asleep', async () => {
    const { child, outcome } = startRxe(['exec', '--', 'yes'], {
      env,
      cwd: folder,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    child.stdout!.pause();
    expect((await sh('echo still here')).stdout.toString()).toBe('still here\n');
    child.kill('SIGKILL');
    expect((await outcome).signal).toBe('SIGKILL');
  });

  it('ends a command whose reader has gone, as a pipe does', async () => {
    const { child } = startRxe(['exec', '--', 'yes'], {
      env,
      cwd: folder,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const status = new Promise((resolve) => child.once('exit', resolve));
    child.stdout!.once('data', () => child.stdout!.destroy());
    expect(await status).toBe(128 + 13);
  });

  it('gives a command its input, whatever bytes it is made of, and its end', async () => {
    const input = randomBytes(mebibyte + 12_345);
    const { stdout } = await exec(['cat'], input);
    expect(sha256(stdout)).toBe(sha256(input));
  });

  it('does not wait for input that a command does not read', async () => {
    expect(await exec(['true'], randomBytes(mebibyte))).toMatchObject({ status: 0 });
  });

  it('passes Ctrl-C on', async () => {
    const running = startRxe(
      ['exec', '--', 'sh', '-c', 'trap "echo interrupted; exit 9" INT; echo ready; sleep 60 & wait'],
      { env, cwd: folder },
    );
    await new Promise((resolve) => running.child.stdout!.once('data', resolve));
    running.child.kill('SIGINT');
    expect(await running.outcome).toMatchObject({ status: 9 });
  });

  it('ends what runs for a caller that is killed', async () => {
    const running = startRxe(['exec', '--', 'sh', '-c', 'echo ready; exec sleep 1234'], { env, cwd: folder });
    await new Promise((resolve) => running.child.stdout!.once('data', resolve));
    running.child.kill('SIGKILL');
    await running.outcome;
    const { stdout } = await sh('sleep 1; cat /proc/[0-9]*/cmdline | tr "\\0" " "');
    expect(stdout.toString()).not.toContain('sleep 12' + '34');
  });

  it('shows files as they are on the host when a command starts', async () => {
    const file = join(folder, 'changing');
    const read = async (): Promise<string> => (await exec(['cat', 'changing'])).stdout.toString();
    writeFileSync(file, 'first');
    expect(await read()).toBe('first');
    writeFileSync(file, 'the second, longer');
    expect(await read()).toBe('the second, longer');
    writeFileSync(`${file}.new`, 'third');
    renameSync(`${file}.new`, file);
    expect(await read()).toBe('third');
    rmSync(file);
    expect((await exec(['ls', 'changing'])).status).not.toBe(0);
  });

  it('writes to the host in the folder that comes back, and nowhere else', async () => {
    const { status, stderr } = await sh(
      'echo result > "$NODE_RDMA_RXE_OUT/result" && echo lost > lost && cat lost > /dev/null',
    );
    expect([status, stderr.toString()]).toEqual([0, '']);
    expect(readdirSync(folder)).not.toContain('lost');
  });

  it('is gone after stop, with all that it kept, and what was written has come back', async () => {
    const { stdout } = await rxe(['status', '--json'], { env });
    const { owner } = JSON.parse(stdout.toString()) as { owner: number };
    expect(await rxe(['stop'], { env })).toMatchObject({ status: 0 });
    expect(readFileSync(join(out(), 'result'), 'utf8')).toBe('result\n');
    expect(leftOnHost(owner)).toEqual([]);
    await waitUntil('the owner has ended', () => !readdirSync('/proc').includes(String(owner)));
    expect(await rxe(['exec', '--', 'true'], { env })).toMatchObject({ status: 211 });
    expect(await rxe(['stop'], { env })).toMatchObject({ status: 211 });
  });
});

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

function leftOnHost(owner: number): string[] {
  return ['/dev/shm', tmpdir()].flatMap((place) =>
    readdirSync(place).filter((name) => name.startsWith(`node-rdma-rxe-${owner}-`)),
  );
}
