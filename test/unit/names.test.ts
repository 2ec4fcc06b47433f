import { describe, expect, it } from 'vitest';
import {
  cmEventString,
  eventTypeString,
  forkInit,
  forkStatus,
  isQptSupported,
  mbpsToRate,
  multToRate,
  nodeTypeString,
  portStateString,
  rateToMbps,
  rateToMult,
  wcStatusString,
  wrOpcodeString,
} from '../../lib/index.js';
import { cmEventTypes } from '../../lib/cm/constants.js';
import { asyncEventTypes, completionStatuses, nodeTypes, portStates } from '../../lib/verbs/constants.js';

describe('names of the C library', () => {
  it('are there for every word, and differ', () => {
    for (const names of [
      completionStatuses.map(wcStatusString),
      portStates.map(portStateString),
      asyncEventTypes.map(eventTypeString),
      cmEventTypes.map(cmEventString),
    ]) {
      expect(names.every((name) => name.length > 2)).toBe(true);
      expect(new Set(names).size).toBe(names.length);
    }
    expect(Object.values(nodeTypes).every((type) => nodeTypeString(type).length > 2)).toBe(true);
  });

  it('are those that C programs print', () => {
    expect(wcStatusString('success')).toBe('success');
    expect(wcStatusString('retryExcErr')).toBe('transport retry counter exceeded');
    expect(portStateString('active')).toBe('active');
    expect(nodeTypeString('ca')).toBe('InfiniBand channel adapter');
    expect(eventTypeString('portActive')).toBe('port active');
    expect(cmEventString('established')).toBe('RDMA_CM_EVENT_ESTABLISHED');
  });

  it('are of words only', () => {
    for (const name of [wcStatusString, portStateString, nodeTypeString, eventTypeString, cmEventString]) {
      for (const word of ['nonsense', 5, undefined, null])
        expect(() => name(word as never)).toThrow(
          expect.objectContaining({ code: 'ERR_OUT_OF_RANGE' }) as Error,
        );
    }
  });

  it('of opcodes are there where the library has them', () => {
    let name: string | undefined;
    try {
      name = wrOpcodeString('rdmaWrite');
    } catch (error) {
      expect(error).toMatchObject({ code: 'ERR_RDMA_UNSUPPORTED', syscall: 'ibv_wr_opcode_str' });
      return;
    }
    expect(name).toMatch(/write/i);
  });
});

describe('rates', () => {
  it.each([
    [2, 1, 2500],
    [5, 2, 5000],
    [3, 4, 10000],
    [7, 16, 40000],
    [10, 48, 120000],
  ])('code %i is %i times 2.5 Gbit/s, %i Mbit/s', (code, multiple, mbps) => {
    expect(rateToMult(code)).toBe(multiple);
    expect(multToRate(multiple)).toBe(code);
    expect(rateToMbps(code)).toBe(mbps);
    expect(mbpsToRate(mbps)).toBe(code);
  });

  it('that do not exist are told', () => {
    expect([rateToMult(200), rateToMbps(200), multToRate(7), mbpsToRate(1234)]).toEqual([-1, -1, 0, 0]);
    for (const convert of [rateToMult, multToRate, rateToMbps, mbpsToRate]) {
      for (const bad of [-1, 1.5, NaN, 2 ** 32]) expect(() => convert(bad)).toThrow(RangeError);
    }
  });
});

it('fork() needs nothing on this kernel, or is protected', () => {
  expect(['disabled', 'enabled', 'unneeded']).toContain(forkStatus());
  if (forkStatus() === 'unneeded') forkInit();
});

it('a mask of queue pair types says which are in it', () => {
  expect([
    isQptSupported(1 << 2, 'rc'),
    isQptSupported(1 << 2, 'ud'),
    isQptSupported(1 << 8, 'rawPacket'),
  ]).toEqual([true, false, true]);
  expect(() => isQptSupported(-1, 'rc')).toThrow(RangeError);
  expect(() => isQptSupported(1, 'x' as never)).toThrow(RangeError);
});
