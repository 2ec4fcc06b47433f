import { describe, expect, it } from 'vitest';
import * as layout from '../../lib/verbs/layout.js';
import { native } from '../../lib/verbs/native.js';

const header = native().headerConstants();

const { sourceQp, ...completionRecord } = layout.CompletionRecord;
const { addressHandle, remoteQpn, remoteQkey, ...sendDescriptor } = layout.SendDescriptor;

describe.each([
  ['sendDescriptor', sendDescriptor],
  ['receiveDescriptor', layout.ReceiveDescriptor],
  ['scatterGatherElement', layout.ScatterGatherElement],
  ['completionRecord', completionRecord],
  ['queueCounters', layout.QueueCounters],
  ['completionCounters', layout.CompletionCounters],
] as const)('%s', (name, offsets) => {
  it('has the offsets and the size of the C++ struct', () => {
    expect(offsets).toEqual(header[name]);
  });
});

it('keeps the source queue pair, a bit field, between its neighbours', () => {
  expect(sourceQp).toBe(completionRecord.qpNum + 4);
  expect(sourceQp + 4).toBe(completionRecord.pkeyIndex);
});

it('has what a datagram needs in the places of rkey and remote address', () => {
  expect([addressHandle, remoteQpn, remoteQkey]).toEqual([
    sendDescriptor.rkey,
    sendDescriptor.remoteAddress,
    sendDescriptor.remoteAddress + 4,
  ]);
});

it('agrees on the other numbers', () => {
  expect(header.other).toEqual({
    inlineArea: layout.INLINE_AREA,
    qpAttributeWords: layout.QP_ATTRIBUTE_WORDS,
  });
});
