// Options: what perftest would assume, and what is refused at once.
import { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { addPerfOptions, inFlags, normalize, toPerfOptions } from '../../lib/cli/perf-options.js';
import { peerCommands } from '../../lib/cli/perf/peer-command.js';
import { cqModerationFor, resolveOptions, sizesOf, type PerfOptions } from '../../lib/perf/options.js';
import { perfTests, type PerfTest } from '../../lib/perf/kinds.js';

const resolve = (test: PerfTest, more: Omit<PerfOptions, 'test'> = {}) => resolveOptions({ test, ...more });
const largest = 2 ** 31;

describe('what is not given', () => {
  it.each<[PerfTest, object]>([
    ['send-bw', { iterations: 1000, txDepth: 128, rxDepth: 512 }],
    ['write-bw', { iterations: 5000, txDepth: 128, rxDepth: 0 }],
    ['read-bw', { iterations: 1000, txDepth: 128, rxDepth: 0 }],
    ['send-lat', { iterations: 1000, txDepth: 1, rxDepth: 512 }],
    ['atomic-lat', { iterations: 1000, txDepth: 1, rxDepth: 0 }],
  ])('is for %s as perftest has it: %j', (test, expected) => {
    expect(resolve(test)).toMatchObject({
      connection: 'rc',
      queuePairs: 1,
      qpTimeout: 14,
      inlineSize: 0,
      ...expected,
    });
  });

  it.each<[PerfTest, number]>([
    ['send-bw', 65_536],
    ['write-lat', 2],
    ['atomic-bw', 8],
    ['atomic-lat', 8],
  ])('%s has messages of %i bytes', (test, size) => {
    expect(sizesOf(resolve(test), largest)).toEqual([size]);
  });

  it('is cut to the number of messages', () => {
    expect(resolve('send-bw', { iterations: 11 })).toMatchObject({ txDepth: 11, rxDepth: 12 });
    expect(resolve('send-bw', { iterations: 50_000, connection: 'uc' })).toMatchObject({ rxDepth: 16_000 });
  });

  it('takes what a datagram holds', () => {
    expect(sizesOf(resolve('send-bw', { connection: 'ud' }), 1024)).toEqual([1024]);
    expect(sizesOf(resolve('send-bw', { connection: 'ud', size: 'all' }), 1024)).toEqual([
      2, 4, 8, 16, 32, 64, 128, 256, 512, 1024,
    ]);
    expect(sizesOf(resolve('write-bw', { size: 'all' }), largest)).toHaveLength(23);
  });

  it('does not count the first and the last quarter of the time', () => {
    expect(resolve('write-bw', { duration: 2 })).toMatchObject({
      duration: 2000,
      margin: 500,
      iterations: Infinity,
    });
    expect(resolve('write-bw', { duration: 2, margin: 0 })).toMatchObject({ margin: 0 });
  });
});

describe('messages for a completion', () => {
  it.each<[PerfTest, Omit<PerfOptions, 'test'>, number, number]>([
    ['write-bw', {}, 8192, 100],
    ['write-bw', {}, 8193, 1],
    ['write-bw', { size: 'all' }, 65_536, 100],
    ['write-bw', { events: true }, 65_536, 100],
    ['write-bw', { cqModeration: 7 }, 65_536, 7],
    ['write-bw', { txDepth: 16 }, 64, 16],
    ['send-lat', {}, 64, 1],
  ])('%s %j with %i bytes: %i', (test, options, size, expected) => {
    expect(cqModerationFor(resolve(test, options), size)).toBe(expected);
  });
});

describe('what is refused', () => {
  it.each<[PerfTest, object, RegExp]>([
    ['send-lat', { bidirectional: true }, /"bidirectional" must be absent for send-lat/],
    ['send-lat', { queuePairs: 2 }, /"queuePairs" must be absent/],
    ['read-lat', { txDepth: 2 }, /"txDepth" must be absent/],
    ['write-lat', { events: true }, /"events" must be absent for write-lat: a write makes no event/],
    ['write-bw', { connection: 'ud' }, /"connection" must be one of rc, uc/],
    ['read-bw', { connection: 'uc' }, /"connection" must be one of rc,/],
    ['send-bw', { connection: 'xrc' }, /"connection" must be one of rc, uc, ud/],
    ['atomic-bw', { size: 64 }, /"size" must be 8 for atomics/],
    ['write-bw', { size: 0 }, /"size" must be an integer from 1 to 2147483647/],
    ['write-bw', { size: 1.5 }, /"size"/],
    ['write-bw', { size: '64' }, /"size" must be a number/],
    ['write-bw', { iterations: 4 }, /"iterations" must be an integer from 5/],
    ['write-bw', { iterations: 10, duration: 1 }, /"iterations" must be absent with duration/],
    ['write-bw', { size: 'all', duration: 1 }, /"size" must be one size/],
    ['write-bw', { margin: 1 }, /"margin" must be absent without duration/],
    ['write-bw', { duration: 2, margin: 1 }, /"margin" must be less than half of duration, 1 s/],
    ['write-bw', { duration: 0 }, /"duration" must be seconds from/],
    ['write-bw', { duration: NaN }, /"duration" must be seconds from/],
    ['write-bw', { txDepth: 10, cqModeration: 11 }, /"cqModeration" must be an integer from 1 to 10/],
    ['write-bw', { rxDepth: 10 }, /"rxDepth" must be absent/],
    ['read-bw', { inlineSize: 8 }, /"inlineSize" must be absent for read-bw/],
    ['write-bw', { outstandingReads: 4 }, /"outstandingReads" must be absent for write-bw/],
    ['write-bw', { atomic: 'fetch-add' }, /"atomic" must be absent/],
    ['atomic-bw', { atomic: 'add' }, /"atomic" must be one of fetch-add, compare-swap/],
    ['write-bw', { mtu: 1500 }, /"mtu" must be one of 256, 512, 1024, 2048, 4096/],
    ['write-bw', { port: 65_536 }, /"port"/],
    ['write-bw', { port: 0, host: 'there' }, /"port" must be an integer from 1/],
    ['write-bw', { host: '' }, /"host" must be a string/],
    ['write-bw', { sourceAddress: '10.9.0.1' }, /"sourceAddress" must be absent for a server/],
    ['write-bw', { signal: {} }, /"signal" must be an AbortSignal/],
    ['write-bw', { samples: true }, /"samples" must be absent for write-bw/],
    ['write-bw', { retryCount: 8 }, /"retryCount"/],
    ['write-bw', { iteration: 8 }, /"options" must be of those of PerfOptions, not iteration/],
    ['write-bw', { queuePairs: 16_385 }, /"queuePairs"/],
  ])('%s %j', (test, options, message) => {
    expect(() => resolveOptions({ test, ...options })).toThrow(message);
  });

  it('what is no test, or no options', () => {
    expect(() => resolveOptions({ test: 'ib_write_bw' as PerfTest })).toThrow(
      /"test" must be one of send-bw/,
    );
    expect(() => resolveOptions(undefined as never)).toThrow(/"options" must be an object/);
    expect(() => resolveOptions(null as never)).toThrow(/"options" must be an object/);
  });
});

describe('the command line', () => {
  const parse = (line: string) =>
    normalize(addPerfOptions(new Command()).exitOverride().parse(line.split(' '), { from: 'user' }).opts());

  it('has the letters of perftest', () => {
    const flags = parse(
      '-d rxe_a -i 1 -x 2 -m 512 -s 4K -n 50 -b -q 3 -t 64 -r 32 -Q 8 -c UC -e -I 32 -u 15 -N -F -p 20000',
    );
    expect(toPerfOptions('send-bw', 'there', flags)).toMatchObject({
      test: 'send-bw',
      host: 'there',
      device: 'rxe_a',
      devicePort: 1,
      gidIndex: 2,
      mtu: 512,
      size: 4096,
      iterations: 50,
      bidirectional: true,
      queuePairs: 3,
      txDepth: 64,
      rxDepth: 32,
      cqModeration: 8,
      connection: 'uc',
      events: true,
      inlineSize: 32,
      qpTimeout: 15,
      peak: false,
      port: 20_000,
    });
    expect(
      toPerfOptions('atomic-lat', undefined, parse('-A CMP_AND_SWAP -o 4 -D 2 -f 0.5 -U --timeout 9')),
    ).toMatchObject({
      atomic: 'compare-swap',
      outstandingReads: 4,
      duration: 2,
      margin: 0.5,
      samples: true,
      timeout: 9000,
    });
    expect(toPerfOptions('write-bw', undefined, parse('-a'))).toMatchObject({
      size: 'all',
      peak: true,
      samples: false,
    });
  });

  it('has its long names, in both spellings', () => {
    expect(parse('--report_gbits --inline_size 64 --retry_count 3')).toMatchObject({
      reportGbits: true,
      inlineSize: 64,
      retryCount: 3,
    });
    expect(parse('--report-gbits --inline-size 64')).toMatchObject({ reportGbits: true, inlineSize: 64 });
    for (const line of ['-R', '--rdma_cm', '--rdma-cm'])
      expect(toPerfOptions('write-bw', undefined, parse(line)).rdmaCm).toBe(true);
    for (const line of ['-z', '--comm_rdma_cm', '--comm-rdma-cm'])
      expect(toPerfOptions('write-bw', undefined, parse(line)).commRdmaCm).toBe(true);
  });

  it('does not show what does nothing, or twice the same', () => {
    const help = addPerfOptions(new Command()).helpInformation();
    expect(help).toMatch(/What is sent:[^]*How it is done:[^]*Where:[^]*What is shown:/);
    expect(help).not.toMatch(/rdma_cm\b.*--|--rdma_cm|CPU-freq|report_gbits/);
  });

  it('has the names of perftest with underscores, too', () => {
    expect(normalize({ inline_size: 64, report_gbits: true, peak: false })).toMatchObject({
      inlineSize: 64,
      reportGbits: true,
      noPeak: true,
    });
  });

  it('says what excludes each other', () => {
    expect(() => toPerfOptions('write-bw', 'there', { all: true, size: 8 })).toThrow(
      '-a and -s exclude each other',
    );
  });

  it('names options as they are there', () => {
    expect(inFlags('"queuePairs" must be absent for send-lat')).toBe('-q must be absent for send-lat');
    expect(inFlags('mtu 4096 is above the active MTU 1024 of port 1')).toBe(
      '-m 4096 is above the active MTU 1024 of port 1',
    );
    expect(inFlags('there is no RDMA device "mlx5_7"')).toBe('there is no RDMA device "mlx5_7"');
  });

  it.each(perfTests)('%s: every option goes where it belongs', (test) => {
    const flags = normalize({ iters: 7, ibDev: 'rxe_a', peak: true });
    const settings = resolveOptions(toPerfOptions(test, undefined, flags));
    expect(settings).toMatchObject({ test, iterations: 7, peak: true });
  });

  it('tells a server how its client is started', () => {
    const options: PerfOptions = {
      test: 'send-bw',
      size: 'all',
      iterations: 20,
      connection: 'ud',
      bidirectional: true,
    };
    expect(peerCommands(options, 18_515)).toEqual([
      'node-rdma perf send-bw -a -n 20 -b -c UD HOST',
      'ib_send_bw -d DEVICE -x GID_INDEX -a -n 20 -b -c UD HOST',
    ]);
    expect(peerCommands({ test: 'atomic-lat', atomic: 'compare-swap', duration: 2 }, 20_000)[1]).toBe(
      'ib_atomic_lat -d DEVICE -x GID_INDEX -D 2 -A CMP_AND_SWAP -p 20000 HOST',
    );
  });
});
