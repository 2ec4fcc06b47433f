// The page with charts, and the comparison of two results. The page is read by a browser: Debian's chromium, without a screen.
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runCompare } from '../../lib/cli/perf/run.js';
import { columnsFor, heading, rowOf } from '../../lib/cli/perf/columns.js';
import { belowLimits } from '../../lib/cli/perf/limits.js';
import { compareResults, renderReport, type PerfResult, type SizeResult } from '../../lib/perf/index.js';
import { configurationOf } from '../../lib/perf/configuration.js';
import { resolveOptions } from '../../lib/perf/options.js';
import { bandwidthOf } from '../../lib/perf/results.js';
import { SampleList } from '../../lib/perf/samples.js';

let folder: string;
beforeAll(() => void (folder = mkdtempSync(path.join(tmpdir(), 'node-rdma-report-'))));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function resultOf(test: PerfResult['test'], results: SizeResult[]): PerfResult {
  return {
    schemaVersion: 1,
    test,
    role: 'client',
    started: '2026-01-02T03:04:05.678Z',
    platform: { nodeRdma: '0.1.0', node: 'v20.0.0', kernel: '6.1.0', engine: 'uml', libibverbs: '1.14.44.0' },
    configuration: configurationOf(resolveOptions({ test }), {
      sizes: results.map(({ size }) => size),
      mtu: 1024,
      outstandingReads: 1,
    }),
    device: {
      device: 'rxe_a',
      port: 1,
      linkLayer: 'ethernet',
      state: 'active',
      activeMtu: 1024,
      maxMtu: 4096,
      firmware: null,
      vendorId: 0xffffff,
      vendorPartId: 0,
      gid: {
        gid: '::ffff:10.9.0.1',
        address: '10.9.0.1',
        index: 1,
        type: 'roceV2',
        netdev: 'wire_a',
        reason: 'RoCE v2 <b>"routable"</b>',
        tableLength: 3,
      },
    },
    connection: {
      peer: { address: '10.9.0.2', perftest: '6.06', nodeRdma: null },
      pathMtu: 1024,
      queuePairs: [],
    },
    results,
    error: null,
  };
}

const bandwidth = (size: number, perSecond: number | null): SizeResult => ({
  size,
  iterations: 1000,
  measuredBy: 'this end',
  bandwidth:
    perSecond === null
      ? bandwidthOf(size, 0, 0, null)
      : bandwidthOf(size, 1000, 1000 / perSecond, perSecond * 1.5),
  cpuPercent: 50,
});

function latency(size: number, microseconds: number): SizeResult {
  const samples = new SampleList(1000);
  for (let i = 0; i < 1000; ++i) samples.add(microseconds * (1 + i / 1000 + (i === 999 ? 100 : 0)));
  const { count } = samples;
  return {
    size,
    iterations: 1000,
    measuredBy: 'this end',
    latency: { count, microseconds: samples.summary(), distribution: samples.distribution() },
    cpuPercent: null,
  };
}

const sizes = Array.from({ length: 23 }, (_, i) => 2 ** (i + 1));
const ofWrites = resultOf(
  'write-bw',
  sizes.map((size, i) => bandwidth(size, 1e5 / (1 + i))),
);
const ofSends = resultOf(
  'send-lat',
  sizes.map((size, i) => latency(size, 2 + i)),
);

/** What a browser makes of the page. */
interface Seen {
  title: string;
  problems: string[];
  requests: string[];
  charts: {
    title: string;
    lines: number;
    dots: number;
    outside: number;
    texts: string[];
    overlapping: number;
  }[];
  wide: boolean;
  rows: number[];
  result: PerfResult;
}

const look = `<script>
const box = (element) => element.getBoundingClientRect();
const charts = [...document.querySelectorAll('figure')].map((figure) => {
  const svg = figure.querySelector('svg');
  const frame = svg && box(svg);
  const inside = (one) => box(one).left >= frame.left - 1 && box(one).right <= frame.right + 1 && box(one).top >= frame.top - 1 && box(one).bottom <= frame.bottom + 1;
  const ticks = svg ? [...svg.querySelectorAll('.tick[text-anchor=middle]')].map(box) : [];
  return {
    title: figure.querySelector('figcaption').textContent,
    lines: figure.querySelectorAll('polyline').length,
    dots: figure.querySelectorAll('circle').length,
    outside: svg ? [...svg.querySelectorAll('polyline, circle, text')].filter((one) => !inside(one)).length : 0,
    texts: svg ? [...svg.querySelectorAll('.tick')].map((one) => one.textContent) : [],
    overlapping: ticks.filter((one, i) => i > 0 && one.left < ticks[i - 1].right).length,
  };
});
const seen = {
  title: document.title,
  problems: window.problems,
  requests: performance.getEntriesByType('resource').map(({ name }) => name),
  charts,
  wide: document.documentElement.scrollWidth > innerWidth,
  rows: [...document.querySelectorAll('table')].map((table) => table.tBodies[0].rows.length),
  result: JSON.parse(document.querySelector('#result').textContent),
};
document.body.innerHTML = '';
document.body.textContent = 'SEEN' + JSON.stringify(seen) + 'END';
</script>`;

/** Reads it with a browser, which then says what it sees. */
async function see(page: string): Promise<Seen> {
  const file = path.join(folder, 'page.html');
  const watched = page
    .replace(
      '<head>',
      '<head><script>window.problems = []; addEventListener("error", ({ message }) => problems.push(message));</script>',
    )
    .replace('</body>', `${look}</body>`);
  writeFileSync(file, watched);
  const options = [
    '--headless',
    '--no-sandbox',
    '--disable-gpu',
    `--user-data-dir=${folder}/profile`,
    '--window-size=900,1200',
  ];
  const { stdout } = await promisify(execFile)('chromium', [...options, '--dump-dom', `file://${file}`], {
    timeout: 60_000,
    killSignal: 'SIGKILL',
    maxBuffer: 2 ** 26,
  });
  const said = /SEEN(.*)END/s.exec(stdout)![1]!;
  return JSON.parse(said.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&')) as Seen;
}

describe('the page', () => {
  it(
    'of bandwidth has its charts in a browser, all of them inside their frames',
    { timeout: 90_000 },
    async () => {
      const { title, problems, requests, charts, wide, rows, result } = await see(renderReport(ofWrites));
      expect(title).toBe('write-bw on rxe_a, 2026-01-02T03:04:05.678Z');
      expect({ problems, requests, wide }).toEqual({ problems: [], requests: [], wide: false });
      expect(charts).toMatchObject([
        { title: 'Bandwidth by message size', lines: 2, dots: 46, outside: 0, overlapping: 0 },
        { title: 'Message rate by message size', lines: 1, dots: 23, outside: 0, overlapping: 0 },
      ]);
      expect(charts[0]!.texts).toContain('64 KiB');
      expect(rows[0]).toBe(23);
      expect(result).toEqual(JSON.parse(JSON.stringify(ofWrites)));
    },
  );

  it('of latency has the distribution, too', { timeout: 90_000 }, async () => {
    const { problems, charts, rows } = await see(renderReport(ofSends));
    expect(problems).toEqual([]);
    expect(charts).toMatchObject([
      { title: 'Latency by message size', lines: 4, dots: 92, outside: 0, overlapping: 0 },
      { title: 'Latency distribution', lines: 6, outside: 0, overlapping: 0 },
    ]);
    expect(charts[1]!.texts).toEqual(expect.arrayContaining(['0 %', '90 %', '99 %', '99.9 %']));
    expect(rows[0]).toBe(23);
  });

  it('has nothing that the result could run, and nothing that is not measured', () => {
    const broken = resultOf('write-bw', [bandwidth(64, null)]);
    broken.error = { code: 'ERR_RDMA_TIMEOUT', message: '</script><img src=x onerror=alert(1)>' };
    const page = renderReport(broken);
    expect(page).not.toContain('<img');
    expect(page).not.toContain('<b>');
    expect(page).toContain('Nothing was measured.');
    expect(page).not.toMatch(/NaN|Infinity|undefined/);
    expect(page.match(/<\/script>/g)).toHaveLength(1);
  });

  it.each([1, 2])('of %i size has no empty chart', (count) => {
    const page = renderReport(
      resultOf(
        'write-bw',
        [...sizes.slice(0, count)].map((size) => bandwidth(size, 100)),
      ),
    );
    expect(page).not.toMatch(/NaN|Infinity|undefined/);
    expect(page.match(/<circle/g)).toHaveLength(3 * count);
  });

  it('of an end that has measured nothing says so', () => {
    expect(renderReport(resultOf('read-lat', []))).toContain('This end has measured nothing.');
  });
});

describe('the comparison', () => {
  it('tells by how much each figure has changed, and what else differs', () => {
    const after = structuredClone(ofWrites);
    after.platform.kernel = '6.12.0';
    after.results = [bandwidth(64, 50_000), bandwidth(3, 1)];
    const { sizes: compared, differences, unmatched } = compareResults(ofWrites, after);
    const [{ size, changes }] = compared as [(typeof compared)[0]];
    expect(size).toBe(64);
    expect(changes.find(({ name }) => name === 'messages/s')).toEqual({
      name: 'messages/s',
      higherIsBetter: true,
      before: 1e5 / 6,
      after: 50_000,
      percent: expect.closeTo(200, 6) as number,
    });
    expect(differences).toContainEqual({ name: 'kernel', before: '6.1.0', after: '6.12.0' });
    expect(unmatched).toEqual([...sizes.filter((one) => one !== 64), 3]);
  });

  it('makes no number of what was not measured', () => {
    const a = resultOf('write-bw', [bandwidth(64, null)]);
    const b = resultOf('write-bw', [bandwidth(64, 10)]);
    expect(compareResults(a, b).sizes[0]!.changes.map(({ percent }) => percent)).toEqual([null, null]);
  });

  it('refuses results of two tests, and what is none', () => {
    expect(() => compareResults(ofWrites, ofSends)).toThrow(/write-bw and send-lat measure different things/);
    expect(() => compareResults({} as PerfResult, ofSends)).toThrow(/before: it is no result/);
    expect(() => compareResults(ofSends, null as unknown as PerfResult)).toThrow(/after: it is no result/);
  });

  const compare = async (files: string[], json = false) => {
    const stream = new PassThrough();
    const written = text(stream);
    const status = await runCompare(files, json, stream);
    stream.end();
    return { status, stdout: await written };
  };

  it('prints a table, or JSON', async () => {
    const [a, b] = ['a.json', 'b.json'].map((name) => path.join(folder, name)) as [string, string];
    const faster = resultOf('send-lat', [latency(64, 3.5)]);
    writeFileSync(a, JSON.stringify(ofSends));
    writeFileSync(b, JSON.stringify(faster));
    const { status, stdout } = await compare([a, b]);
    expect(status).toBe(0);
    expect(stdout).toMatch(/64 B │ µs p50 +│ +10\.5 │ +5\.25 │ +-50\.0 % better │/);
    const json = JSON.parse((await compare([a, b], true)).stdout) as ReturnType<typeof compareResults>;
    expect(json).toEqual(compareResults(ofSends, faster));
  });

  it.each([[['one.json']], [['missing.json', 'missing.json']]])('fails for %j', async (files) => {
    expect(await compare(files)).toEqual({ status: 1, stdout: '' });
  });

  it('fails for what is no JSON', async () => {
    const file = path.join(folder, 'text');
    writeFileSync(file, 'ib_write_bw says so');
    expect(readFileSync(file, 'utf8')).not.toBe('');
    expect((await compare([file, file])).status).toBe(1);
  });
});

describe('the table', () => {
  it('has a column for each figure, in the unit that is asked for', () => {
    const [inMiB, inGb] = [columnsFor('bw', {}), columnsFor('bw', { reportGbits: true })];
    expect(heading(inMiB).trim().split(/ {2,}/)).toEqual([
      'bytes',
      'iterations',
      'peak MiB/s',
      'average MiB/s',
      'Mpps',
    ]);
    expect(heading(inGb)).toContain('average Gb/s');
    const one = bandwidth(2 ** 20, 1000);
    expect(rowOf(inMiB, one).trim().split(/ +/)).toEqual([
      '1048576',
      '1000',
      '1500.00',
      '1000.00',
      '0.001000',
    ]);
    expect(rowOf(inGb, one)).toContain('8.39');
  });

  it('says – of what was not measured', () => {
    expect(rowOf(columnsFor('bw', {}), bandwidth(64, null)).trim().split(/ +/)).toEqual([
      '64',
      '1000',
      '–',
      '–',
      '–',
    ]);
  });

  it('shows latency in nanoseconds, if so told', () => {
    expect(rowOf(columnsFor('lat', { reportCycles: true }), latency(64, 2))).toMatch(/^ +64 +1000 +2000 /);
  });
});

describe('limits', () => {
  it('are kept, or named with what was measured', () => {
    const result = resultOf('write-bw', [bandwidth(2 ** 20, 1000), bandwidth(64, null)]);
    expect(
      belowLimits(resultOf('write-bw', [bandwidth(2 ** 20, 1000)]), { limitBw: 1000, limitMsgrate: 0.001 }),
    ).toEqual([]);
    expect(belowLimits(result, { limitBw: 1001 })).toEqual([
      'with messages of 1048576 bytes the rate is 1000.000 MiB/s, and the limit is 1001 MiB/s',
      'with messages of 64 bytes the rate could not be measured, and the limit is 1001 MiB/s',
    ]);
  });
});
