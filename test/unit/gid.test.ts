import { describe, expect, it } from 'vitest';
import {
  chooseGid,
  formatGid,
  gidEntry,
  parseGid,
  type GidEntry,
  type GidSubject,
} from '../../lib/verbs/gid.js';

const subject: GidSubject = { device: 'rxe0', port: 1 };

function entry(
  index: number,
  address: string,
  type: 'roceV1' | 'roceV2' | 'ib' = 'roceV2',
  netdev = 'eth0',
): GidEntry {
  return gidEntry({
    raw: parseGid(address),
    index,
    port: 1,
    type: ['ib', 'roceV1', 'roceV2'].indexOf(type),
    netdev,
    netdevIndex: 2,
  });
}

describe('parseGid and formatGid', () => {
  it.each([
    ['::', '::'],
    ['::1', '::1'],
    ['10.9.0.1', '::ffff:10.9.0.1'],
    ['::ffff:10.9.0.1', '::ffff:10.9.0.1'],
    ['::FFFF:0a09:0001', '::ffff:10.9.0.1'],
    ['fe80::5054:ff:fe12:3456', 'fe80::5054:ff:fe12:3456'],
    ['fe80:0000:0000:0000:5054:00ff:fe12:3456', 'fe80::5054:ff:fe12:3456'],
    ['2001:db8::', '2001:db8::'],
    ['1:2:3:4:5:6:7:8', '1:2:3:4:5:6:7:8'],
    ['64:ff9b::192.0.2.33', '64:ff9b::c000:221'],
  ])('%s is %s', (text, canonical) => {
    const raw = parseGid(text);
    expect(raw).toHaveLength(16);
    expect(formatGid(raw)).toBe(canonical);
    expect(parseGid(formatGid(raw))).toEqual(raw);
  });

  it.each([
    '',
    'x',
    '10.9.0',
    '10.9.0.256',
    '1:2:3',
    ':::',
    'fe80::1%eth0',
    '1:2:3:4:5:6:7:8:9',
    '::ffff:10.9.0',
  ])('refuses "%s"', (text) => {
    expect(() => parseGid(text)).toThrow(expect.objectContaining({ code: 'ERR_OUT_OF_RANGE' }) as Error);
  });

  it.each([undefined, null, 5, new Uint8Array(16)])('refuses %s, which is no string', (value) => {
    expect(() => parseGid(value as never)).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_ARG_TYPE' }) as Error,
    );
  });
});

describe('chooseGid', () => {
  const linkLocal = entry(0, 'fe80::1');
  const privateV4 = entry(1, '10.0.0.7');
  const global = entry(2, '2001:db8::7');

  it('prefers IPv4 to global IPv6 to link-local, wherever they stand', () => {
    expect(chooseGid([linkLocal, global, privateV4], {}, subject).address).toBe('10.0.0.7');
    expect(chooseGid([linkLocal, global], {}, subject).address).toBe('2001:db8::7');
    expect(chooseGid([linkLocal], {}, subject).address).toBe('fe80::1');
  });

  it('counts private and unique-local addresses as routable', () => {
    for (const address of ['10.1.1.1', '172.16.0.1', '192.168.1.1', '100.64.0.1', 'fd00::1']) {
      expect(chooseGid([linkLocal, entry(5, address)], {}, subject).address).toBe(address);
    }
  });

  it('takes RoCE v2 although v1 comes first', () => {
    const choice = chooseGid([entry(0, '10.0.0.7', 'roceV1'), entry(1, '10.0.0.7', 'roceV2')], {}, subject);
    expect(choice).toMatchObject({ index: 1, type: 'roceV2' });
  });

  it('takes what is asked for, by value', () => {
    const entries = [linkLocal, privateV4, global, entry(9, '10.0.1.7', 'roceV2', 'eth1')];
    expect(chooseGid(entries, { address: '2001:0db8::0007' }, subject).index).toBe(2);
    expect(chooseGid(entries, { address: '::ffff:10.0.0.7' }, subject).index).toBe(1);
    expect(chooseGid(entries, { netdev: 'eth1' }, subject).index).toBe(9);
    expect(chooseGid([entry(0, '10.0.0.7', 'roceV1'), privateV4], { type: 'roceV1' }, subject).index).toBe(0);
  });

  it('prefers what is of the peer’s kind, and what has the best reach where nothing is', () => {
    const entries = [linkLocal, privateV4, global];
    const chosen = (peer: string, among = entries) => chooseGid(among, { peer }, subject).index;
    expect(['10.9.9.9', '::ffff:10.9.9.9', '2001:db8::99', 'fe80::99'].map((peer) => chosen(peer))).toEqual([
      1, 1, 2, 0,
    ]);
    expect(chosen('2001:db8::99', [linkLocal, privateV4])).toBe(1);
    expect(chooseGid(entries, { peer: 'fe80::99' }, subject).reason).toMatch(
      /link-local IPv6 as the peer's fe80::99/,
    );
    expect(chooseGid(entries, { peer: 'fe80::99', address: '10.0.0.7' }, subject).index).toBe(1);
    expect(() => chooseGid(entries, { peer: 'nowhere' }, subject)).toThrow(RangeError);
  });

  it('takes what is of this network namespace before what is not', () => {
    const foreign = entry(0, '10.0.0.9', 'roceV2', '');
    expect(chooseGid([foreign, entry(6, '10.0.0.7')], {}, subject).index).toBe(6);
    expect(chooseGid([foreign, entry(6, 'fe80::7')], {}, subject).index).toBe(6);
    // The number of another namespace's interface may be that of one here: the address tells.
    const addresses = new Set(['10.0.0.7', 'fe80::1', '2001:db8::7']);
    const twin = entry(3, '10.0.0.9');
    expect(chooseGid([twin, privateV4], {}, { ...subject, addresses })).toMatchObject({
      address: '10.0.0.7',
      reason: 'RoCE v2, routable over IPv4',
    });
    expect(chooseGid([twin, linkLocal, global], {}, { ...subject, addresses }).index).toBe(2);
    expect(chooseGid([twin, linkLocal], {}, { ...subject, addresses }).index).toBe(0);
  });

  it('takes what is of no interface here all the same where there is nothing else, and says so', () => {
    const foreign = entry(0, '10.0.0.9', 'roceV2', '');
    for (const selection of [{}, { address: '10.0.0.9' }]) {
      const { index, reason } = chooseGid([foreign, entry(1, '10.0.0.9', 'roceV1')], selection, subject);
      expect(index).toBe(0);
      expect(reason).toMatch(/; no interface of this network namespace has it, or it is down$/);
    }
  });

  it('takes the first on InfiniBand', () => {
    expect(chooseGid([entry(0, 'fe80::2', 'ib'), entry(1, '2001:db8::2', 'ib')], {}, subject).index).toBe(0);
  });

  it('says why', () => {
    expect(chooseGid([linkLocal, privateV4], {}, subject).reason).toMatch(
      /RoCE v2, routable over IPv4, preferred to fe80::1/,
    );
    expect(chooseGid([linkLocal], {}, subject).reason).toMatch(
      /link-local.*same subnet only\. Give eth0 an address \(ip address add 192\.0\.2\.1\/24 dev eth0\)/,
    );
    expect(chooseGid([privateV4], { address: '10.0.0.7' }, subject).reason).toMatch(
      /10\.0\.0\.7, as asked for/,
    );
  });

  it('is no matter of order: every order of a table gives the same choice', () => {
    const entries = [linkLocal, privateV4, global];
    for (const order of [
      [0, 1, 2],
      [0, 2, 1],
      [1, 0, 2],
      [1, 2, 0],
      [2, 0, 1],
      [2, 1, 0],
    ]) {
      expect(
        chooseGid(
          order.map((i) => entries[i]!),
          {},
          subject,
        ).index,
      ).toBe(1);
    }
  });

  it('names what the table holds when nothing fits', () => {
    const failure = { code: 'ERR_RDMA_NO_GID', device: 'rxe0', port: 1 };
    const fail = (entries: GidEntry[], selection = {}, of = subject) => {
      try {
        chooseGid(entries, selection, of);
      } catch (error) {
        expect(error).toMatchObject(failure);
        return (error as Error).message;
      }
      throw new Error('a GID was chosen');
    };
    expect(fail([linkLocal, privateV4], { address: '10.0.0.8' })).toMatch(
      /address 10\.0\.0\.8.*GID 0: fe80::1 \(RoCE v2, link-local IPv6 on eth0\); GID 1: 10\.0\.0\.7 \(RoCE v2, IPv4 on eth0\)/,
    );
    expect(fail([entry(0, '10.0.0.7', 'roceV1')])).toMatch(/type RoCE v2.*RoCE v1/);
    expect(fail([privateV4], { netdev: 'ib0' })).toMatch(/interface ib0/);
    expect(fail([])).toMatch(/table is empty\. Give its network interface an address .*dev NAME/);
    expect(fail([], {}, { ...subject, netdev: 'eth7' })).toMatch(
      /Give eth7 an address \(ip address add 192\.0\.2\.1\/24 dev eth7\) and bring it up/,
    );
    expect(fail([entry(4, '10.0.0.9', 'roceV2', '')], { address: '10.0.0.8' })).toMatch(
      /GID 4: 10\.0\.0\.9 \(RoCE v2, IPv4, on no interface of this network namespace\)/,
    );
    expect(fail([entry(0, 'fe80::2', 'ib', '')], { address: 'fe80::3' })).toMatch(
      /GID 0: fe80::2 \(InfiniBand, link-local IPv6\)/,
    );
  });
});
