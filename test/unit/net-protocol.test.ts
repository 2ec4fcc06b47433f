// What the ends of a connection say to each other, byte by byte: docs/net.md has the same in words.
import { describe, expect, it } from 'vitest';
import {
  decodeHello,
  decodeRefusal,
  encodeHello,
  encodeRefusal,
  FrameType,
  readAnnouncement,
  readFrameHeader,
  writeAnnouncement,
  writeFrameHeader,
} from '../../lib/net/protocol.js';

const hello = { slots: 40, reserve: 8, slabBytes: 16384, eagerLimit: 262144, maxMessage: 2 ** 30 };

describe('the hello', () => {
  it('has this layout', () => {
    expect(encodeHello(hello).toString('hex')).toBe(
      [
        '6e52444d',
        '0100',
        '2800',
        '0800',
        '0000',
        '00400000',
        '00000400',
        '00000000',
        '0000004000000000',
      ].join(''),
    );
  });

  it('comes back as it was', () => {
    expect(decodeHello(encodeHello(hello))).toEqual(hello);
  });

  it.each([
    ['nothing', undefined, /does not speak the protocol/],
    ['something else', Buffer.from('GET / HTTP/1.1'), /does not speak the protocol/],
    ['too little', encodeHello(hello).subarray(0, 12), /has 12 bytes of 32/],
    ['another version', changed(4, 2), /speaks version 2 .* and this end version 1/],
    ['no slots for data', changed(6, 8), /impossible limits/],
    ['a tiny slab', changed(13, 0), /impossible limits/],
    ['a reserve that is too small', changed(8, 1), /impossible limits/],
    ['a limit that is no safe integer', changed(31, 0xff), /impossible limits/],
  ])('%s is none', (_name, bytes, wrong) => {
    expect(decodeHello(bytes)).toEqual({ wrong: expect.stringMatching(wrong) as string });
  });
});

it('a refusal says why, in what fits', () => {
  expect(decodeRefusal(encodeRefusal('too many'))).toBe('too many');
  expect(encodeRefusal('x'.repeat(500)).length).toBeLessThanOrEqual(147);
  expect(decodeRefusal(Buffer.from('who knows what'))).toBeUndefined();
  expect(decodeRefusal(undefined)).toBeUndefined();
});

describe('a frame', () => {
  const view = new DataView(new ArrayBuffer(64));

  it('has this header', () => {
    const header = {
      type: FrameType.UPDATE,
      flags: 1,
      length: 0,
      control: 0xfffd,
      data: 0xfffffffe,
      fetched: 7,
    };
    writeFrameHeader(view, 8, header);
    expect(Buffer.from(view.buffer, 8, 16).toString('hex')).toBe('0401fdff00000000feffffff07000000');
    expect(readFrameHeader(view, 8, 16)).toEqual(header);
  });

  it.each([
    ['is too short', 1, 0, 15, /a frame of 15 bytes/],
    ['says another length', 1, 5, 20, /a frame of 20 bytes that says 5 of itself/],
    ['has an unknown type', 6, 0, 16, /a frame of type 6/],
    ['has type 0', 0, 0, 16, /a frame of type 0/],
  ])('that %s is none', (_name, type, length, bytes, wrong) => {
    writeFrameHeader(view, 0, { type, flags: 0, length, control: 0, data: 0, fetched: 0 });
    expect(readFrameHeader(view, 0, bytes)).toEqual({ wrong: expect.stringMatching(wrong) as string });
  });

  it('announces a message', () => {
    const announcement = { address: 0x7f00_1234_5678_9abcn, length: 2 ** 33 + 1, rkey: 0xdeadbeef };
    writeAnnouncement(view, 3, announcement);
    expect(readAnnouncement(view, 3)).toEqual(announcement);
    expect(Buffer.from(view.buffer, 3, 24).toString('hex')).toBe(
      'bc9a78563412007f0100000002000000efbeadde00000000',
    );
  });
});

function changed(at: number, value: number): Buffer {
  const bytes = encodeHello(hello);
  bytes[at] = value;
  return bytes;
}
