// @ts-check
// The results as tables in Markdown.

/** @param {any[]} results as main.js writes them */
export function summarize(results) {
  return `${results.map((result) => (result.paths ? binding(result) : device(result))).join('\n\n')}\n`;
}

/** @param {any} result */
function binding(result) {
  const rows = Object.values(result.paths).map((path) => {
    const { title, target, instructions } = path;
    const { ours, c, pyverbs } = path.figures;
    return [
      title,
      nanoseconds(ours.nanoseconds),
      `≤ ${target} ns`,
      nanoseconds(c.nanoseconds),
      times(ours.nanoseconds / c.nanoseconds),
      nanoseconds(pyverbs.nanoseconds),
      times(pyverbs.nanoseconds / ours.nanoseconds),
      instructions ? `${Math.round(instructions.ours)} : ${Math.round(instructions.c)}` : '–',
    ];
  });
  const heap = Object.entries(result.heap.bytes).map(
    ([name, { bytes, collections }]) =>
      `${name}: ${bytes} bytes${collections > 0 ? ` and ${collections} collections` : ''}`,
  );
  return [
    `On a provider that does nothing, per operation with its completion; medians. ${described(result)}`,
    '',
    table(
      ['path', 'ours', 'target', 'C', 'ours / C', 'pyverbs', 'pyverbs / ours', 'instructions, ours : C'],
      rows,
    ),
    '',
    `JavaScript heap taken by ${result.heap.operations} operations: ${heap.join(', ')}. A queue pair takes ${result.queuePair.all} bytes ` +
      `of memory, ${result.queuePair.heap} of them on the JavaScript heap.`,
  ].join('\n');
}

/** @param {any} result */
function device(result) {
  const rows = result.measures.map((/** @type {any} */ { title, unit, least, most, of }) => {
    const against = (/** @type {string} */ who) =>
      of.c && of[who] ? (of[who].median / of.c.median).toFixed(2) : '–';
    const figure = (/** @type {string} */ who) => (of[who] ? rounded(of[who].median) : '–');
    const target = least !== undefined ? `≥ ${least}` : most !== undefined ? `≤ ${most}` : '–';
    return [
      `${title}, ${unit}`,
      figure('c'),
      figure('ring'),
      against('ring'),
      target,
      figure('objects'),
      against('objects'),
      figure('pyverbs'),
      against('pyverbs'),
    ];
  });
  return [
    `On Soft-RoCE, engine ${result.engine ?? 'none: a device of the host'}, both ends in one process; medians. ${described(result)}`,
    '',
    table(
      ['measure', 'C', 'ring', 'ring / C', 'target', 'objects', 'objects / C', 'pyverbs', 'pyverbs / C'],
      rows,
    ),
  ].join('\n');
}

/** @param {any} result */
function described({ date, processor, processors, kernel, node }) {
  return `${date.slice(0, 10)}, ${processor} with ${processors} processor${processors === 1 ? '' : 's'}, Linux ${kernel}, Node.js ${node}.`;
}

/**
 * @param {string[]} head
 * @param {string[][]} rows
 */
function table(head, rows) {
  const line = (/** @type {string[]} */ cells) => `| ${cells.join(' | ')} |`;
  const rule = line(head.map((_, i) => (i === 0 ? '---' : '---:')));
  return [line(head), rule, ...rows.map(line)].join('\n');
}

const nanoseconds = (/** @type {number} */ value) => `${rounded(value)} ns`;
const times = (/** @type {number} */ value) => `${rounded(value)} ×`;

/** Three figures. @param {number} value */
function rounded(value) {
  return value >= 100 ? String(Math.round(value)) : value.toPrecision(3);
}
