import { expect, it } from 'vitest';
import { udpSourcePort } from '../../lib/index.js';

it.each([
  [0, 0xc000],
  [1, 0xc001],
  [0x3fff, 0xffff],
  [0x4000, 0xc001], // the upper six bits are folded into the lower fourteen
  [0x4001, 0xc000],
  [0xfc000, 0xc03f],
  [0xfffff, 0xffc0],
])('flow label %i leads to port %i', (flowLabel, port) => {
  expect(udpSourcePort(flowLabel)).toBe(port);
});

it.each([
  [-1, 'ERR_OUT_OF_RANGE'],
  [2 ** 20, 'ERR_OUT_OF_RANGE'],
  [0.5, 'ERR_OUT_OF_RANGE'],
  [NaN, 'ERR_OUT_OF_RANGE'],
  ['1' as never, 'ERR_INVALID_ARG_TYPE'],
  [undefined as never, 'ERR_INVALID_ARG_TYPE'],
])('%s is no flow label', (flowLabel, code) => {
  expect(() => udpSourcePort(flowLabel)).toThrow(expect.objectContaining({ code }) as Error);
});
