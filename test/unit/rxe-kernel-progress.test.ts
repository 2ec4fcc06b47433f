import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';

import { BuildProgress } from '../../lib/cli/build-progress.js';

let written: string[];
const stream = (isTTY: boolean) => ({ isTTY, write: (text: string) => written.push(text) > 0 });

beforeEach(() => {
  written = [];
  vi.useFakeTimers();
});
afterEach(() => vi.useRealTimers());

/** A build that compiles `seconds` long, and reports twice a second. */
function build(progress: BuildProgress, seconds: number): void {
  progress.step('compiling');
  for (let half = 1; half <= seconds * 2; half++) {
    vi.advanceTimersByTime(500);
    progress.part(half / (seconds * 2));
  }
  progress.end();
}

describe('the progress of a build', () => {
  test('is a line now and then where lines stay', () => {
    build(new BuildProgress(stream(false)), 35);
    expect(written).toEqual([
      '  0:00  compiling\n',
      '  0:10  28 %\n',
      '  0:20  57 %\n',
      '  0:30  85 %\n',
      '  0:35  100 %\n',
    ]);
  });

  test('is one line that changes on a terminal', () => {
    build(new BuildProgress(stream(true)), 62);
    expect(written.join('').match(/\n/g)).toHaveLength(2);
    expect(written.at(-2)).toBe('\r\x1b[K  1:02  100 %');
    expect(written.at(-1)).toBe('\n');
  });
});
