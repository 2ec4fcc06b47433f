import { describe, expect, it } from 'vitest';
import {
  packPrivateData,
  PRIVATE_DATA_LIMITS,
  unpackPrivateData,
  type PrivateDataMessage,
} from '../../lib/cm/private-data.js';

const messages: [PrivateDataMessage, boolean][] = (['connect', 'accept', 'reject'] as const).flatMap(
  (message) => [
    [message, false],
    [message, true],
  ],
);

describe.each(messages)('private data of %s (datagrams: %s)', (message, datagrams) => {
  const limit = PRIVATE_DATA_LIMITS[datagrams ? 'udp' : 'tcp'][message];
  const field = (bytes: Uint8Array | undefined) => Buffer.concat([bytes ?? Buffer.alloc(0)], limit);

  it('goes as it is, up to the limit', () => {
    for (const length of [1, limit]) {
      const privateData = Buffer.alloc(length, 7);
      expect(packPrivateData({ privateData }, message, datagrams)).toBe(privateData);
    }
    expect(packPrivateData({}, message, datagrams)).toBeUndefined();
    expect(packPrivateData({ privateData: Buffer.alloc(0) }, message, datagrams)).toBeUndefined();
  });

  it('keeps its length where it is data', () => {
    for (const length of [0, 1, 2, limit - 1]) {
      const data = Buffer.alloc(length, length === 2 ? 0 : 9);
      expect(unpackPrivateData(field(packPrivateData({ data }, message, datagrams)))).toEqual(data);
    }
  });

  it('is refused beyond, with how much fits', () => {
    expect(() => packPrivateData({ privateData: Buffer.alloc(limit + 2) }, message, datagrams)).toThrow(
      new RegExp(`has ${limit + 2} bytes, 2 more than ${message}\\(\\) .* carries \\(${limit}\\)`),
    );
    expect(() => packPrivateData({ data: Buffer.alloc(limit) }, message, datagrams)).toThrow(
      expect.objectContaining({ code: 'ERR_RDMA_LIMIT' }) as Error,
    );
  });
});

it('is no data where it was not made so', () => {
  expect(unpackPrivateData(Buffer.alloc(0))).toBeUndefined();
  expect(unpackPrivateData(Buffer.alloc(56, 0xff))).toBeUndefined(); // longer than the field
  expect(unpackPrivateData(Buffer.from('GET / and so on\0\0\0\0\0'))).toBeUndefined();
  expect(unpackPrivateData(Buffer.of(1, 5, 6, 0))).toBeUndefined(); // more than it says
});

it.each([
  ['a string', { privateData: 'x' as unknown as Uint8Array }],
  ['a view of other elements', { data: new Uint16Array(2) as unknown as Uint8Array }],
  ['both', { data: Buffer.of(1), privateData: Buffer.of(1) }],
])('%s is refused', (_name, options) => {
  expect(() => packPrivateData(options, 'connect', false)).toThrow(
    expect.objectContaining({ code: 'ERR_INVALID_ARG_TYPE' }) as Error,
  );
});
