// The talk over rdma_cm, with a connection that is played: what comes at the worst moment must not be lost.
import { describe, expect, it } from 'vitest';
import type { EventChannel } from '../../lib/cm/event-channel.js';
import type { CmId } from '../../lib/cm/id.js';
import { CmExchange } from '../../lib/perf/wire/cm.js';
import type { MemoryRegion } from '../../lib/verbs/memory-region.js';

const answer = Buffer.from('the answer');

/** @param looks so many find nothing, the next one finds the answer, and later ones nothing again */
function played(looks: number) {
  let left = looks;
  const region = () => ({ buffer: Buffer.alloc(4096) }) as unknown as MemoryRegion;
  const messages = { incoming: region(), outgoing: region() };
  const poll = () => {
    if (left-- !== 0) return [];
    answer.copy(messages.incoming.buffer);
    return [{ byteLen: answer.length }];
  };
  const posted: string[] = [];
  const id = {
    peerAddress: { address: '10.9.0.2' },
    state: 'connected',
    qp: { recvCq: { poll } },
    postSend: () => posted.push('send'),
    postRecv: () => posted.push('receive'),
    getSendComp: () => Promise.resolve({}),
    getRecvComp: () => {
      for (let look = 0; look < 10; ++look)
        for (const completion of poll()) return Promise.resolve(completion);
      return Promise.reject(new Error('nothing came'));
    },
  };
  const exchange = new CmExchange(
    'client',
    {} as unknown as EventChannel,
    id as unknown as CmId,
    messages,
    undefined,
    undefined,
  );
  return { exchange, posted, id };
}

describe('a message', () => {
  it.each([0, 1, 2, 3, 4])('is heard whenever it comes: after %i looks', async (looks) => {
    const { exchange, posted } = played(looks);
    expect(await exchange.swap(Buffer.alloc(answer.length), 1000)).toEqual(answer);
    expect(posted).toEqual(['send', 'receive']);
  });

  it.each([0, 1, 2])('that somebody looks for meanwhile is still there: after %i looks', async (looks) => {
    const { exchange } = played(looks);
    for (let look = 0; look <= looks; ++look) expect(exchange.heard).toBe(look === looks);
    expect(exchange.gone).toBe(false);
    expect(await exchange.swap(Buffer.alloc(answer.length), 1000)).toEqual(answer);
  });

  it('that came before the peer went is heard, and then that it went', async () => {
    const { exchange, id } = played(0);
    id.state = 'disconnected';
    expect(await exchange.swap(Buffer.alloc(answer.length), 1000)).toEqual(answer);
    await expect(exchange.swap(Buffer.alloc(answer.length), 1000)).rejects.toMatchObject({
      code: 'ERR_RDMA_PEER_LOST',
    });
  });
});
