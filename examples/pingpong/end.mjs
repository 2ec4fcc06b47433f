// One end: a device, its queue pairs, and memory in slots of one message each.
import { openDevice } from 'node-rdma';

/**
 * Opens an end as far as it must be before the peer hears of it: queue pairs in INIT, with receives posted.
 *
 * @param settings the type of the queue pairs; `header`: bytes that the device puts in front of each message; `shared`:
 * whether the queue pairs take receives from one queue
 */
export async function openEnd(options, { type, header = 0, shared = false, qkey }) {
  const { size, queuePairs, rxDepth, port } = options;
  const context = openDevice(options.deviceName);
  const pd = context.allocPd();
  const count = rxDepth + queuePairs; // the client's first messages have slots of their own
  const cq = context.createCq({ cqe: count });
  const memory = await pd.regMr(count * (header + size));
  const slots = Array.from({ length: count }, (_, wrId) => {
    const whole = memory.slice(wrId * (header + size), header + size);
    return { wrId, whole, message: whole.slice(header) };
  });

  const srq = shared ? pd.createSrq({ maxWr: count }) : undefined;
  const qps = [];
  for (let i = 0; i < queuePairs; ++i) {
    const qp = pd.createQp({ type, cq, ...(shared ? { srq } : { maxRecvWr: count }) });
    await qp.init({ port, ...(qkey !== undefined && { qkey }), qpAccessFlags: 0 });
    qps.push(qp);
  }
  const post = ({ wrId, whole }) => (srq ?? qps[0]).postRecv({ wrId, sge: whole });
  slots.slice(0, rxDepth).forEach(post);
  return { context, pd, cq, slots, qps, post, gid: selectGid(context, options) };
}

/** A GID by its address or by its index; none is the library's choice. */
function selectGid(context, { gid, port }) {
  if (gid === undefined) return {};
  if (!/^\d+$/.test(gid)) return { address: gid };
  const entry = context.queryGidTable(port).find(({ index }) => index === Number(gid));
  if (!entry) throw new RangeError(`port ${port} of ${context.device.name} has no GID ${gid}`);
  return { address: entry.address, type: entry.type };
}
