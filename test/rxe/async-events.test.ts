// What a device tells by itself. Ports go down and addresses come and go here, so it has a device of its own: the wire that
// the other tests share stays as it is.
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import {
  listDevices,
  openDevice,
  type AsyncEvent,
  type AsyncEventMap,
  type Context,
} from '../../lib/index.js';
import { completions, connectedPair, device, deviceA, deviceB, end, succeeded } from '../support/device.js';

const name = 'rxe_events';
const netdev = 'events0';
const tool = (command: string) => execFileSync('/bin/sh', ['-ec', command], { stdio: 'pipe' });

beforeAll(() => {
  tool(`ip link add ${netdev} type dummy
    ip link set ${netdev} up
    ip addr add 10.77.0.1/24 dev ${netdev}
    rdma link add ${name} type rxe netdev ${netdev}`);
});

afterAll(() => {
  tool(`rdma link del ${name}
    ip link del ${netdev}`);
});

const inTime = () => ({ signal: AbortSignal.timeout(50_000) });

/** The next event of a name, which must come. */
async function next<Name extends keyof AsyncEventMap>(
  { events }: Context,
  event: Name,
): Promise<AsyncEventMap[Name][0]> {
  const [value] = (await once(events, event, inTime())) as AsyncEventMap[Name];
  return value;
}

describe('a port', () => {
  it('tells when its link goes and comes, to every context', async () => {
    const contexts = [device(name), device(name)];
    for (const [command, type, state] of [
      ['down', 'portErr', 'down'],
      ['up', 'portActive', 'active'],
    ] as const) {
      const told = Promise.all(contexts.map((context) => next(context, type)));
      tool(`ip link set ${netdev} ${command}`);
      expect(await told).toEqual([
        { type, port: 1 },
        { type, port: 1 },
      ]);
      expect(contexts[0]!.queryPort().state).toBe(state);
    }
  });

  it('tells when its addresses change, and the table has them then', async () => {
    const context = device(name);
    const has = () => context.queryGidTable().some((entry) => entry.address === '10.77.0.2');
    expect(has()).toBe(false);
    let told = next(context, 'gidChange');
    tool(`ip addr add 10.77.0.2/24 dev ${netdev}`);
    expect(await told).toEqual({ type: 'gidChange', port: 1 });
    await vi.waitFor(() => expect(has()).toBe(true), { timeout: 20_000 });
    told = next(context, 'gidChange');
    tool(`ip addr del 10.77.0.2/24 dev ${netdev}`);
    await told;
    await vi.waitFor(() => expect(has()).toBe(false), { timeout: 20_000 });
  });

  it('tells those who listen to all events', async () => {
    const context = device(name);
    const all: AsyncEvent[] = [];
    context.events.on('event', (event) => all.push(event));
    const told = next(context, 'portActive');
    tool(`ip link set ${netdev} down; ip link set ${netdev} up`);
    await told;
    expect(all.map((event) => event.type).filter((type) => type.startsWith('port'))).toEqual([
      'portErr',
      'portActive',
    ]);
  });
});

it('a connection finds the GID that it told its peer again, wherever it stands now', async () => {
  const context = device(name);
  const [x, y] = ['10.77.0.11', '10.77.0.12'];
  /** Adds or deletes both, in that order, and waits until the table has those of them that are left. */
  async function change(action: 'add' | 'del', addresses: string[]): Promise<void> {
    tool(addresses.map((address) => `ip addr ${action} ${address}/24 dev ${netdev}`).join('\n'));
    const left = () => context.queryGidTable().filter((entry) => [x, y].includes(entry.address));
    await vi.waitFor(
      () => expect(left().map((entry) => entry.address)).toEqual(action === 'add' ? addresses : []),
      { timeout: 20_000 },
    );
  }
  await change('add', [x, y]);
  const qp = context.allocPd().createQp({ type: 'rc', cq: context.createCq() });
  const { index } = context.chooseGid({ address: y });
  const endpoint = qp.endpoint({ gid: { address: y } });
  expect(endpoint.gid).toBe(`::ffff:${y}`);
  await change('del', [x, y]);
  await expect(qp.connect(endpoint)).rejects.toMatchObject({ code: 'ERR_RDMA_NO_GID' });
  await change('add', [y, x]);
  const { gid } = await qp.connect(endpoint);
  expect(gid).toMatchObject({ address: y, netdev });
  expect(gid.index).not.toBe(index);
  expect(qp.query().ahAttr.sgidIndex).toBe(gid.index);
  qp.close();
  await change('del', [x, y]);
});

describe('a context', () => {
  it('closes with events that nobody has read', () => {
    const context = device(name);
    context.events.on('event', () => {
      throw new Error('the context is closed');
    });
    tool(`ip link set ${netdev} down; ip link set ${netdev} up`);
    context.close();
    expect(context.closed).toBe(true);
  });

  it('goes on telling after a close that was refused', async () => {
    const context = device(name);
    const pd = context.allocPd();
    expect(() => context.close()).toThrow(/still hangs on it/);
    await expect(context.closeAsync()).rejects.toMatchObject({ code: 'ERR_RDMA_BUSY' });
    const told = next(context, 'gidChange');
    tool(`ip addr add 10.77.0.3/24 dev ${netdev}`);
    await told;
    tool(`ip addr del 10.77.0.3/24 dev ${netdev}`);
    pd.close();
  });

  it('tells that it is closed', async () => {
    const context = device();
    const closed = once(context.events, 'close', inTime());
    await context.closeAsync();
    await closed;
  });
});

it('a queue pair tells when its send queue has drained', async () => {
  const { a, b } = await connectedPair();
  const heard: AsyncEvent[] = [];
  b.context.events.on('event', (event) => heard.push(event));
  const write = (wrId: number) =>
    a.qp.postSend({ wrId, opcode: 'rdmaWrite', sge: { mr: a.mr, length: 64 }, remote: b.mr.remote() });
  write(1);
  await succeeded(a.cq);
  // rxe 6.1 may lose the event where requests are under way.
  const told = next(a.context, 'sqDrained');
  await a.qp.modify({ qpState: 'sqd', enSqdAsyncNotify: true });
  const event = await told;
  expect(event).toMatchObject({ type: 'sqDrained', qpNum: a.qp.qpNum });
  expect(event.element).toBe(a.qp);
  expect(heard).toEqual([]);
  await a.qp.modify({ qpState: 'rts' });
  write(2);
  expect(await succeeded(a.cq)).toMatchObject({ wrId: 2n });
});

it('a shared receive queue tells when it falls below its limit', async () => {
  const a = end(deviceA);
  const b = end(deviceB);
  const srq = b.pd.createSrq({ maxWr: 16 });
  const cq = b.context.createCq();
  const qp = b.pd.createQp({ type: 'rc', cq, srq });
  const endpoint = a.qp.endpoint();
  await a.qp.connect(qp.endpoint());
  await qp.connect(endpoint);
  srq.postRecv(Array.from({ length: 4 }, () => ({ sge: { mr: b.mr, length: 8 } })));
  srq.setLimit(3);
  const told = next(b.context, 'srqLimitReached');
  const send = { opcode: 'send' as const, sge: { mr: a.mr, length: 8 } };
  a.qp.postSend([send, send]);
  expect((await told).element).toBe(srq);
  expect(await completions(cq, 2)).toHaveLength(2);
});

it('a device that goes and comes while the program runs is in the list, or is not', async () => {
  const listed = () => listDevices().some((entry) => entry.name === name);
  expect(listed()).toBe(true);
  tool(`rdma link del ${name}`);
  await vi.waitFor(() => expect(listed()).toBe(false), { timeout: 20_000 });
  expect(() => openDevice(name)).toThrow(
    expect.objectContaining({ code: 'ERR_RDMA_NO_DEVICE', device: name }) as Error,
  );
  tool(`rdma link add ${name} type rxe netdev ${netdev}`);
  await vi.waitFor(() => expect(listed()).toBe(true), { timeout: 20_000 });
  expect(device(name).queryPort()).toMatchObject({ state: 'active' });
});
