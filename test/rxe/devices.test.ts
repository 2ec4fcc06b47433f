import { execFileSync } from 'node:child_process';
import { chmodSync, readdirSync, readFileSync, renameSync, statSync } from 'node:fs';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import * as rdma from '../../lib/index.js';
import { listDevices, openDevice, RdmaError, type Device } from '../../lib/index.js';
import { device, deviceA, deviceB } from '../support/device.js';
import { inOwnProcess } from '../support/own-process.js';

const sysfs = (name: string) => readFileSync(`/sys/class/infiniband/${deviceA}/${name}`, 'utf8').trim();

describe('listDevices', () => {
  it('shows what the kernel shows', () => {
    const names = listDevices().map((entry) => entry.name);
    expect(names).toContain(deviceA);
    expect(names).toContain(deviceB);
    const one = listDevices().find((entry) => entry.name === deviceA);
    expect(one).toMatchObject({
      nodeType: 'ca',
      transport: 'ib',
      sysfsPath: `/sys/class/infiniband/${deviceA}`,
      accessible: true,
    });
    expect(one).not.toHaveProperty('problem');
    expect(one!.guid).toBe(sysfs('node_guid'));
  });

  it('tells the index that the kernel knows a device by', () => {
    const told = JSON.parse(execFileSync('rdma', ['-j', 'dev'], { encoding: 'utf8' })) as {
      ifindex: number;
      ifname: string;
    }[];
    for (const entry of listDevices()) {
      expect(told).toContainEqual(expect.objectContaining({ ifname: entry.name, ifindex: entry.index }));
    }
  });
});

// These change what the machine's own /dev has, and put it back.
describe.skipIf(process.getuid!() !== 0 || process.env.NODE_RDMA_RXE_ENGINE === 'host')(
  'a device that cannot be opened',
  () => {
    const uverbs = readdirSync('/sys/class/infiniband_verbs').find(
      (entry) =>
        entry.startsWith('uverbs') &&
        readFileSync(`/sys/class/infiniband_verbs/${entry}/ibdev`, 'utf8').trim() === deviceA,
    )!;
    const node = `/dev/infiniband/${uverbs}`;
    const guid = sysfs('node_guid');

    /** What a process is told: in the list, when it opens the device, and when it opens the first that can be opened. */
    function look(library: Pick<typeof rdma, 'listDevices' | 'openDevice'>, name: string) {
      const told = { devices: library.listDevices(), first: '', error: {} };
      try {
        library.openDevice(name);
      } catch (error) {
        const { message, code, device: subject } = error as RdmaError;
        told.error = { message, code, device: subject };
      }
      const first = library.openDevice();
      told.first = first.device.name;
      first.close();
      return told;
    }

    function expectProblem(told: ReturnType<typeof look>, problem: string, code: string): void {
      const message = expect.stringContaining(problem) as string;
      expect(told.devices).toContainEqual(
        expect.objectContaining({
          name: deviceA,
          accessible: false,
          problem: { code, message },
          guid,
          nodeType: 'ca',
        }),
      );
      expect(told.error).toMatchObject({ code, device: deviceA, message });
      // The other one is not harmed, and is the first that can be opened.
      expect(told.first).not.toBe(deviceA);
    }

    it('has no character device', () => {
      renameSync(node, `${node}-away`);
      onTestFinished(() => renameSync(`${node}-away`, node));
      expectProblem(look(rdma, deviceA!), `${node} is missing: in a container pass --device`, 'ENOENT');
    });

    it('is not for this user', () => {
      const { mode } = statSync(node);
      chmodSync(node, 0o600);
      onTestFinished(() => chmodSync(node, mode));
      expectProblem(
        inOwnProcess(
          `rdma.listDevices(); process.seteuid(65534); tell((${look.toString()})(rdma, '${deviceA}'));`,
        ) as ReturnType<typeof look>,
        `this user may not open ${node}`,
        'EACCES',
      );
    });

    it('has no provider', () => {
      const told = inOwnProcess(
        `try { rdma.openDevice(); } catch ({ code, message }) { tell({ devices: rdma.listDevices(), code, message }); }`,
        ['unshare', '-m', 'sh', '-c', 'mount -t tmpfs none /etc/libibverbs.d && exec "$0" "$@"'],
      ) as { devices: Device[]; code: string; message: string };
      expect(told.code).toBe('ERR_RDMA_NO_DEVICE');
      for (const name of [deviceA, deviceB]) {
        const message = 'libibverbs has no provider for it: apt-get install ibverbs-providers';
        const problem = { code: 'ERR_RDMA_NO_PROVIDER', message };
        expect(told.devices).toContainEqual(expect.objectContaining({ name, accessible: false, problem }));
        expect(told.message).toContain(`${name} (${message})`);
      }
    });
  },
);

describe('openDevice', () => {
  it('opens by name, and the first without one', () => {
    expect(device(deviceB).device.name).toBe(deviceB);
    const first = openDevice();
    expect(first.device.name).toBe(listDevices()[0]!.name);
    first.close();
    expect(first.closed).toBe(true);
    first.close();
  });

  it('names the devices that there are when one is not', () => {
    expect(() => openDevice('mlx5_7')).toThrow(
      expect.objectContaining({
        code: 'ERR_RDMA_NO_DEVICE',
        device: 'mlx5_7',
        message: expect.stringContaining(deviceA!) as string,
      }) as Error,
    );
    expect(() => openDevice(5 as never)).toThrow(TypeError);
  });
});

describe('queryDevice', () => {
  it('tells what the device is and can do', () => {
    const attributes = device().queryDevice();
    expect(attributes.nodeGuid).toBe(sysfs('node_guid'));
    expect(attributes.sysImageGuid).toBe(sysfs('sys_image_guid'));
    expect(attributes.physPortCnt).toBe(1);
    expect(attributes.atomicCap).toBe('hca');
    for (const name of ['maxQp', 'maxQpWr', 'maxSge', 'maxCqe', 'maxMr', 'maxPd', 'maxQpRdAtom'] as const) {
      expect(attributes[name], name).toBeGreaterThan(0);
    }
    expect(attributes.maxMrSize).toBeGreaterThan(2n ** 32n);
  });
});

// What C has asked for, by another program.
describe('ibv_devinfo', () => {
  let told = '';
  beforeAll(() => {
    told = execFileSync('ibv_devinfo', ['-d', deviceA!, '-v'], { encoding: 'utf8' });
  });

  /** Each property that is a number here, with the number that a line of the program has for it. */
  function numbers(attributes: object): [string, number, number][] {
    return Object.entries(attributes).flatMap(([property, value]: [string, unknown]) => {
      if (typeof value !== 'number' && typeof value !== 'bigint') return [];
      const name =
        { lid: 'port_lid', lmc: 'port_lmc' }[property] ?? property.replace(/[A-Z]/g, '_$&').toLowerCase();
      const text = new RegExp(`^\\s*${name}:[\\t ]+(.+)$`, 'm').exec(told)?.[1];
      if (text === undefined) return [];
      // Such as "4096 (5)" of an MTU, whose bytes we tell, and "2.5 Gbps (1)" of what has a code only.
      const code = name.endsWith('mtu') ? undefined : /\((\d+)\)$/.exec(text)?.[1];
      return [[property, Number(value), Number(code ?? /^\w+/.exec(text)![0])]];
    });
  }

  it('tells the same numbers of the device', () => {
    const all = numbers(device().queryDevice());
    expect(all.length, all.join()).toBeGreaterThan(35);
    expect(all.filter(([, ours, theirs]) => ours !== theirs)).toEqual([]);
  });

  it('tells the same numbers of the port', () => {
    const all = numbers(device().queryPort());
    expect(all.length, all.join()).toBeGreaterThan(15);
    expect(all.filter(([, ours, theirs]) => ours !== theirs)).toEqual([]);
  });

  it('tells as many GIDs, in the same places', () => {
    const places = [...told.matchAll(/GID\[ *(\d+)\]/g)].map(([, place]) => Number(place));
    expect(
      device()
        .queryGidTable()
        .map((entry) => entry.index),
    ).toEqual(places);
  });
});

describe('queryPort', () => {
  it('tells the state of the port', () => {
    const port = device().queryPort(1);
    expect(port).toMatchObject({ state: 'active', linkLayer: 'ethernet', maxMtu: 4096, lid: 0 });
    expect([256, 512, 1024, 2048, 4096]).toContain(port.activeMtu);
    expect(port.maxMsgSz).toBeGreaterThanOrEqual(8 << 20);
  });

  it.each([0, 2, 256, -1, 1.5, NaN])('refuses port %s', (port) => {
    expect(() => device().queryPort(port)).toThrow(
      expect.objectContaining({ code: 'ERR_OUT_OF_RANGE' }) as Error,
    );
  });
});

describe('queryPkeyTable', () => {
  it('holds what sysfs has, as many as the port tells', () => {
    const context = device();
    const table = context.queryPkeyTable();
    expect(table).toEqual([Number(sysfs('ports/1/pkeys/0'))]);
    expect(table).toEqual([0xffff]);
    expect(table).toHaveLength(context.queryPort().pkeyTblLen);
  });

  it.each([0, 2, 257, 1.5])('refuses port %s', (port) => {
    expect(() => device().queryPkeyTable(port)).toThrow(
      expect.objectContaining({ code: 'ERR_OUT_OF_RANGE' }) as Error,
    );
  });
});

describe('the GID table', () => {
  it('holds the addresses of the network interface', () => {
    const table = device().queryGidTable();
    const address = process.env.NODE_RDMA_RXE_ADDRESS_A;
    const entry = table.find((candidate) => candidate.address === address);
    expect(entry).toMatchObject({
      type: 'roceV2',
      scope: 'ipv4',
      port: 1,
      netdev: process.env.NODE_RDMA_RXE_NETDEV_A,
    });
    expect(
      table.find((candidate) => candidate.address === process.env.NODE_RDMA_RXE_ADDRESS6_A),
    ).toMatchObject({ scope: 'global' });
    expect(
      readFileSync(`/sys/class/infiniband/${deviceA}/ports/1/gids/${entry!.index}`, 'utf8')
        .trim()
        .replace(/:/g, ''),
    ).toMatch(/^0{20}ffff/);
  });

  it('gives the IPv4 address by default, with the reason', () => {
    const choice = device().chooseGid();
    expect(choice.address).toBe(process.env.NODE_RDMA_RXE_ADDRESS_A);
    expect(choice.reason).toMatch(/RoCE v2, routable over IPv4/);
  });

  it('gives one of a network interface', () => {
    const netdev = process.env.NODE_RDMA_RXE_NETDEV_A!;
    expect(device().chooseGid({ netdev })).toMatchObject({
      netdev,
      address: process.env.NODE_RDMA_RXE_ADDRESS_A,
      reason: expect.stringContaining(`of ${netdev}, as asked for`) as string,
    });
    expect(() => device().chooseGid({ netdev: 'lo' })).toThrow(
      expect.objectContaining({
        code: 'ERR_RDMA_NO_GID',
        message: expect.stringMatching(new RegExp(`interface lo.* on ${netdev}`)) as string,
      }) as Error,
    );
  });

  it('gives another by address, and says what there is when nothing fits', () => {
    const context = device();
    const address = process.env.NODE_RDMA_RXE_ADDRESS6_A!;
    expect(context.chooseGid({ address }).address).toBe(address);
    expect(() => context.chooseGid({ address: '192.0.2.99' })).toThrow(
      expect.objectContaining({
        code: 'ERR_RDMA_NO_GID',
        device: deviceA,
        message: expect.stringContaining(address) as string,
      }) as Error,
    );
  });
});

it('makes errors that know their device', () => {
  expect(() => device().createCq({ cqe: 2 ** 31 - 1 })).toThrow(RdmaError);
  expect(() => device().createCq({ cqe: 2 ** 31 - 1 })).toThrow(
    expect.objectContaining({ code: 'ERR_RDMA_LIMIT', device: deviceA }) as Error,
  );
});
