import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { formatGid, parseGid } from '../../lib/index.js';
import { device, deviceA, deviceB } from '../support/device.js';

describe('tables of a port', () => {
  it('tell each GID by its index, as the whole table does', () => {
    const context = device();
    const table = context.queryGidTable();
    expect(table.length).toBeGreaterThan(0);
    for (const entry of table) {
      expect(context.queryGid(entry.index)).toBe(entry.gid);
      expect(context.queryGidEntry(entry.index)).toEqual(entry);
    }
    const empty = context.queryPort().gidTblLen - 1;
    expect(context.queryGid(empty)).toBe(formatGid(parseGid('::')));
    expect(() => context.queryGidEntry(empty)).toThrow(
      expect.objectContaining({ code: 'ENODATA', syscall: 'ibv_query_gid_ex' }) as Error,
    );
  });

  it('tell P_Keys and where they are', () => {
    const context = device();
    expect(context.queryPkey()).toBe(0xffff);
    expect(context.getPkeyIndex(0xffff)).toBe(0);
    expect(context.getPkeyIndex(0x1234)).toBeUndefined();
  });

  it('have no other places', () => {
    const context = device();
    const wrong: (() => unknown)[] = [
      () => context.queryGid(-1),
      () => context.queryGid(0, 2),
      () => context.queryGidEntry(1.5),
      () => context.queryPkey(1),
      () => context.queryPkey(0, 0),
      () => context.getPkeyIndex(2 ** 16),
      () => context.queryPortSpeed(2),
    ];
    for (const ask of wrong) expect(ask).toThrow(RangeError);
    expect(() => context.queryGid(100_000)).toThrow(
      expect.objectContaining({ syscall: 'ibv_query_gid' }) as Error,
    );
    context.close();
    expect(() => context.queryGid(0)).toThrow(expect.objectContaining({ code: 'ERR_RDMA_CLOSED' }) as Error);
  });
});

describe('the link address of a peer', () => {
  it('is that of its network interface', async () => {
    const [a, b] = [device(deviceA), device(deviceB)];
    const [from, to] = [a.chooseGid(), b.chooseGid()];
    const { mac, vlan } = await a.resolveEthL2({ dgid: to.gid, sgidIndex: from.index });
    const { netdev } = b.queryGidEntry(to.index);
    const [link] = JSON.parse(execFileSync('ip', ['-j', 'link', 'show', netdev], { encoding: 'utf8' })) as {
      address: string;
    }[];
    // On one machine the way may be the loopback, whose address is zero.
    expect([link!.address, '00:00:00:00:00:00']).toContain(mac);
    expect(vlan).toBeUndefined();
  });

  it('is not found where nobody is, and asked for with what there is', async () => {
    const context = device();
    await expect(context.resolveEthL2({ dgid: '2001:db8::dead' })).rejects.toMatchObject({
      syscall: 'ibv_resolve_eth_l2_from_gid',
    });
    await expect(context.resolveEthL2(undefined as never)).rejects.toThrow(TypeError);
    await expect(context.resolveEthL2({ dgid: 'nonsense' })).rejects.toMatchObject({
      code: expect.stringMatching(/^ERR_/) as string,
    });
  });
});
