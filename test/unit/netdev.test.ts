import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { netdevUnder, ownAddresses } from '../../lib/verbs/netdev.js';

function sysfs(files: Record<string, string>): string {
  const root = mkdtempSync(path.join(os.tmpdir(), 'sysfs-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(root, name)), { recursive: true });
    writeFileSync(path.join(root, name), text);
  }
  return root;
}

it('the interface under a port is the parent of Soft-RoCE, or that of a NIC with the number of the port', () => {
  const root = sysfs({
    'rxe0/parent': 'eth5\n',
    'mlx5_0/device/net/ens1f0/dev_port': '0\n',
    'mlx4_0/device/net/ens2/dev_port': '0\n',
    'mlx4_0/device/net/ens2d1/dev_port': '1\n',
  });
  expect(netdevUnder('rxe0', 1, root)).toBe('eth5');
  expect(netdevUnder('mlx5_0', 1, root)).toBe('ens1f0');
  expect(netdevUnder('mlx4_0', 1, root)).toBe('ens2');
  expect(netdevUnder('mlx4_0', 2, root)).toBe('ens2d1');
  expect(netdevUnder('none', 1, root)).toBeUndefined();
});

it('the addresses of this namespace are those of the interfaces that are up', () => {
  const own = ownAddresses()!;
  expect(own.has('192.0.2.1')).toBe(false);
  for (const { address } of os.networkInterfaces().lo ?? []) expect(own.has(address)).toBe(true);
});
