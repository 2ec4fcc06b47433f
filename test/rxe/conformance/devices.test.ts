import { readFileSync } from 'node:fs';
import { expect } from 'vitest';
import { forkInit, forkStatus, listDevices, openDevice } from '../../../lib/index.js';
import { device } from '../../support/device.js';
import { capability, fails, kernelIs, refused } from './cases.js';

const devices = capability('devices and ports');

devices('the list has the devices of the machine', 'dev_list', () => {
  const names = listDevices().map(({ name }) => name);
  expect(names).toContain(device().device.name);
  expect(new Set(names).size).toBe(names.length);
});

devices('each that is listed opens by its name, and closes', 'open_dev', () => {
  for (const { name } of listDevices()) {
    const context = openDevice(name);
    expect(context.device.name).toBe(name);
    context.close();
    fails(() => context.queryPort(), { code: 'ERR_RDMA_CLOSED' });
  }
  fails(() => openDevice('no_such_device'), { code: 'ERR_RDMA_NO_DEVICE' });
});

devices('attributes of the device have values that make sense', ['query_device', 'query_device_ex'], () => {
  const context = device();
  const attributes = context.queryDevice();
  for (const name of [
    'maxQp',
    'maxQpWr',
    'maxSge',
    'maxCq',
    'maxCqe',
    'maxMr',
    'maxPd',
    'maxAh',
    'maxSrq',
  ] as const)
    expect(attributes[name], name).toBeGreaterThan(0);
  expect(attributes.physPortCnt).toBe(1);
  expect(attributes.atomicCap).toBe('hca');
  expect(attributes.nodeGuid).toBe(context.device.guid);
});

devices('the count of ports is the same in both forms', 'phys_port_cnt_ex', () => {
  const { physPortCnt, physPortCntEx } = device().queryDevice();
  expect(physPortCntEx).toBe(physPortCnt);
});

devices('a port tells state, MTU and link', 'query_port', () => {
  const port = device().queryPort();
  expect(port).toMatchObject({ state: 'active', linkLayer: 'ethernet', lid: 0 });
  expect([256, 512, 1024, 2048, 4096]).toContain(port.activeMtu);
  expect(port.activeMtu).toBeLessThanOrEqual(port.maxMtu);
  expect([1, 2, 4, 8, 16]).toContain(port.activeWidth);
  expect(port.activeSpeed).toBeGreaterThan(0);
});

devices('a port that there is not is refused', 'query_port_bad_flow', () => {
  const context = device();
  const { physPortCnt } = context.queryDevice();
  for (const port of [0, physPortCnt + 1, 255])
    fails(() => context.queryPort(port), { code: 'ERR_OUT_OF_RANGE' });
});

devices('the speed of a port', 'query_port_speed', () =>
  refused('ibv_query_port_speed', () => device().queryPortSpeed()),
);

devices('the first P_Key is readable', 'query_pkey', () => {
  const context = device();
  expect(context.queryPkey(0)).toBe(0xffff);
  expect(context.queryPkeyTable()).toHaveLength(context.queryPort().pkeyTblLen);
});

devices('a P_Key is found by its value', 'get_pkey_index', () => {
  const context = device();
  const value = Number(readFileSync(`${context.device.sysfsPath}/ports/1/pkeys/0`, 'latin1'));
  expect(context.getPkeyIndex(value)).toBe(0);
  expect(context.getPkeyIndex(0x1111)).toBeUndefined();
});

devices('the first GID is readable, and is what the kernel shows', 'query_gid', () => {
  const context = device();
  const shown = readFileSync(`${context.device.sysfsPath}/ports/1/gids/0`, 'latin1').trim();
  const [entry] = context.queryGidTable();
  expect(entry!.index).toBe(0);
  expect(context.queryGid(0)).toBe(entry!.gid);
  const halves = entry!.gid.split('::').map((half) => half.split(':').filter(Boolean));
  const groups =
    halves.length === 2
      ? [...halves[0]!, ...Array.from({ length: 8 - halves.flat().length }, () => '0'), ...halves[1]!]
      : halves[0]!;
  if (!entry!.gid.includes('.')) expect(groups.map((group) => group.padStart(4, '0')).join(':')).toBe(shown);
});

devices('the GID table has no more entries than the port says, and only full ones', 'query_gid_table', () => {
  const context = device();
  const table = context.queryGidTable();
  expect(table.length).toBeGreaterThan(0);
  expect(table.length).toBeLessThanOrEqual(context.queryPort().gidTblLen);
  for (const { gid } of table) expect(gid).not.toBe('::');
});

devices('the GID table of a port that there is not is refused', 'query_gid_table_bad_flow', () => {
  // Of C one can also give too short an array: here the table comes whole.
  fails(() => device().queryGidTable(2), { code: 'ERR_OUT_OF_RANGE' });
});

devices('an entry of the GID table is what the other calls say', 'query_gid_ex', () => {
  const context = device();
  for (const entry of context.queryGidTable()) {
    expect(context.queryGidEntry(entry.index)).toEqual(entry);
    expect(context.queryGid(entry.index)).toBe(entry.gid);
    expect(entry.type).toBe('roceV2');
  }
});

devices('an empty place of the GID table is told', 'query_gid_ex_bad_flow', () => {
  const context = device();
  const empty = context.queryPort().gidTblLen - 1;
  expect(context.queryGid(empty)).toBe('::');
  fails(() => context.queryGidEntry(empty), { code: 'ENODATA', syscall: 'ibv_query_gid_ex' });
});

capability('fork')('is of one of three states, which the kernel decides', 'is_fork_initialized', () => {
  const before = forkStatus();
  expect(['disabled', 'enabled', 'unneeded']).toContain(before);
  if (kernelIs(5, 12)) expect(before).toBe('unneeded');
  forkInit();
  expect(forkStatus()).toBe(kernelIs(5, 12) ? 'unneeded' : 'enabled');
});
