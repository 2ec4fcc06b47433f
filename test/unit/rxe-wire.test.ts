import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { hostWire } from '../../lib/rxe/engines/host.js';
import { gidOf, machineWire, wireEnvironment, wireRemovalScript, wireScript } from '../../lib/rxe/wire.js';

describe('the GID of an address', () => {
  it.each([
    ['10.9.0.1', '0000:0000:0000:0000:0000:ffff:0a09:0001'],
    ['198.18.97.2', '0000:0000:0000:0000:0000:ffff:c612:6102'],
    ['fd09::1', 'fd09:0000:0000:0000:0000:0000:0000:0001'],
    ['fe80::a:1', 'fe80:0000:0000:0000:0000:0000:000a:0001'],
    ['::1', '0000:0000:0000:0000:0000:0000:0000:0001'],
    ['1:2:3:4:5:6:7:8', '0001:0002:0003:0004:0005:0006:0007:0008'],
  ])('%s', (address, gid) => expect(gidOf(address)).toBe(gid));
});

describe.each([
  ['a machine', machineWire(4200)],
  ['the host', hostWire(1500)],
])('the script for the wire of %s', (_, wire) => {
  const script = wireScript(wire);

  it('is a shell script without a syntax error', () => {
    for (const text of [script, wireRemovalScript(wire)]) {
      expect(spawnSync('sh', ['-n'], { input: text, encoding: 'utf8' })).toMatchObject({
        status: 0,
        stderr: '',
      });
    }
  });

  it('sets the MTU of both ends before it adds the devices', () => {
    const { a, b, mtu } = wire;
    const veth = `ip link add ${a.netdev} mtu ${mtu} type veth peer name ${b.netdev} mtu ${mtu}\n`;
    expect(script).toContain(veth);
    expect(script.indexOf(veth)).toBeLessThan(script.indexOf('rdma link add'));
  });

  it('uses names that a network device can have', () => {
    for (const end of [wire.a, wire.b]) expect(end.netdev.length).toBeLessThan(16);
  });

  it('looks local addresses up after the wire, and at the removal first again', () => {
    expect(script.match(/^rule add pref \d+ lookup local$/gm)).toHaveLength(2);
    expect(script.match(/^rule del pref 0$/gm)).toHaveLength(2);
    const removal = wireRemovalScript(wire);
    expect(removal.indexOf('rule add pref 0 lookup local')).toBeLessThan(removal.indexOf('rule del pref'));
    expect(removal.match(/rule del pref/g)).toHaveLength(7);
  });
});

it('tells a command everything about the wire', () => {
  expect(wireEnvironment(machineWire(1500))).toEqual({
    NODE_RDMA_RXE_DEVICE_A: 'rxe_a',
    NODE_RDMA_RXE_DEVICE_B: 'rxe_b',
    NODE_RDMA_RXE_NETDEV_A: 'wire_a',
    NODE_RDMA_RXE_NETDEV_B: 'wire_b',
    NODE_RDMA_RXE_ADDRESS_A: '10.9.0.1',
    NODE_RDMA_RXE_ADDRESS_B: '10.9.0.2',
    NODE_RDMA_RXE_ADDRESS6_A: 'fd09::1',
    NODE_RDMA_RXE_ADDRESS6_B: 'fd09::2',
    NODE_RDMA_RXE_MTU: '1500',
  });
});
