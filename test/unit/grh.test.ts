import { describe, expect, it } from 'vitest';
import { parseGid } from '../../lib/verbs/gid.js';
import { GRH_BYTES, parseGrh } from '../../lib/verbs/grh.js';

describe('parseGrh', () => {
  it('reads an IPv6 header', () => {
    const bytes = new Uint8Array(GRH_BYTES + 10).fill(0xaa);
    const view = new DataView(bytes.buffer);
    view.setUint32(0, (6 << 28) | (0x68 << 20) | 0xabcde);
    view.setUint8(7, 63);
    bytes.set(parseGid('2001:db8::1'), 8);
    bytes.set(parseGid('2001:db8::2'), 24);
    expect(parseGrh(bytes)).toEqual({
      sgid: '2001:db8::1',
      dgid: '2001:db8::2',
      trafficClass: 0x68,
      flowLabel: 0xabcde,
      hopLimit: 63,
    });
  });

  it('reads an IPv4 header behind 20 bytes of anything', () => {
    const bytes = new Uint8Array(GRH_BYTES);
    bytes.set([0x45, 0x68, 0, 60, 0, 0, 0, 0, 62, 17, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2], 20);
    expect(parseGrh(bytes)).toEqual({
      sgid: '::ffff:10.9.0.1',
      dgid: '::ffff:10.9.0.2',
      trafficClass: 0x68,
      flowLabel: 0,
      hopLimit: 62,
    });
  });

  it.each([
    ['too short', new Uint8Array(39)],
    ['neither header', new Uint8Array(40)],
    ['no bytes', 'text'],
  ])('refuses what is %s', (_name, bytes) => {
    expect(() => parseGrh(bytes as Uint8Array)).toThrow(
      expect.objectContaining({
        code: expect.stringMatching(/^ERR_(OUT_OF_RANGE|INVALID_ARG_TYPE)$/) as string,
      }) as Error,
    );
  });
});
