import type { PerfResult } from '../perf.js';
import type { SizeResult } from '../results.js';
import type { Summary } from '../statistics.js';
import { formatBytes, formatFigure } from '../figures.js';
import { escape, renderChart, type Axis, type Chart, type Series } from './chart.js';
import { style } from './style.js';

/** The result as one page of HTML that needs nothing else: charts, figures, and on what they were measured. */
export function renderReport(result: PerfResult): string {
  const title = `${result.test} on ${result.device.device}, ${result.started}`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escape(title)}</title>
<style>${style}</style>
</head>
<body>
<h1>${escape(result.test)}</h1>
<p>${escape(introduction(result))}</p>
${result.error === null ? '' : `<p class="error">It did not come to its end: ${escape(result.error.message)}</p>`}
${chartsOf(result).map(renderChart).join('\n')}
<h2>Figures</h2>
${figuresOf(result)}
<h2>Measured on</h2>
${table(['', ''], circumstancesOf(result))}
<script type="application/json" id="result">${JSON.stringify(result).replaceAll('<', '\\u003c')}</script>
</body>
</html>
`;
}

function introduction({ role, started, device, connection, platform }: PerfResult): string {
  const peer = connection === null ? 'nobody' : connection.peer.address;
  const where =
    platform.engine === null
      ? ''
      : ` This is Soft-RoCE, done by the kernel in software (engine ${platform.engine}): it says nothing about a NIC.`;
  return `Measured ${started}, as the ${role}, on ${device.device} with ${peer}.${where}`;
}

function chartsOf({ results, configuration }: PerfResult): Chart[] {
  const charts: Chart[] = [];
  const bytes: Axis = {
    title: 'message size',
    scale: 'log',
    ticks: sizeTicks(results.map(({ size }) => size)),
    format: formatBytes,
  };
  const by = (name: string, of: (one: SizeResult) => number | null | undefined): Series => ({
    name,
    points: results.flatMap((one) => {
      const y = of(one);
      return typeof y === 'number' ? [{ x: one.size, y }] : [];
    }),
  });
  if (results.some(({ bandwidth }) => bandwidth !== undefined)) {
    const both = configuration.bidirectional ? ', both ways together' : '';
    charts.push({
      title: `Bandwidth by message size${both}`,
      x: bytes,
      y: { title: 'MiB/s', scale: 'linear', format: formatFigure },
      series: [
        by('average', ({ bandwidth }) => bandwidth?.mebibytesPerSecond),
        by('peak', ({ bandwidth }) => bandwidth?.peakMebibytesPerSecond),
      ],
    });
    charts.push({
      title: `Message rate by message size${both}`,
      x: bytes,
      y: { title: 'messages/s', scale: 'linear', format: formatFigure },
      series: [by('average', ({ bandwidth }) => bandwidth?.messagesPerSecond)],
    });
  }
  if (results.some(({ latency }) => latency !== undefined)) {
    const at = (name: string, key: keyof Summary) => by(name, ({ latency }) => latency?.microseconds[key]);
    charts.push({
      title: 'Latency by message size',
      x: bytes,
      y: { title: 'µs', scale: 'log', format: formatFigure },
      series: [at('p50', 'p50'), at('p99', 'p99'), at('p99.9', 'p999'), at('max', 'max')],
    });
    charts.push(distributionOf(results));
  }
  return charts;
}

/** By how many samples are slower: each step to the right is ten times rarer. */
function distributionOf(results: readonly SizeResult[]): Chart {
  const shown = results.filter(({ latency }) => latency !== undefined && latency.count > 0);
  const few = shown.filter((_, i) => shown.length <= 6 || i % Math.ceil(shown.length / 6) === 0);
  const most = Math.max(...shown.map(({ latency }) => latency!.count), 10);
  const ticks = [1];
  while (ticks.at(-1)! < most) ticks.push(ticks.at(-1)! * 10);
  const rarity = (percent: number, count: number) => (percent >= 100 ? count : 1 / (1 - percent / 100));
  return {
    title: 'Latency distribution',
    x: {
      title: 'percent of the samples that were not slower',
      scale: 'log',
      ticks,
      format: (value) => `${Number((100 - 100 / value).toFixed(6))} %`,
    },
    y: { title: 'µs', scale: 'log', format: formatFigure },
    series: few.map(({ size, latency }) => ({
      name: formatBytes(size),
      points: latency!.distribution.map(({ percent, value }) => ({
        x: rarity(percent, latency!.count),
        y: value,
      })),
    })),
  };
}

/** Powers of two, not too many of them. */
function sizeTicks(sizes: readonly number[]): number[] {
  if (sizes.length === 0) return [];
  const [low, high] = [Math.min(...sizes), Math.max(...sizes)].map((size) => Math.round(Math.log2(size))) as [
    number,
    number,
  ];
  const step = Math.max(Math.ceil((high - low) / 8), 1);
  const ticks: number[] = [];
  for (let power = low; power <= high; power += step) ticks.push(2 ** power);
  return ticks;
}

function figuresOf({ results }: PerfResult): string {
  if (results.length === 0) return '<p>This end has measured nothing.</p>';
  const parts: string[] = [];
  const bandwidths = results.filter(({ bandwidth }) => bandwidth !== undefined);
  if (bandwidths.length > 0) {
    parts.push(
      table(
        ['message', 'iterations', 'peak MiB/s', 'average MiB/s', 'average Gb/s', 'messages/s', 'CPU %'],
        bandwidths.map(({ size, iterations, bandwidth: b, cpuPercent }) => [
          formatBytes(size),
          String(iterations),
          ...[
            b!.peakMebibytesPerSecond,
            b!.mebibytesPerSecond,
            b!.gigabitsPerSecond,
            b!.messagesPerSecond,
            cpuPercent,
          ].map(formatFigure),
        ]),
      ),
    );
  }
  const latencies = results.filter(({ latency }) => latency !== undefined);
  if (latencies.length > 0) {
    const keys = ['min', 'p50', 'p90', 'p99', 'p999', 'p9999', 'max', 'mean', 'stdev'] as const;
    parts.push(
      table(
        ['message', 'samples', 'min µs', 'p50', 'p90', 'p99', 'p99.9', 'p99.99', 'max', 'mean', 'stdev'],
        latencies.map(({ size, latency }) => [
          formatBytes(size),
          String(latency!.count),
          ...keys.map((key) => formatFigure(latency!.microseconds[key])),
        ]),
      ),
    );
  }
  return parts.join('\n');
}

function circumstancesOf({ platform, device, configuration, connection }: PerfResult): string[][] {
  const { gid, ...port } = device;
  const all = {
    ...platform,
    ...port,
    gid: `${gid.address} (index ${gid.index}, ${gid.type}): ${gid.reason}`,
    ...(connection && {
      peer: `${connection.peer.address}, perftest ${connection.peer.perftest}`,
      peerNodeRdma: connection.peer.nodeRdma?.nodeRdma ?? null,
      pathMtu: connection.pathMtu,
    }),
    ...configuration,
  };
  return Object.entries(all).map(([name, value]) => [
    name,
    value === null || value === undefined ? '–' : Array.isArray(value) ? value.join(', ') : String(value),
  ]);
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = (row: readonly string[], tag: string) =>
    row.map((cell) => `<${tag}>${escape(cell)}</${tag}>`).join('');
  const heading = head.some((cell) => cell !== '') ? `<thead><tr>${cells(head, 'th')}</tr></thead>` : '';
  return `<table${heading === '' ? ' class="facts"' : ''}>${heading}<tbody>${rows.map((row) => `<tr>${cells(row, 'td')}</tr>`).join('')}</tbody></table>`;
}
