import type { Socket } from 'node:net';
import { constants } from 'node:os';
import type { AgentClient } from '../agent/client.js';
import {
  FrameDecoder,
  encodeFrame,
  encodeNumbers,
  encodePairs,
  frameTypes,
  streams,
  type Frame,
} from '../agent/protocol.js';
import type { KeptFacts } from './facts.js';

/**
 * Lets one more client use the machine: passes frames between its socket and the agent, with command numbers of its own
 * exchanged for numbers that no other client has. Credits pass through, so that a slow client stalls itself only.
 */
export function relay(socket: Socket, client: AgentClient, facts: KeptFacts, stop: () => void): void {
  const numbers = new Map<number, number>();
  const decoder = new FrameDecoder();
  const answer = (type: number, command: number, stream: number, payload: Buffer): void => {
    if (socket.writable) socket.write(encodeFrame(type, command, stream, payload));
  };

  const begin = ({ command, payload }: Frame): void => {
    const id = client.connect({
      handle: (frame) => {
        const over = frame.type === frameTypes.exited || frame.type === frameTypes.notStarted;
        if (over) numbers.delete(command);
        answer(frame.type, command, frame.stream, frame.payload);
      },
      fail: () => socket.destroy(),
    });
    numbers.set(command, id);
    client.forward(frameTypes.spawn, id, 0, payload);
  };

  const handle = (frame: Frame): void => {
    if (frame.type === frameTypes.spawn) return begin(frame);
    if (frame.type === frameTypes.stop) return stop();
    if (frame.type === frameTypes.sync) {
      const synced = (): void => answer(frameTypes.synced, 0, 0, Buffer.alloc(0));
      return void client.sync().then(synced, () => socket.destroy());
    }
    const id = numbers.get(frame.command);
    if (id !== undefined) client.forward(frame.type, id, frame.stream, frame.payload);
  };

  socket.on('data', (bytes: Buffer) => {
    try {
      decoder.push(bytes).forEach(handle);
    } catch {
      socket.destroy();
    }
  });
  socket.on('error', () => socket.destroy());
  socket.on('close', () => {
    // Nobody waits for these any more. Their last output has nowhere to go.
    for (const id of numbers.values()) {
      for (const stream of [streams.stdout, streams.stderr]) {
        client.forward(frameTypes.close, id, stream, Buffer.alloc(0));
      }
      client.forward(frameTypes.signal, id, 0, encodeNumbers(constants.signals.SIGKILL));
    }
  });
  answer(frameTypes.ready, 0, 0, encodePairs({ facts: JSON.stringify(facts) }));
}
