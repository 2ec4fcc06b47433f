import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { parseByteSize } from '../../lib/cli/byte-size.js';
import { Painter } from '../../lib/cli/demo/paint.js';
import { renderMeasurements, renderOperation } from '../../lib/cli/demo/render.js';
import { formatBytes, formatFigure } from '../../lib/perf/figures.js';
import { summarize } from '../../lib/perf/statistics.js';

describe('byte sizes', () => {
  it.each([
    ['8', 8],
    ['8B', 8],
    ['4K', 4096],
    ['4k', 4096],
    ['64KiB', 65536],
    ['1 MiB', 1048576],
    ['2GB', 2 ** 31],
    ['0', 0],
  ])('%s is %i bytes', (text, bytes) => {
    expect(parseByteSize(text)).toBe(bytes);
  });

  it.each(['', 'K', '-1', '1.5K', '4X', '4 Ki', '1e3', '99999999999999G'])('"%s" is none', (text) => {
    expect(parseByteSize(text)).toBeUndefined();
  });

  it.each([
    [1, '1 B'],
    [1000, '1000 B'],
    [1024, '1 KiB'],
    [3077, '3077 B'],
    [1536 * 1024, '1536 KiB'],
    [2 ** 30, '1 GiB'],
  ])('%i is shown as %s', (bytes, text) => {
    expect(formatBytes(bytes)).toBe(text);
  });
});

describe('formatFigure', () => {
  it.each([
    [null, '–'],
    [0, '0'],
    [123456.7, '123457'],
    [100, '100'],
    [99.96, '100.0'],
    [12.34, '12.3'],
    [1.2345, '1.23'],
    [0.012345, '0.0123'],
    [1e-9, '0.000000'],
  ])('%d is %s', (value, text) => {
    expect(formatFigure(value)).toBe(text);
  });
});

describe('the table of measurements', () => {
  it('has a row for each size, with a dash for what could not be measured', () => {
    const text = renderMeasurements([
      {
        size: 4096,
        write: {
          size: 4096,
          window: 128,
          messages: 10,
          seconds: 0,
          mebibytesPerSecond: null,
          messagesPerSecond: 1234,
        },
        send: { size: 4096, rounds: 7, microseconds: { ...summarize([]), p50: 2.5, p99: 30, max: 400 } },
      },
    ]);
    const row = text.split('\n').find((line) => line.includes('4 KiB'))!;
    expect(row.split('│').map((cell) => cell.trim())).toEqual([
      '',
      '4 KiB',
      '–',
      '1234',
      '128',
      '2.50',
      '30.0',
      '400',
      '7',
      '',
    ]);
  });
});

describe('the list of operations', () => {
  const paint = new Painter(new PassThrough());

  it('tells a verified one from one that was left out', () => {
    const verified = { name: 'RDMA READ', sizes: [1, 1024], bytesVerified: 2050, skipped: null };
    expect(renderOperation(verified, paint)).toMatch(/✔ RDMA READ +1 B, 1 KiB$/);
    const skipped = { name: 'Fetch and add', sizes: [], bytesVerified: 0, skipped: 'no atomics' };
    expect(renderOperation(skipped, paint)).toMatch(/- Fetch and add +skipped: no atomics$/);
  });

  it('has no colours where the stream is no terminal', () => {
    expect(paint.good('✔')).toBe('✔');
  });
});
