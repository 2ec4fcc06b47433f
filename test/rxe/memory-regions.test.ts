import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { markAsUntransferable } from 'node:worker_threads';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Access, RemoteRegion, type MemoryRegion } from '../../lib/index.js';
import {
  ALL_REMOTE,
  connectedPair,
  device,
  deviceA,
  pattern,
  succeeded,
  type End,
} from '../support/device.js';
import { inOwnProcess } from '../support/own-process.js';

const pd = () => device().allocPd();

/** From Node.js 22 on. */
const canTransfer = 'transfer' in ArrayBuffer.prototype;
const transfer = (buffer: ArrayBuffer, method: 'transfer' | 'transferToFixedLength' = 'transfer') =>
  (buffer as unknown as Record<typeof method, () => ArrayBuffer>)[method]();

/** Its length after an attempt to give it to another thread: Node.js 20 makes a copy, later versions throw. */
function triesToMove(buffer: ArrayBuffer): number {
  try {
    structuredClone(buffer, { transfer: [buffer] });
  } catch (error) {
    expect(error).toMatchObject({ name: 'DataCloneError' });
  }
  return buffer.byteLength;
}

describe('memory of the library', () => {
  it('is page-aligned, zeroed, and as long as was asked for', async () => {
    const mr = await pd().regMr(5000, { access: ALL_REMOTE });
    expect(mr.length).toBe(5000);
    expect(mr.buffer).toHaveLength(5000);
    expect(mr.buffer.every((byte) => byte === 0)).toBe(true);
    expect(mr.address % 4096n).toBe(0n);
    expect(mr.rkey).not.toBe(0);
    expect(mr.remote()).toEqual(new RemoteRegion(mr.address, mr.rkey, 5000));
  });

  it('has a key for peers only where they are let in (rxe)', () => {
    const domain = pd();
    expect(domain.regMrSync(64).rkey).toBe(0);
    const open = domain.regMrSync(64, { access: ALL_REMOTE });
    expect(open.rkey).toBe(open.lkey);
    expect(open.rkey).not.toBe(0);
  });

  it('reads as empty after close, through every view', () => {
    const mr = pd().regMrSync(4096);
    const view = new Uint8Array(mr.buffer.buffer);
    view[0] = 1;
    mr.close();
    expect(mr.closed).toBe(true);
    expect(mr.buffer).toHaveLength(0);
    expect(view).toHaveLength(0);
    mr.close();
  });

  it('cannot be transferred to another thread', () => {
    const mr = pd().regMrSync(4096);
    expect(triesToMove(mr.buffer.buffer as ArrayBuffer)).toBe(4096);
  });

  it.each<[string, (mr: MemoryRegion) => unknown]>([
    ['marked as untransferable', ({ buffer }) => markAsUntransferable(buffer.buffer)],
    ['registered once more', ({ buffer, pd }) => pd.regMrSync(buffer)],
    ['registered once more in another domain', ({ buffer }) => pd().regMrSync(buffer)],
  ])('can be closed when its ArrayBuffer was %s', (_name, mark) => {
    const mr = pd().regMrSync(4096);
    mark(mr);
    mr.buffer.fill(1);
    mr.close();
    expect(mr.closed).toBe(true);
  });

  it.skipIf(!canTransfer)('stays with the device when its ArrayBuffer is detached', async () => {
    const { a, b } = await connectedPair();
    b.mr.buffer.fill(7, 0, 100);
    const moved = transfer(b.mr.buffer.buffer as ArrayBuffer);
    expect(moved.byteLength).toBe(b.mr.length);
    expect(b.mr.buffer).toHaveLength(0);
    expect(b.mr.slice(100).buffer).toHaveLength(0);
    a.qp.postSend({
      opcode: 'rdmaRead',
      sge: { mr: a.mr, length: 100 },
      remote: { address: b.mr.address, rkey: b.mr.rkey },
    });
    await succeeded(a.cq);
    expect(a.mr.buffer.subarray(0, 101)).toEqual(Buffer.concat([Buffer.alloc(100, 7), Buffer.alloc(1)]));
  });

  it('is registered on this thread or on another, in one wait or in many', async () => {
    const domain = pd();
    const regions = await Promise.all(Array.from({ length: 20 }, (_, i) => domain.regMr(1000 * (i + 1))));
    expect(new Set(regions.map((region) => region.lkey)).size).toBe(20);
    expect(new Set(regions.map((region) => region.slot)).size).toBe(20);
  });
});

describe('memory of the user', () => {
  it.each([
    ['a Uint8Array', () => new Uint8Array(4096)],
    ['part of one', () => new Uint8Array(8192).subarray(100, 4196)],
    ['a Buffer of its own', () => Buffer.alloc(4096)],
    ['an ArrayBuffer', () => new ArrayBuffer(4096)],
    ['a SharedArrayBuffer', () => new SharedArrayBuffer(4096)],
    ['a Float64Array', () => new Float64Array(512)],
    ['a DataView', () => new DataView(new ArrayBuffer(4096))],
  ])('%s is read and written in place', async (_name, make) => {
    const { a, b } = await connectedPair();
    const source = make();
    const mr = b.pd.regMrSync(source, { access: ALL_REMOTE });
    expect(mr.length).toBe(4096);
    const bytes = ArrayBuffer.isView(source)
      ? new Uint8Array(source.buffer, source.byteOffset, source.byteLength)
      : new Uint8Array(source);
    a.mr.buffer.write('to the user');
    a.qp.postSend({ opcode: 'rdmaWrite', sge: { mr: a.mr, length: 11 }, remote: mr.remote(64) });
    await succeeded(a.cq);
    expect(Buffer.from(bytes.slice(64, 75)).toString()).toBe('to the user');
    bytes[5] = 55;
    a.qp.postSend({ opcode: 'rdmaRead', sge: { mr: a.mr, offset: 100, length: 1 }, remote: mr.remote(5) });
    await succeeded(a.cq);
    expect(a.mr.buffer[100]).toBe(55);
    mr.close();
    expect(bytes[5]).toBe(55);
  });

  it('cannot be transferred away while it is registered', () => {
    const buffer = new ArrayBuffer(4096);
    pd().regMrSync(buffer);
    expect(triesToMove(buffer)).toBe(4096);
  });

  it.skipIf(!canTransfer)('cannot be moved by its own methods', () => {
    const buffer = new ArrayBuffer(4096);
    const domain = pd();
    domain.regMrSync(buffer);
    domain.regMrSync(buffer);
    for (const method of ['transfer', 'transferToFixedLength'] as const) {
      expect(() => transfer(buffer, method)).toThrow(/cannot be transferred: it was registered/);
    }
    expect(buffer.byteLength).toBe(4096);
  });
});

describe('a slice', () => {
  it('of a slice goes into requests at both ends, as what it is a part of does', async () => {
    const { a, b } = await connectedPair();
    const from = a.mr.slice(1000, 500).slice(100, 50);
    const to = b.mr.slice(2000).slice(24, 60);
    expect(from).toMatchObject({ mr: a.mr, offset: 1100, length: 50 });
    expect(to).toMatchObject({ mr: b.mr, offset: 2024, length: 60 });
    expect(to.remote()).toEqual(new RemoteRegion(b.mr.address + 2024n, b.mr.rkey, 60));
    from.buffer.fill(0x5a);
    expect(a.mr.buffer.subarray(1099, 1151)).toEqual(
      Buffer.concat([Buffer.alloc(1), Buffer.alloc(50, 0x5a), Buffer.alloc(1)]),
    );
    b.qp.postRecv({ sge: to });
    a.qp.postSend({ opcode: 'send', sge: from });
    await succeeded(a.cq);
    expect((await succeeded(b.cq)).byteLen).toBe(50);
    expect(b.mr.buffer.subarray(2023, 2084)).toEqual(
      Buffer.concat([Buffer.alloc(1), Buffer.alloc(50, 0x5a), Buffer.alloc(10)]),
    );
    expect(to.buffer).toEqual(Buffer.concat([Buffer.alloc(50, 0x5a), Buffer.alloc(10)]));
    a.qp.postSend({ opcode: 'rdmaWrite', sge: from.slice(0, 10), remote: to.slice(50).remote() });
    await succeeded(a.cq);
    expect(to.buffer).toEqual(Buffer.alloc(60, 0x5a));
    expect(b.mr.buffer[2084]).toBe(0);
  });

  it('is refused outside, and when its region is closed', async () => {
    const { a } = await connectedPair();
    const mr = a.pd.regMrSync(100);
    const slice = mr.slice(10, 80);
    for (const wrong of [
      () => mr.slice(101),
      () => mr.slice(-1),
      () => mr.slice(50, 51),
      () => mr.slice(0.5),
      () => slice.slice(81),
      () => slice.slice(0, 81),
      () => slice.slice(-1, 5),
      () => slice.slice(NaN),
    ]) {
      expect(wrong, wrong.toString()).toThrow(RangeError);
    }
    expect(mr.slice(100)).toHaveLength(0);
    expect(slice.slice(80)).toHaveLength(0);
    mr.close();
    expect(slice.buffer).toHaveLength(0);
    const closed = expect.objectContaining({ code: 'ERR_RDMA_CLOSED' }) as Error;
    expect(() => a.qp.postSend({ opcode: 'send', sge: slice })).toThrow(closed);
    expect(() => a.qp.postRecv({ sge: slice })).toThrow(closed);
  });
});

/** Bytes come and go by WRITE and READ, and none beside them. */
async function servesPeers({ a, b }: { a: End; b: End }, mr: MemoryRegion): Promise<void> {
  const bytes = pattern(5000, 6);
  bytes.copy(a.mr.buffer);
  a.qp.postSend({ opcode: 'rdmaWrite', sge: { mr: a.mr, length: 5000 }, remote: mr.remote(100) });
  await succeeded(a.cq);
  expect(Buffer.compare(mr.buffer.subarray(100, 5100), bytes)).toBe(0);
  expect([mr.buffer[99], mr.buffer[5100]]).toEqual([0, 0]);
  a.qp.postSend({
    opcode: 'rdmaRead',
    sge: { mr: a.mr, offset: 8192, length: 5000 },
    remote: mr.remote(100),
  });
  await succeeded(a.cq);
  expect(Buffer.compare(a.mr.buffer.subarray(8192, 13192), bytes)).toBe(0);
  b.qp.postSend({ opcode: 'rdmaWrite', sge: { mr, offset: 100, length: 9 }, remote: a.mr.remote(20_000) });
  await succeeded(b.cq);
  expect(a.mr.buffer.subarray(20_000, 20_009)).toEqual(bytes.subarray(0, 9));
}

describe('memory', () => {
  it.each(['MW_BIND', 'RELAXED_ORDERING', 'ZERO_BASED', 'HUGETLB'] as const)(
    'registered with %s serves peers as other memory does',
    async (flag) => {
      const pair = await connectedPair();
      const mr = await pair.b.pd.regMr(8192, { access: ALL_REMOTE | Access[flag] });
      expect(mr.access & Access[flag]).not.toBe(0);
      await servesPeers(pair, mr);
    },
  );

  it.each([2 ** 21, 2 ** 30])(
    'of huge pages of %i bytes serves peers, or what to do is said',
    async (pageSize) => {
      const file = `/sys/kernel/mm/hugepages/hugepages-${pageSize / 1024}kB/nr_hugepages`;
      const access = ALL_REMOTE | Access.HUGETLB;
      const pair = await connectedPair();
      const register = () => pair.b.pd.regMr(3 << 20, { access, pageSize });
      if (!existsSync(file)) {
        await expect(register()).rejects.toMatchObject({
          code: 'EINVAL',
          syscall: 'mmap',
          message: expect.stringMatching(
            /This kernel has (no huge pages|huge pages of .*, none of)/,
          ) as string,
        });
        return;
      }
      const before = readFileSync(file, 'utf8').trim();
      if (before === '0') {
        await expect(register()).rejects.toMatchObject({
          code: 'ENOMEM',
          message: expect.stringMatching(
            /huge pages of .* were asked for, and 0 are free.*nr_hugepages/,
          ) as string,
        });
      }
      // A machine may lack the memory for them, and a host's are not ours to set aside.
      if (pageSize !== 2 ** 21 || process.getuid!() !== 0 || process.env.NODE_RDMA_RXE_ENGINE === 'host')
        return;
      onTestFinished(() => writeFileSync(file, before));
      writeFileSync(file, '2');
      if (Number(readFileSync(file, 'utf8')) < 2) return;
      const mr = await register();
      expect(mr.address % BigInt(pageSize)).toBe(0n);
      await servesPeers(pair, mr);
      mr.close();
    },
  );
});

describe('an iova', () => {
  it('is the address that peers use', async () => {
    const { a, b } = await connectedPair();
    const mr = await b.pd.regMr(8192, { access: ALL_REMOTE, iova: 0x1_0000_0000n });
    expect(mr.address).toBe(0x1_0000_0000n);
    a.mr.buffer.write('iova');
    a.qp.postSend({ opcode: 'rdmaWrite', sge: { mr: a.mr, length: 4 }, remote: mr.remote(4096) });
    await succeeded(a.cq);
    expect(mr.buffer.toString('latin1', 4096, 4100)).toBe('iova');
    mr.buffer.write('back', 8000);
    b.qp.postSend({ opcode: 'rdmaWrite', sge: { mr, offset: 8000, length: 4 }, remote: a.mr.remote(32) });
    await succeeded(b.cq);
    expect(a.mr.buffer.toString('latin1', 32, 36)).toBe('back');
  });
});

describe('refusals', () => {
  it.each([0, -1, 1.5, NaN, Infinity, 2 ** 53])('of a length of %s', async (length) => {
    await expect(pd().regMr(length)).rejects.toMatchObject({ code: 'ERR_OUT_OF_RANGE' });
    expect(() => pd().regMrSync(length)).toThrow(
      expect.objectContaining({ code: 'ERR_OUT_OF_RANGE' }) as Error,
    );
  });

  it.each([undefined, null, 'x', {}, [1, 2], 5n])('of %s as memory', async (source) => {
    await expect(pd().regMr(source as never)).rejects.toMatchObject({ code: 'ERR_INVALID_ARG_TYPE' });
  });

  it('of empty and of detached memory', () => {
    const gone = new ArrayBuffer(8);
    structuredClone(gone, { transfer: [gone] });
    for (const source of [new Uint8Array(0), new ArrayBuffer(0), gone]) {
      expect(() => pd().regMrSync(source)).toThrow(
        expect.objectContaining({ code: 'ERR_OUT_OF_RANGE' }) as Error,
      );
    }
  });

  it('of resizable memory', () => {
    const make = ArrayBuffer as unknown as new (length: number, options: object) => ArrayBuffer;
    expect(() => pd().regMrSync(new make(64, { maxByteLength: 128 }))).toThrow(/resizable/);
  });

  it("of remote access to a slice of Node's buffer pool, where local access is fine", () => {
    const pooled = Buffer.from('a small message');
    expect(pooled.buffer.byteLength).toBe(Buffer.poolSize);
    for (const flag of [Access.REMOTE_READ, Access.REMOTE_WRITE | Access.LOCAL_WRITE, ALL_REMOTE]) {
      expect(() => pd().regMrSync(pooled, { access: flag })).toThrow(/pool/);
    }
    expect(pd().regMrSync(pooled).length).toBe(15);
  });

  it('of access flags that do not go together or do not exist', () => {
    for (const access of [
      Access.REMOTE_WRITE,
      Access.REMOTE_ATOMIC,
      Access.REMOTE_ATOMIC | Access.REMOTE_READ,
    ]) {
      expect(() => pd().regMrSync(64, { access })).toThrow(/need LOCAL_WRITE/);
    }
    expect(() => pd().regMrSync(64, { access: 1 << 30 })).toThrow(/access/);
    expect(() => pd().regMrSync(64, { access: -1 })).toThrow(RangeError);
    expect(() => pd().regMrSync(64, { access: '1' as never })).toThrow(TypeError);
  });

  it('of page sizes that do not exist', () => {
    expect(() => pd().regMrSync(64, { pageSize: 12345 })).toThrow(/pageSize/);
    expect(() => pd().regMrSync(new Uint8Array(64), { pageSize: 2 ** 21 })).toThrow(/pageSize/);
  });

  it('of more memory than there is, with what to look at', async () => {
    await expect(pd().regMr(2 ** 46)).rejects.toMatchObject({
      code: 'ENOMEM',
      message: expect.stringMatching(/RLIMIT_MEMLOCK/) as string,
    });
  });

  it.skipIf(process.getuid!() !== 0)(
    'of more than RLIMIT_MEMLOCK allows, with the limit and what is pinned',
    () => {
      const told = inOwnProcess(
        `import { execFileSync } from 'node:child_process';
        rdma.listDevices();
        const refusal = () => {
          process.seteuid(65534);
          const pd = rdma.openDevice('${deviceA}').allocPd();
          try {
            pd.regMrSync(8192);
            pd.regMrSync(1 << 20);
          } catch ({ code, syscall, message }) {
            return { code, syscall, message };
          }
        };
        const refusals = [refusal()];
        process.seteuid(0);
        execFileSync('prlimit', ['--pid', String(process.pid), '--memlock=0:']);
        tell([...refusals, refusal()]);
        process.exit();`,
        ['prlimit', '--memlock=65536'],
      );
      const raise = '\\. Raise it: ulimit -l unlimited';
      expect(told).toEqual([
        {
          code: 'ENOMEM',
          syscall: 'ibv_reg_mr',
          message: expect.stringMatching(
            `1048576 bytes were to be pinned, 8192 bytes are pinned already, and RLIMIT_MEMLOCK is 65536 bytes for this process${raise}`,
          ) as string,
        },
        {
          code: 'EPERM',
          syscall: 'ibv_reg_mr',
          message: expect.stringMatching(
            `RLIMIT_MEMLOCK is 0 for this process, which may pin nothing${raise}`,
          ) as string,
        },
      ]);
    },
  );

  it('of paging on demand, which the device does not offer', () => {
    const domain = pd();
    if ((domain.context.queryDevice().odpGeneralCaps & 1n) !== 0n) return;
    expect(() => domain.regMrSync(4096, { access: ALL_REMOTE | Access.ON_DEMAND })).toThrow(
      expect.objectContaining({
        code: 'ERR_RDMA_UNSUPPORTED',
        device: domain.context.device.name,
        message: expect.stringMatching(/without ON_DEMAND/) as string,
      }) as Error,
    );
  });

  it('of remote descriptions of a region that lets nobody in, or of parts outside it', () => {
    const mr = pd().regMrSync(64);
    expect(() => mr.remote()).toThrow(/without remote access/);
    const open = pd().regMrSync(64, { access: Access.REMOTE_READ });
    expect(() => open.remote(65)).toThrow(RangeError);
    expect(() => open.remote(60, 5)).toThrow(RangeError);
    expect(open.remote(60).length).toBe(4);
  });
});

describe('RemoteRegion', () => {
  it('travels as JSON', () => {
    const region = new RemoteRegion(0xffff_8888_0000_1234n, 0xfedc_ba98, 2 ** 40);
    expect(RemoteRegion.from(JSON.parse(JSON.stringify(region)))).toEqual(region);
  });

  it.each([
    null,
    5,
    {},
    { address: 'x', rkey: 1, length: 1 },
    { address: '0x1', rkey: -1, length: 1 },
    { address: '0x1', rkey: 1 },
  ])('refuses %j', (json) => {
    expect(() => RemoteRegion.from(json)).toThrow(
      expect.objectContaining({ code: expect.stringMatching(/^ERR_/) as string }) as Error,
    );
  });

  it('gives addresses within itself only', () => {
    const region = new RemoteRegion(1000n, 1, 100);
    expect(region.at(90, 10)).toBe(1090n);
    expect(() => region.at(90, 11)).toThrow(RangeError);
    expect(() => region.at(101, 0)).toThrow(RangeError);
  });
});
