// How a case of conformance is written: what it is of, which cases of rdma-core's own suite ask the same, and what came of it. The
// table at the end of a run is made from the marks that are left here, by scripts/conformance-reporter.js.
import { readFileSync } from 'node:fs';
import { release } from 'node:os';
import { expect, it } from 'vitest';

/** What a case returns that has asserted how the device refuses. */
export const REFUSED = 'refused';

export interface Mark {
  capability: string;
  /** Names in rdma-core's suite, without `test_`; none where it does not ask. */
  answers: string[];
  refused: boolean;
}

declare module 'vitest' {
  interface TaskMeta {
    conformance?: Mark;
  }
}

/** Makes the function by which the cases of a capability are written. */
export function capability(name: string) {
  return (title: string, answers: string | string[], body: () => unknown): void => {
    const names = [answers].flat();
    it(`${name}: ${title}${names.length > 0 ? ` (${names.join(', ')})` : ''}`, async ({ task }) => {
      const mark: Mark = { capability: name, answers: names, refused: false };
      task.meta.conformance = mark;
      mark.refused = (await body()) === REFUSED;
    });
  };
}

/** Asserts an error by some of its properties. */
export function fails(work: () => unknown, error: { code: string; syscall?: string }): void {
  expect(work).toThrow(expect.objectContaining(error) as Error);
}

/** Asserts that the device has nothing of the kind: the case ends with this as its result. */
export function refused(syscall: string, work: () => unknown): typeof REFUSED {
  fails(work, { code: 'ERR_RDMA_UNSUPPORTED', syscall });
  return REFUSED;
}

/** Whether the kernel is of this version or newer. */
export function kernelIs(major: number, minor: number): boolean {
  const [x, y] = release().split('.').map(Number) as [number, number];
  return x > major || (x === major && y >= minor);
}

/** The release of rdma-core that libibverbs is of, as its file is named. Of a process that has loaded it. */
export function rdmaCoreRelease(): number {
  const name = /libibverbs\.so\.1\.\d+\.(\d+)/.exec(readFileSync('/proc/self/maps', 'utf8'));
  if (!name) throw new Error('libibverbs is not loaded, or its file has no release in its name');
  return Number(name[1]);
}
