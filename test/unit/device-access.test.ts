import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { accessProblem, kernelDevices, leftOut } from '../../lib/verbs/device-access.js';

/** A sysfs with a device for each entry: its name, and its character device if it has one. */
function sysfs(devices: Record<string, string | undefined>): string {
  const root = mkdtempSync(join(tmpdir(), 'node-rdma-sysfs-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  const put = (path: string, text: string) => {
    mkdirSync(join(root, path, '..'), { recursive: true });
    writeFileSync(join(root, path), `${text}\n`);
  };
  put('class/infiniband_verbs/abi_version', '6');
  for (const [name, uverbs] of Object.entries(devices)) {
    put(`class/infiniband/${name}/node_guid`, '5054:00ff:fe12:3456');
    put(`class/infiniband/${name}/node_type`, '1: CA');
    if (uverbs !== undefined) put(`class/infiniband_verbs/${uverbs}/ibdev`, name);
  }
  return root;
}

it('knows the devices of the kernel, with and without a character device', () => {
  const common = { guid: '5054:00ff:fe12:3456', nodeType: 1 };
  expect(kernelDevices(sysfs({ mlx5_0: 'uverbs3', rxe0: undefined }))).toEqual([
    { name: 'mlx5_0', uverbs: 'uverbs3', ...common },
    { name: 'rxe0', uverbs: undefined, ...common },
  ]);
});

it('finds no device where the kernel has no RDMA', () => {
  expect(kernelDevices('/nowhere')).toEqual([]);
});

it('does without attributes of a device that is just going away', () => {
  const root = sysfs({ rxe0: 'uverbs0' });
  rmSync(join(root, 'class/infiniband/rxe0/node_guid'));
  rmSync(join(root, 'class/infiniband/rxe0/node_type'));
  expect(kernelDevices(root)).toMatchObject([{ name: 'rxe0', guid: '0000:0000:0000:0000', nodeType: -1 }]);
});

it.each([
  ['ENOENT', '/dev/infiniband/uverbs2 is missing: in a container pass --device /dev/infiniband/uverbs2'],
  ['ENXIO', '/dev/infiniband/uverbs2 is missing'],
  ['ENODEV', '/dev/infiniband/uverbs2 is missing'],
  ['EPERM', 'the cgroup forbids it: start the container with --device /dev/infiniband/uverbs2'],
  ['EACCES', 'this user may not open /dev/infiniband/uverbs2'],
  ['EMFILE', '/dev/infiniband/uverbs2 cannot be opened: EMFILE'],
])('says what %s of a character device means', (code, problem) => {
  expect(accessProblem('uverbs2', () => code)).toEqual({
    code,
    message: expect.stringContaining(problem) as string,
  });
});

it('has nothing to say of a character device that opens', () => {
  const opened: string[] = [];
  expect(accessProblem('uverbs2', (node) => void opened.push(node))).toBeUndefined();
  expect(opened).toEqual(['/dev/infiniband/uverbs2']);
});

it('says why the library leaves a device out', () => {
  const device = { name: 'rxe0', guid: '', nodeType: 1 };
  expect(leftOut({ ...device, uverbs: undefined }).message).toContain('modprobe ib_uverbs');
  expect(leftOut({ ...device, uverbs: 'uverbs0' }, () => 'ENOENT').message).toContain('uverbs0 is missing');
  expect(leftOut({ ...device, uverbs: 'uverbs0' }, () => undefined)).toEqual({
    code: 'ERR_RDMA_NO_PROVIDER',
    message: expect.stringContaining('no provider for it') as string,
  });
});
