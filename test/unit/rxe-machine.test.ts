import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { commandLine as qemuCommandLine } from '../../lib/rxe/engines/qemu.js';
import { commandLine as umlCommandLine } from '../../lib/rxe/engines/uml.js';
import { RxeError, rxeExitStatuses } from '../../lib/rxe/errors.js';
import { archive, fileMode, folderMode } from '../../lib/rxe/initramfs.js';
import { checkSameOptions, type KeptFacts } from '../../lib/rxe/kept/facts.js';
import { checkMachineOptions, type MachineOptions } from '../../lib/rxe/options.js';
import { hasPvhEntry, payloadOf } from '../../lib/rxe/vmlinux.js';

describe('exit statuses', () => {
  it('are distinct, except that a usage error and an internal one are both 125', () => {
    const statuses = Object.values(rxeExitStatuses).map(([status]) => status);
    expect(new Set(statuses).size).toBe(statuses.length - 1);
  });

  it('keep clear of those that a signal gives', () => {
    for (const [status] of Object.values(rxeExitStatuses)) {
      expect(status <= 127 || (status > 128 + 64 && status < 256)).toBe(true);
    }
  });

  it('go with the code of an error', () => {
    expect(new RxeError('ERR_RXE_NO_QEMU', 'text')).toMatchObject({ exitStatus: 201, message: 'text' });
  });
});

describe('options', () => {
  it.each<[keyof MachineOptions, unknown, string]>([
    ['engine', 'vmware', "engine must be one of auto, host, uml, qemu, not 'vmware'"],
    ['accel', 'xen', "accel must be one of auto, kvm, tcg, not 'xen'"],
    ['cpus', 0, 'cpus must be a whole number of processors from 1 to 64, not 0'],
    ['memory', 255, 'memory must be a whole number of MiB from 256 to 1048576, not 255'],
    ['memory', 512.5, 'not 512.5'],
    ['mtu', 1279, 'mtu must be a whole number of bytes from 1280 to 65535, not 1279'],
    ['mtu', NaN, 'not NaN'],
  ])('%s = %s is refused', (name, value, message) => {
    expect(() => checkMachineOptions({ [name]: value })).toThrow(message);
  });

  it('may all be left out, or lie at their limits', () => {
    checkMachineOptions({});
    checkMachineOptions({ engine: 'qemu', cpus: 64, memory: 256, mtu: 65535, accel: 'tcg' });
  });

  it('give uml one processor', () => {
    expect(() => checkMachineOptions({ engine: 'uml', cpus: 2 })).toThrow('--engine qemu');
  });
});

describe('a second start', () => {
  const facts = { engine: 'uml', options: { engine: 'auto', mtu: 4200 } } as unknown as KeptFacts;

  it('takes the machine that is up if that is what it wants', () => {
    checkSameOptions(facts, {});
    checkSameOptions(facts, { engine: 'auto', mtu: 4200 });
    checkSameOptions(facts, { engine: 'uml' });
  });

  it.each([{ engine: 'qemu' as const }, { mtu: 1500 }, { memory: 512 }])(
    'refuses it if not: %o',
    (wanted) => {
      expect(() => checkSameOptions(facts, wanted)).toThrow(expect.objectContaining({ exitStatus: 212 }));
    },
  );
});

describe('command lines', () => {
  it('of qemu: a comma in a folder does not end its name', () => {
    const boot = { kernel: '/k', initrd: '/i', accelerator: 'tcg' as const };
    const args = qemuCommandLine({ memory: 1024, mtu: 1500, out: '/a,b c' }, boot);
    expect(args).toContain('local,id=out,path=/a,,b c,security_model=none,multidevs=remap');
    expect(args).toContain('local,id=host,path=/,security_model=none,multidevs=remap,readonly=on');
    expect(args.slice(args.indexOf('-m')).slice(0, 2)).toEqual(['-m', '1024']);
    expect(args.slice(args.indexOf('-accel')).slice(0, 2)).toEqual(['-accel', 'tcg,thread=multi']);
  });

  it('of uml: the agent may lie below a folder with a blank', () => {
    const args = umlCommandLine({ memory: 512 }, '/my files/agent', '/dev/shm/x');
    expect(args).toContain('init="/my files/agent"');
    expect(args).toContain('mem=512M');
    expect(args).toContain('ro');
  });
});

describe('the first file system', () => {
  it('is an archive that cpio can read', () => {
    const bytes = archive([
      { name: 'dir', mode: folderMode },
      { name: 'dir/odd', mode: fileMode, content: Buffer.from('12345') },
      { name: 'empty', mode: fileMode },
    ]);
    expect(bytes.length % 4).toBe(0);
    const names = [...bytes.toString('latin1').matchAll(/070701[0-9a-f]{104}([^\0]+)\0/g)].map(
      (match) => match[1],
    );
    expect(names).toEqual(['dir', 'dir/odd', 'empty', 'TRAILER!!!']);
    const cpio = spawnSync('cpio', ['-it', '--quiet'], { input: bytes, encoding: 'utf8' });
    if (!cpio.error) expect(cpio.stdout.trim().split('\n')).toEqual(['dir', 'dir/odd', 'empty']);
  });
});

describe('a boot image', () => {
  it('gives its compressed part', () => {
    const image = Buffer.alloc(4096);
    image[0x1f1] = 1;
    image.write('HdrS', 0x202, 'latin1');
    image.writeUInt32LE(16, 0x248);
    image.writeUInt32LE(7, 0x24c);
    image.write('payload', 2 * 512 + 16, 'latin1');
    expect(payloadOf(image)?.toString('latin1')).toBe('payload');
    image.writeUInt32LE(5000, 0x24c);
    expect(payloadOf(image)).toBeUndefined();
  });

  it('is none without the header', () => {
    expect(payloadOf(Buffer.alloc(4096))).toBeUndefined();
    expect(payloadOf(Buffer.alloc(10))).toBeUndefined();
  });

  it('starts directly only with the note for it', () => {
    const note = Buffer.alloc(24);
    note.writeUInt32LE(4, 0);
    note.writeUInt32LE(8, 4);
    note.writeUInt32LE(18, 8);
    note.write('Xen\0', 12, 'latin1');
    const kernel = Buffer.alloc(200);
    kernel.write('\x7fELF\x02', 0, 'latin1');
    kernel.writeBigUInt64LE(64n, 32);
    kernel.writeUInt16LE(56, 54);
    kernel.writeUInt16LE(1, 56);
    kernel.writeUInt32LE(4, 64);
    kernel.writeBigUInt64LE(120n, 72);
    kernel.writeBigUInt64LE(24n, 96);
    note.copy(kernel, 120);
    expect(hasPvhEntry(kernel)).toBe(true);
    kernel.writeUInt32LE(6, 128);
    expect(hasPvhEntry(kernel)).toBe(false);
    expect(hasPvhEntry(Buffer.from('not a kernel'))).toBe(false);
  });
});
