// Line charts as SVG: nothing to load, nothing to run, and printable.

export interface Series {
  name: string;
  points: readonly { x: number; y: number }[];
}

export interface Axis {
  title: string;
  scale: 'linear' | 'log';
  /** Where lines of the grid are, and what they are called. By default what fits the values. */
  ticks?: readonly number[];
  format: (value: number) => string;
}

export interface Chart {
  title: string;
  x: Axis;
  y: Axis;
  series: readonly Series[];
}

const width = 640;
const height = 320;
const margin = { left: 70, right: 20, top: 16, bottom: 48 };
const inner = { width: width - margin.left - margin.right, height: height - margin.top - margin.bottom };

/** The chart; a sentence in its place where there is nothing to draw. */
export function renderChart({ title, x, y, series }: Chart): string {
  const drawn = series.filter(({ points }) => points.length > 0);
  const points = drawn.flatMap((one) => one.points);
  if (points.length === 0)
    return `<figure><figcaption>${escape(title)}</figcaption><p>Nothing was measured.</p></figure>`;
  const across = scaleOf(
    x,
    points.map((point) => point.x),
  );
  const up = scaleOf(
    y,
    points.map((point) => point.y),
  );
  const px = (value: number) => margin.left + across.place(value) * inner.width;
  const py = (value: number) => margin.top + (1 - up.place(value)) * inner.height;
  const grid = [
    ...across.ticks.map(
      (tick) =>
        `<line class="grid" x1="${fix(px(tick))}" x2="${fix(px(tick))}" y1="${margin.top}" y2="${margin.top + inner.height}"/>` +
        `<text class="tick" text-anchor="middle" x="${fix(px(tick))}" y="${margin.top + inner.height + 16}">${escape(x.format(tick))}</text>`,
    ),
    ...up.ticks.map(
      (tick) =>
        `<line class="grid" x1="${margin.left}" x2="${margin.left + inner.width}" y1="${fix(py(tick))}" y2="${fix(py(tick))}"/>` +
        `<text class="tick" text-anchor="end" x="${margin.left - 6}" y="${fix(py(tick) + 4)}">${escape(y.format(tick))}</text>`,
    ),
  ];
  const lines = drawn.map(({ name, points: own }, i) => {
    const path = own.map((point) => `${fix(px(point.x))},${fix(py(point.y))}`).join(' ');
    const dots = own.map(
      (point) =>
        `<circle cx="${fix(px(point.x))}" cy="${fix(py(point.y))}" r="3"><title>${escape(`${name}, ${x.format(point.x)}: ${y.format(point.y)}`)}</title></circle>`,
    );
    return `<g class="series s${i}"><polyline points="${path}"/>${dots.join('')}</g>`;
  });
  const legend = drawn
    .map(({ name }, i) => `<span class="key s${i}"><i></i>${escape(name)}</span>`)
    .join(' ');
  return `<figure><figcaption>${escape(title)}</figcaption>
<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${escape(title)}">
${grid.join('')}
<text class="title" text-anchor="middle" x="${margin.left + inner.width / 2}" y="${height - 8}">${escape(x.title)}</text>
<text class="title" text-anchor="middle" transform="translate(14 ${margin.top + inner.height / 2}) rotate(-90)">${escape(y.title)}</text>
${lines.join('\n')}
</svg>
<p class="legend">${legend}</p></figure>`;
}

interface Scale {
  /** 0 to 1. */
  place(value: number): number;
  ticks: number[];
}

function scaleOf(axis: Axis, values: number[]): Scale {
  return axis.scale === 'log' ? logScale(axis, values) : linearScale(axis, values);
}

/** From 0, or the least tick, to the first round number that is not below any value. */
function linearScale({ ticks }: Axis, values: number[]): Scale {
  const highest = Math.max(...values, ...(ticks ?? []), Number.MIN_VALUE);
  const step = roundUp(highest / 5);
  const top = ticks === undefined ? Math.ceil(highest / step) * step : highest;
  const least = Math.min(...(ticks ?? [0]));
  const own = ticks ?? Array.from({ length: Math.round(top / step) + 1 }, (_, i) => i * step);
  return { place: (value) => (value - least) / (top - least || 1), ticks: [...own] };
}

function logScale({ ticks }: Axis, values: number[]): Scale {
  const positive = values.filter((value) => value > 0);
  const all = ticks ?? powersOfTen(Math.min(...positive), Math.max(...positive));
  const [low, high] = [Math.min(...positive, ...all), Math.max(...positive, ...all)].map(Math.log) as [
    number,
    number,
  ];
  return { place: (value) => (high > low ? (Math.log(value) - low) / (high - low) : 0.5), ticks: [...all] };
}

function powersOfTen(low: number, high: number): number[] {
  const [first, last] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  return Array.from({ length: last - first + 1 }, (_, i) => 10 ** (first + i));
}

/** The next of 1, 2, 2.5, 5 and 10 times a power of ten. */
function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * [1, 2, 2.5, 5, 10].find((factor) => factor * power >= value * (1 - 1e-9))!;
}

const fix = (value: number) => value.toFixed(1);

export function escape(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
}
