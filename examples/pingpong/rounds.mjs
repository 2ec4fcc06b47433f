// The game: each message that arrives is sent back from where it lies.
import { checkAnswer, checkedContents, checkQuestion, plainContents } from './contents.mjs';

const SILENCE_MS = 10_000;

/**
 * Sends and receives `iters` messages, over all queue pairs together, and shows how long it took. The client begins.
 *
 * @param target whom datagrams go to
 */
export async function play({ cq, slots, qps, post }, options, target) {
  const { host, size, iters, check } = options;
  const isClient = host !== undefined;
  const verify = isClient ? checkAnswer : checkQuestion;
  const byNumber = new Map(qps.map((qp) => [qp.qpNum, qp]));
  let posted = 0;
  let sent = 0;
  let received = 0;

  const send = (qp, { wrId, message }) => {
    qp.postSend({ opcode: 'send', wrId, sge: message, ...(target && { ud: target }) });
    ++posted;
  };
  const recycle = (slot) => {
    if (check) slot.message.buffer.fill(0xff); // what does not arrive must not pass for what was there before
    post(slot);
  };

  const began = performance.now();
  if (isClient) {
    const first = check ? checkedContents(size) : plainContents(size);
    const free = slots.slice(-qps.length);
    for (const qp of qps.slice(0, iters)) {
      const slot = free.pop();
      slot.message.buffer.set(first);
      send(qp, slot);
    }
  }
  while (sent < iters || received < iters) {
    for (const { opcode, qpNum, wrId, error } of await completions(cq)) {
      if (error) throw error;
      const slot = slots[wrId];
      if (opcode === 'send') {
        ++sent;
        recycle(slot);
        continue;
      }
      ++received;
      if (check) verify(slot.message.buffer);
      if (posted < iters) send(byNumber.get(qpNum), slot);
      else recycle(slot);
    }
  }
  showRate(options, (performance.now() - began) / 1000);
}

async function completions(cq) {
  try {
    await cq.wait({ timeoutMs: SILENCE_MS });
  } catch (error) {
    if (error.code !== 'ERR_RDMA_TIMEOUT') throw error;
    throw new Error(
      `nothing came for ${SILENCE_MS / 1000} s: has the peer ended, is its -s, -m or -q another, or was a message lost (UC, UD)?`,
      { cause: error },
    );
  }
  return cq.poll();
}

function showRate({ size, iters }, seconds) {
  const bytes = size * iters * 2;
  const time = seconds.toFixed(2);
  console.log(`${bytes} bytes in ${time} seconds = ${((bytes * 8) / seconds / 1e6).toFixed(2)} Mbit/sec`);
  console.log(`${iters} iters in ${time} seconds = ${((seconds * 1e6) / iters).toFixed(2)} usec/iter`);
}
