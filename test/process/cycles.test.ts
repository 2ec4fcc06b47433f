import { readdirSync } from 'node:fs';
import { expect, it } from 'vitest';
import { openDevice } from '../../lib/index.js';
import { deviceA } from '../support/device.js';
import { resources } from './run.js';

/** Opens a device with one object of each kind, and closes all of it. */
async function cycle(): Promise<void> {
  const context = openDevice(deviceA);
  const pd = context.allocPd();
  const channel = context.createCompletionChannel();
  const cq = context.createCq({ cqe: 64 });
  const ofChannel = context.createCq({ cqe: 64, channel });
  const srq = pd.createSrq({ maxWr: 16 });
  const mr = pd.regMrSync(1 << 16);
  const qp = pd.createQp({ type: 'rc', sendCq: cq, recvCq: ofChannel, srq });
  qp.modifySync({ qpState: 'init', pkeyIndex: 0, portNum: 1, qpAccessFlags: 0 });
  srq.postRecv({ sge: { mr } });
  context.events.on('event', () => {});
  await context.closeAsync({ cascade: true });
}

async function cycles(count: number): Promise<void> {
  for (let i = 0; i < count; ++i) await cycle();
}

const descriptors = () => readdirSync('/proc/self/fd').length;

it('a thousand lives leave no memory, descriptor or verbs object behind', async () => {
  // The heap and the allocator reach their usual size first.
  await cycles(150);
  const before = { rss: process.memoryUsage().rss, descriptors: descriptors() };
  await cycles(850);
  expect(descriptors()).toBeLessThanOrEqual(before.descriptors);
  // 850 lives of 64 KiB each, and of the queues, would be above 100 MiB.
  expect(process.memoryUsage().rss - before.rss).toBeLessThan(40 << 20);
  expect(resources('own')).toEqual([]);
});
