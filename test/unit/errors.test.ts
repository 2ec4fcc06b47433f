import { describe, expect, it } from 'vitest';
import { explain, RdmaError, WorkCompletionError } from '../../lib/verbs/errors.js';
import { native } from '../../lib/verbs/native.js';
import { CompletionReader } from '../../lib/verbs/work-completion.js';
import { CompletionFlags, completionStatuses } from '../../lib/verbs/constants.js';
import { CompletionCounters, CompletionRecord } from '../../lib/verbs/layout.js';

describe('RdmaError', () => {
  it('has the fields of Node’s system errors', () => {
    const error = RdmaError.fromErrno('ibv_reg_mr', 12, { device: 'rxe0' }, 'Do this');
    expect(error).toBeInstanceOf(Error);
    expect(error).toMatchObject({
      name: 'RdmaError',
      code: 'ENOMEM',
      errno: -12,
      syscall: 'ibv_reg_mr',
      device: 'rxe0',
    });
    expect(error.message).toBe('ibv_reg_mr: ENOMEM: not enough memory (device rxe0). Do this');
    expect(error.stack).toContain('RdmaError: ibv_reg_mr');
  });

  it.each([95, 38, 93])('is one class for what is not offered, also by errno %i', (errno) => {
    expect(RdmaError.fromErrno('ibv_alloc_dm', errno)).toMatchObject({
      code: 'ERR_RDMA_UNSUPPORTED',
      errno: -errno,
    });
  });

  it('is explained without losing anything', () => {
    const error = RdmaError.fromErrno('ibv_post_send', 22);
    error.posted = 3;
    expect(explain(error, { qpn: 17 }, () => 'Because')).toMatchObject({
      code: 'EINVAL',
      posted: 3,
      qpn: 17,
      message: expect.stringMatching(/QP 17\)\. Because$/) as string,
    });
    const other = new TypeError('x');
    expect(explain(other, {})).toBe(other);
  });
});

describe('a failed completion', () => {
  function record(status: number, id: bigint, qpNum: number, vendorError: number): ArrayBuffer {
    const bytes = new ArrayBuffer(CompletionCounters.size + CompletionRecord.size);
    const view = new DataView(bytes, CompletionCounters.size);
    view.setBigUint64(CompletionRecord.id, id, true);
    view.setUint8(CompletionRecord.status, status);
    view.setUint8(CompletionRecord.opcode, 77);
    view.setUint32(CompletionRecord.byteLength, vendorError, true);
    view.setUint32(CompletionRecord.qpNum, qpNum, true);
    return bytes;
  }

  it.each(completionStatuses.map((status, number) => [status, number] as const).slice(1))(
    '%s says what it means, and shows nothing that is not valid',
    (status, number) => {
      const completion = new CompletionReader(record(number, (7n << 32n) | 9n, 17, 0x81)).read(0);
      expect(Object.keys(completion).sort()).toEqual(['error', 'qpNum', 'status', 'wrId']);
      expect(completion).toMatchObject({ status, wrId: (7n << 32n) | 9n, qpNum: 17 });
      expect(completion.error).toBeInstanceOf(WorkCompletionError);
      expect(completion.error).toMatchObject({
        name: 'WorkCompletionError',
        code: 'ERR_RDMA_COMPLETION',
        vendorError: 0x81,
        qpn: 17,
      });
      expect(completion.error!.message).toMatch(
        /^work request 30064771081 on QP 17 failed with \w+, vendor error 0x81: .{10}/,
      );
    },
  );

  it('is the cause of what is flushed after it, on its queue pair only', () => {
    const records = record(10, 1n, 17, 0);
    const reader = new CompletionReader(records);
    const first = reader.read(0).error;
    const bytes = new Uint8Array(records);
    bytes.set(new Uint8Array(record(5, 2n, 17, 0)));
    const flushed = reader.read(0).error!;
    expect(flushed.cause).toBe(first);
    expect(flushed.message).toMatch(/First failed: work request 1 with remAccessErr/);
    bytes.set(new Uint8Array(record(5, 3n, 18, 0)));
    expect(reader.read(0).error!.cause).toBeUndefined();
    reader.forget(17);
    bytes.set(new Uint8Array(record(5, 4n, 17, 0)));
    expect(reader.read(0).error!.cause).toBeUndefined();
  });
});

describe('a receive that carried more than bytes', () => {
  const read = (flags: number) => {
    const bytes = new ArrayBuffer(CompletionCounters.size + CompletionRecord.size);
    const view = new DataView(bytes, CompletionCounters.size);
    view.setUint8(CompletionRecord.opcode, 128);
    view.setUint8(CompletionRecord.flags, flags);
    view.setUint32(CompletionRecord.immData, 0xfeedbeef, true);
    return new CompletionReader(bytes).read(0);
  };

  it('tells the rkey that it invalidated, which is no immediate data', () => {
    const completion = read(CompletionFlags.WITH_INV);
    expect(completion).toMatchObject({ status: 'success', opcode: 'recv', invalidatedRkey: 0xfeedbeef });
    expect(completion).not.toHaveProperty('immData');
  });

  it('tells immediate data, which is no rkey; and neither where there is none', () => {
    const completion = read(CompletionFlags.WITH_IMM);
    expect(completion.immData).toBe(0xfeedbeef);
    expect(completion).not.toHaveProperty('invalidatedRkey');
    expect(read(0)).not.toHaveProperty('immData');
    expect(read(0)).not.toHaveProperty('invalidatedRkey');
  });
});

describe('native calls with wrong arguments', () => {
  const addon = native();

  it.each([undefined, null, 5, {}, [], Symbol('x')])('openDevice(%o) is a TypeError', (value) => {
    expect(() => addon.openDevice(value as string)).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_ARG_TYPE' }) as Error,
    );
  });

  it('openDevice of no device says ENODEV', () => {
    expect(() => addon.openDevice('none')).toThrow(
      expect.objectContaining({ code: 'ENODEV', syscall: 'ibv_open_device' }) as Error,
    );
  });

  it('setCallbacks takes functions only', () => {
    expect(() =>
      addon.setCallbacks(1 as never, 2 as never, 3 as never, 4 as never, 5 as never, 6 as never),
    ).toThrow(TypeError);
  });
});
