import { describe, expect, it } from 'vitest';
import { Context } from '../../lib/verbs/context.js';
import { RdmaError } from '../../lib/verbs/errors.js';
import { hugePageAdvice } from '../../lib/verbs/huge-pages.js';
import { memlockAdvice, pinAdvice, readMemlock } from '../../lib/verbs/memlock.js';
import type { NativeContext } from '../../lib/verbs/native.js';

const KIB = 1024;
const limited = { limit: 64 * KIB, pinned: 16 * KIB, privileged: false };
const notThat = /so it is not that\. The machine is short of memory, .*kernel or driver \(Linux \d+\.\d+/;

describe('the advice on memory that could not be pinned', () => {
  it('tells what is pinned, the limit, and how to raise it', () => {
    expect(memlockAdvice(49 * KIB, limited)).toMatch(
      /^50176 bytes were to be pinned, 16384 bytes are pinned already, and RLIMIT_MEMLOCK is 65536 bytes for this process\. Raise it: ulimit -l/,
    );
    expect(memlockAdvice(1n << 40n, limited)).toMatch(/^1099511627776 bytes .*Raise it/);
    expect(memlockAdvice(1, { ...limited, pinned: undefined })).toMatch(
      /^1 bytes were to be pinned, and RLIMIT_MEMLOCK is 65536 bytes .*Raise it/,
    );
  });

  it('counts whole pages', () => {
    expect(memlockAdvice(48 * KIB, limited)).toMatch(/which is enough/);
    expect(memlockAdvice(48 * KIB + 1, limited)).toMatch(/Raise it/);
  });

  it('does not blame a limit that suffices, does not count, or is none', () => {
    expect(memlockAdvice(4096, limited)).toMatch(/65536 bytes for this process, which is enough, so/);
    expect(memlockAdvice(4096, limited)).toMatch(notThat);
    const privileged = memlockAdvice(1 << 30, { ...limited, privileged: true });
    expect(privileged).toMatch(/, which has CAP_IPC_LOCK, so/);
    expect(privileged).toMatch(notThat);
    const unlimited = memlockAdvice(1 << 30, { ...limited, limit: undefined });
    expect(unlimited).toMatch(/16384 bytes are pinned already, and RLIMIT_MEMLOCK is unlimited, so/);
    expect(unlimited).toMatch(notThat);
    for (const text of [privileged, unlimited]) expect(text).not.toMatch(/Raise it/);
  });

  it('is for ENOMEM; for EPERM where the limit is 0; and for nothing else', () => {
    expect(pinAdvice(12, 49 * KIB, limited)).toBe(memlockAdvice(49 * KIB, limited));
    expect(pinAdvice(1, 4096, { ...limited, limit: 0 })).toMatch(
      /^RLIMIT_MEMLOCK is 0 for this process, which may pin nothing\. Raise it/,
    );
    for (const memlock of [
      limited,
      { ...limited, limit: undefined },
      { ...limited, limit: 0, privileged: true },
    ]) {
      expect(pinAdvice(1, 4096, memlock)).toBe('');
    }
    expect(pinAdvice(22, 4096, { ...limited, limit: 0 })).toBe('');
  });

  it('knows this process', () => {
    const { limit, pinned, privileged } = readMemlock();
    if (limit !== undefined) expect(limit).toBeGreaterThanOrEqual(0);
    expect(pinned! % 4096).toBe(0);
    expect(typeof privileged).toBe('boolean');
    expect(memlockAdvice(12345)).toMatch(/^12345 bytes were to be pinned, \d+ bytes are pinned already/);
  });
});

it('a completion queue for which there is no memory gives that advice', () => {
  const native = {
    serial: 1,
    closed: false,
    queryDevice: () => ({ maxCqe: 32767, numCompVectors: 1, nodeGuid: 0n, sysImageGuid: 0n, atomicCap: 1 }),
    createCq: () => {
      throw RdmaError.fromErrno('ibv_create_cq', 12);
    },
  } as unknown as NativeContext;
  const context = new Context(native, { name: 'rxe7' } as Context['device']);
  expect(() => context.createCq({ cqe: 1000 })).toThrow(
    expect.objectContaining({
      code: 'ENOMEM',
      device: 'rxe7',
      message: expect.stringMatching(/^ibv_create_cq: ENOMEM.*\. 64000 bytes were to be pinned, /) as string,
    }) as Error,
  );
});

describe('the advice on huge pages', () => {
  const MIB = 2 ** 20;
  const kernel = [
    { size: 2 * MIB, free: 3 },
    { size: 32 * MIB, free: 0 },
  ];

  it('tells how many are free where there are too few', () => {
    expect(hugePageAdvice(12, 2 * MIB, 9 * MIB, kernel)).toMatch(
      /^5 huge pages of 2 MiB were asked for, and 3 are free\. .*hugepages-2048kB\/nr_hugepages/,
    );
  });

  it('tells which sizes there are where there is none of the one asked for', () => {
    expect(hugePageAdvice(22, 1024 * MIB, 1, kernel)).toBe(
      'This kernel has huge pages of 2 MiB and 32 MiB, none of 1 GiB: use one of those, or pageSize 0',
    );
    expect(hugePageAdvice(22, 2 * MIB, 1, [])).toMatch(/^This kernel has no huge pages .*use pageSize 0$/);
  });

  it('looks at this kernel', () => {
    expect(hugePageAdvice(22, 3 * MIB, 1)).toMatch(
      /^This kernel has (no huge pages|huge pages of \d+ [MG]iB)/,
    );
  });
});
