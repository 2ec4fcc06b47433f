import { describe, expect, it } from 'vitest';
import { QpAttributeMask as M } from '../../lib/verbs/constants.js';
import {
  packAttributes,
  unpackAttributes,
  type QueuePairAttributes,
} from '../../lib/verbs/queue-pair-attributes.js';

const everything: QueuePairAttributes = {
  qpState: 'rtr',
  curQpState: 'init',
  pathMtu: 2048,
  pathMigState: 'armed',
  qkey: 0xfedcba98,
  rqPsn: 0xfffffe,
  sqPsn: 0x123456,
  destQpNum: 0xabcdef,
  qpAccessFlags: 15,
  pkeyIndex: 3,
  altPkeyIndex: 4,
  enSqdAsyncNotify: true,
  maxRdAtomic: 16,
  maxDestRdAtomic: 17,
  minRnrTimer: 12,
  portNum: 1,
  timeout: 14,
  retryCnt: 6,
  rnrRetry: 5,
  altPortNum: 2,
  altTimeout: 15,
  rateLimit: 100_000,
  ahAttr: {
    dgid: '10.9.0.2',
    sgidIndex: 1,
    flowLabel: 0xfffff,
    hopLimit: 63,
    trafficClass: 104,
    sl: 3,
    dlid: 7,
    portNum: 1,
    srcPathBits: 1,
    staticRate: 2,
  },
  altAhAttr: {
    dgid: '2001:db8::2',
    sgidIndex: 2,
    flowLabel: 5,
    hopLimit: 62,
    trafficClass: 8,
    sl: 1,
    dlid: 9,
    portNum: 2,
    srcPathBits: 2,
    staticRate: 3,
  },
};

it('brings every field across as it was, and sets the bit of each', () => {
  const { words, mask } = packAttributes(everything);
  expect(unpackAttributes(words)).toMatchObject({
    ...everything,
    ahAttr: { ...everything.ahAttr, dgid: '::ffff:10.9.0.2' },
  });
  expect(mask).toBe(Object.values(M).reduce((all, bit) => all | bit, 0) & ~M.CAP);
});

it('sets nothing that is not given', () => {
  const { words, mask } = packAttributes({});
  expect(mask).toBe(0);
  expect(words.every((word) => word === 0)).toBe(true);
  expect(packAttributes({ timeout: undefined }).mask).toBe(0);
});

it('gives a hop limit of 64 where none is given', () => {
  expect(unpackAttributes(packAttributes({ ahAttr: { dgid: '::1' } }).words).ahAttr.hopLimit).toBe(64);
});

it('takes the right to flush, which the connection manager of Linux 6.2 and newer gives', () => {
  const { words } = packAttributes({ qpAccessFlags: 0x30e });
  expect(unpackAttributes(words).qpAccessFlags).toBe(0x30e);
});

// What the kernel takes without a word: retry counts above 7 mean for ever, a QPN of 25 bits loses one.
describe('refuses what is out of range', () => {
  it.each([
    ['rqPsn', 2 ** 24],
    ['sqPsn', -1],
    ['destQpNum', 2 ** 24],
    ['retryCnt', 8],
    ['rnrRetry', 8],
    ['timeout', 32],
    ['minRnrTimer', 32],
    ['maxRdAtomic', 129],
    ['maxDestRdAtomic', 129],
    ['pathMtu', 0],
    ['pathMtu', 3],
    ['pathMtu', 1500],
    ['pathMtu', 8192],
    ['qpAccessFlags', 16],
    ['qpAccessFlags', 0x40f],
    ['pkeyIndex', 65536],
    ['portNum', 256],
    ['qkey', 2 ** 32],
    ['timeout', 1.5],
    ['timeout', NaN],
    ['qpState', 'ready'],
    ['qpState', 3],
    ['qpState', '__proto__'],
    ['pathMigState', 'gone'],
  ])('%s %s', (name, value) => {
    expect(() => packAttributes({ [name]: value })).toThrow(
      expect.objectContaining({ code: 'ERR_OUT_OF_RANGE' }) as Error,
    );
  });

  it.each([
    ['flowLabel', 2 ** 20],
    ['sgidIndex', 256],
    ['sgidIndex', -1],
    ['hopLimit', 256],
    ['trafficClass', 256],
    ['sl', 16],
    ['dgid', 'nowhere'],
    ['colour', 1],
  ])('ahAttr.%s %s', (name, value) => {
    expect(() => packAttributes({ ahAttr: { [name]: value } })).toThrow(
      expect.objectContaining({ code: 'ERR_OUT_OF_RANGE' }) as Error,
    );
  });

  it.each([
    ['timeout', '14'],
    ['rqPsn', 5n],
    ['ahAttr', 7],
    ['ahAttr', null],
  ])('%s of the wrong type', (name, value) => {
    expect(() => packAttributes({ [name]: value })).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_ARG_TYPE' }) as Error,
    );
  });

  it('an attribute that does not exist, and attributes that are none', () => {
    expect(() => packAttributes({ retries: 3 } as never)).toThrow(/retries/);
    expect(() => packAttributes(5 as never)).toThrow(/must be an object/);
  });
});
