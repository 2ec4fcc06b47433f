import { describe, expect, it } from 'vitest';
import {
  FrameDecoder,
  decodePairs,
  encodeFrame,
  encodeNumbers,
  encodePairs,
  encodeSpawn,
  frameTypes,
  headerLength,
  maxPayload,
  spawnFlags,
  streams,
} from '../../lib/rxe/agent/protocol.js';

describe('frames', () => {
  const frames = [
    encodeFrame(frameTypes.hello),
    encodeFrame(frameTypes.data, 7, streams.stderr, Buffer.from('some output')),
    encodeFrame(frameTypes.exited, 0xfffffffe, 0, encodeNumbers(3, 0)),
  ];
  const bytes = Buffer.concat(frames);

  it.each([1, 2, 5, 11, 12, 13, 1000])('are found again in pieces of %i bytes', (size) => {
    const decoder = new FrameDecoder();
    const found = [];
    for (let at = 0; at < bytes.length; at += size)
      found.push(...decoder.push(bytes.subarray(at, at + size)));
    expect(
      found.map(({ type, command, stream, payload }) => encodeFrame(type, command, stream, payload)),
    ).toEqual(frames);
  });

  it('have a header of 12 bytes, little-endian', () => {
    const frame = encodeFrame(frameTypes.credit, 258, streams.stdout, Buffer.of(9));
    expect(frame.toString('hex')).toBe('01000000' + '02010000' + '11' + '01' + '0000' + '09');
    expect(headerLength).toBe(12);
  });

  it('are refused where they are too long to be true', () => {
    const header = encodeFrame(frameTypes.data);
    header.writeUInt32LE(maxPayload + 1, 0);
    expect(() => new FrameDecoder().push(header)).toThrow('not a frame');
  });

  it('are refused where the reserved bytes are not zero', () => {
    const header = encodeFrame(frameTypes.data);
    header.writeUInt16LE(1, 10);
    expect(() => new FrameDecoder().push(header)).toThrow('not a frame');
  });
});

describe('payloads', () => {
  it('carry pairs whose values hold anything but a zero byte', () => {
    const pairs = { A: 'x=y', EMPTY: '', ÜMLAUT: 'line\nbreak' };
    expect(decodePairs(encodePairs(pairs))).toEqual(pairs);
    expect(decodePairs(encodePairs({}))).toEqual({});
  });

  it('describe a command to spawn', () => {
    const payload = encodeSpawn({
      argv: ['a', '', 'b c'],
      cwd: '/x y',
      env: { K: 'v' },
      input: true,
      refresh: false,
    });
    expect(payload[0]).toBe(spawnFlags.input);
    expect(payload.subarray(1).toString()).toBe('/x y\x003\0a\0\0b c\0K=v\0');
  });
});
