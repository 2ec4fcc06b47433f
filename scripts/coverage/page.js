// @ts-check
// Writes docs/coverage.md: `node scripts/coverage/page.js`. With --check it only says whether that is current.
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { format, resolveConfig } from 'prettier';
import { root, runMain, StepError } from '../progress.js';
import { sections, statuses } from './table.js';

const file = path.join(root, 'docs', 'coverage.md');

const head = `# Coverage of libibverbs and librdmacm

Every public function of the installed headers (\`infiniband/verbs.h\`, \`rdma/rdma_cma.h\`) and where it is in the interface of
this library. Made from [scripts/coverage/table.js](../scripts/coverage/table.js) by \`node scripts/coverage/page.js\`; a unit test
fails when a function of the header is missing, or a place or test does not exist.

- **${statuses.rxe}**: the named test calls it on Soft-RoCE and looks at what it did.
- **${statuses.checked}**: rxe does not have it. The test with a recording provider looks at every field of the
  structs that a provider gets; the test on rxe, at the refusal (\`ERR_RDMA_UNSUPPORTED\`).
- **${statuses.withoutDevice}**: the library itself does it.
- **${statuses.none}**: with the reason.
`;

/** @param {import('./table.js').Row} row */
function line({ name, places, status, tests, note }) {
  const cells = [
    `\`${name}\``,
    places.map((place) => `\`${place}\``).join(', '),
    statuses[status],
    tests.map((test) => `[${path.basename(test, '.test.ts')}](../${test})`).join(', '),
    note ?? '',
  ];
  return `| ${cells.join(' | ')} |`;
}

/** The page as it should be. */
export async function coveragePage() {
  const rows = sections.flatMap((section) => section.rows);
  const counts = Object.entries(statuses).map(
    ([status, text]) => `${rows.filter((row) => row.status === status).length} ${text}`,
  );
  const parts = sections.map(({ title, rows: of }) =>
    [
      `## ${title}`,
      '',
      '| function | in the interface | status | tests | notes |',
      '| --- | --- | --- | --- | --- |',
      ...of.map(line),
      '',
    ].join('\n'),
  );
  const text = [head, `${rows.length} functions: ${counts.join(', ')}.`, '', ...parts].join('\n');
  return format(text, { ...(await resolveConfig(file)), parser: 'markdown' });
}

/** The page as it is in the repository. */
export const writtenPage = () => readFileSync(file, 'utf8');

if (process.argv[1] === import.meta.filename) {
  await runMain(async () => {
    const page = await coveragePage();
    if (!process.argv.includes('--check')) writeFileSync(file, page);
    else if (writtenPage() !== page)
      throw new StepError('docs/coverage.md is not current: node scripts/coverage/page.js');
  });
}
