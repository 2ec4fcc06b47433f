import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { chown } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { prepareDistributionKernel } from '../../lib/rxe/kernel/distribution.js';
import { findUmlKernel } from '../../lib/rxe/kernel/uml.js';

/** A user and a group that no machine has anything for. */
const nobody = 65533;
const root = join(import.meta.dirname, '../..');

const wanted = process.env.NODE_RDMA_TEST_ENGINES?.split(',');
const umlKernel = await findUmlKernel();
const hasUml = umlKernel !== undefined && (wanted?.includes('uml') ?? true);
const hasQemu =
  spawnSync('qemu-system-x86_64', ['--version']).status === 0 && (wanted?.includes('qemu') ?? true);

/** What the package needs to run, in a place that everybody may read: a checkout often is in somebody's home. */
let place: string;

beforeAll(async () => {
  place = mkdtempSync(join(tmpdir(), 'unprivileged-'));
  for (const path of ['package.json', 'dist', 'build/Release/rxe_agent', 'node_modules/commander']) {
    cpSync(join(root, path), join(place, path), { recursive: true, dereference: true });
  }
  cpSync(process.execPath, join(place, 'node'));
  if (umlKernel) cpSync(umlKernel.path, join(place, 'linux'));
  if (hasQemu) {
    const { vmlinuz } = await prepareDistributionKernel();
    const kernel = dirname(vmlinuz);
    const copy = join(place, 'home/.cache/node-rdma/kernels/distribution', basename(kernel));
    cpSync(kernel, copy, { recursive: true });
  }
  mkdirSync(join(place, 'home'), { recursive: true });
  writeFileSync(join(place, 'namespaces.sh'), namespaces);
  spawnSync('chmod', ['-R', 'a+rX', place]);
  chmodSync(place, 0o755);
  if (process.getuid?.() === 0) {
    spawnSync('chown', ['-R', `${nobody}:${nobody}`, join(place, 'home')]);
    await chown(place, nobody, nobody);
  }
});

afterAll(() => rmSync(place, { recursive: true }));

/**
 * Runs its arguments as they would run in a container without privileges: a /dev with nothing in it but what every
 * container has, no network, no other processes, and in a user namespace below, where the user has no capability even
 * in the container.
 */
const namespaces = `set -e
mount -t tmpfs -o mode=755 none /mnt
for name in null zero full random urandom tty; do
  touch /mnt/$name
  mount --bind /dev/$name /mnt/$name
done
mkdir -m 1777 /mnt/shm
mount -t tmpfs none /mnt/shm
mount --rbind /mnt /dev
test ! -e /dev/kvm -a ! -e /dev/infiniband
"$@"
`;
const isolate = ['unshare', '--user', '--map-root-user', '--mount', '--pid', '--mount-proc', '--net'].concat([
  '--fork',
  '--kill-child',
  'sh',
  'namespaces.sh',
]);
const asOrdinaryUser = ['unshare', '--user', '--map-user=1000', '--map-group=1000'];

const dropPrivileges =
  process.getuid?.() === 0
    ? ['setpriv', `--reuid=${nobody}`, `--regid=${nobody}`, '--clear-groups', '--no-new-privs']
    : [];

const allowsNamespaces =
  spawnSync('setpriv', [
    '--no-new-privs',
    'unshare',
    '--user',
    '--map-root-user',
    '--mount',
    '--pid',
    '--fork',
    'true',
  ]).status === 0;

async function run(argv: string[]): Promise<{ status: number | null; stdout: string; stderr: string }> {
  const [command, ...args] = [...dropPrivileges, ...argv];
  const child = spawn(command!, args, {
    cwd: place,
    env: {
      PATH: process.env.PATH,
      HOME: join(place, 'home'),
      NODE_RDMA_RXE_KERNEL: hasUml ? join(place, 'linux') : '',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  const [stdout, stderr, status] = await Promise.all([buffer(child.stdout), buffer(child.stderr), ended]);
  return { status, stdout: stdout.toString(), stderr: stderr.toString() };
}

/** `ibv_devinfo` on an engine, and proof that the user was nobody special outside. */
function devinfo(engine: string): string[] {
  const command = ['./node', 'dist/cli/main.js', 'rxe', 'run', '--engine', engine, '--', 'ibv_devinfo'];
  return ['sh', '-c', 'grep CapEff /proc/self/status >&2; exec "$@"', 'sh', ...command];
}

const noCapability = /^CapEff:\s+0+$/m;

function expectTwoActiveDevices(result: { status: number | null; stdout: string; stderr: string }): void {
  expect(result, result.stderr).toMatchObject({ status: 0 });
  expect(result.stdout.match(/PORT_ACTIVE/g)).toHaveLength(2);
}

describe.runIf(hasUml)('uml', () => {
  test('runs for an ordinary user', async () => {
    const result = await run(devinfo('uml'));
    expect(result.stderr).toMatch(noCapability);
    expectTwoActiveDevices(result);
  });

  test.runIf(allowsNamespaces)('runs for an ordinary user in namespaces without devices', async () => {
    const result = await run([...isolate, ...asOrdinaryUser, ...devinfo('uml')]);
    expect(result.stderr).toMatch(noCapability);
    expectTwoActiveDevices(result);
  });

  test.runIf(allowsNamespaces)(
    'is what auto takes for the root of a container without privileges',
    async () => {
      const result = await run([...isolate, ...devinfo('auto')]);
      expectTwoActiveDevices(result);
    },
  );
});

test.runIf(hasQemu)(
  'qemu runs for an ordinary user, in namespaces without devices where these may be made',
  async () => {
    const surroundings = allowsNamespaces ? [...isolate, ...asOrdinaryUser] : [];
    const result = await run([...surroundings, ...devinfo('qemu')]);
    expect(result.stderr).toMatch(noCapability);
    expectTwoActiveDevices(result);
  },
);
