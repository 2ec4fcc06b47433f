// @ts-check
// npm run test:conformance [-- FILTER… --kernel 6.1|6.12|KERNEL --engine uml|qemu]: the cases of conformance alone, on the kernel that is
// asked for, and the table of what conforms.
import { execFileSync } from 'node:child_process';
import { release } from 'node:os';
import { parseArgs } from 'node:util';
import { runMain, StepError } from './progress.js';
import { clearReports, runTests } from './run-tests.js';
import { groupsToRun, hasDevice, setUp } from './setup.js';
import { inWords } from './test-report.js';

const suite = 'test/rxe/conformance/';

await runMain(async () => {
  const { filters, engine, kernel } = readOptions();
  await setUp('test', ...groupsToRun(engine));
  clearReports('conformance');
  const counted = await runTests({
    name: 'conformance',
    projects: ['rxe'],
    device: true,
    filters: filters.length > 0 ? filters.map((filter) => `${suite}${filter}`) : [suite],
    ...(await machine(engine, kernel)),
  });
  console.log(inWords(counted));
  return counted.failed > 0 || counted.passed === 0 ? 1 : 0;
});

function readOptions() {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: { engine: { type: 'string' }, kernel: { type: 'string' } },
    });
    return { filters: positionals, ...values };
  } catch (error) {
    const usage = 'npm run test:conformance -- [FILTER…] [--kernel 6.1|6.12|KERNEL] [--engine host|uml|qemu]';
    throw new StepError(`${/** @type {Error} */ (error).message}\nUsage: ${usage}`);
  }
}

/**
 * The machine whose kernel is of a version such as 6.12: a User-Mode Linux kernel where one is at hand, else the distribution's
 * in QEMU. Any other name of a kernel is left to `node-rdma rxe run`.
 * @param {string} [engine]
 * @param {string} [kernel]
 * @returns {Promise<{ engine?: string, kernel?: string }>}
 */
async function machine(engine, kernel) {
  if (kernel === undefined || !/^\d+\.\d+$/.test(kernel))
    return { ...(engine && { engine }), ...(kernel && { kernel }) };
  const isOf = (/** @type {string} */ name) => name.startsWith(`${kernel}.`);
  if (hasDevice()) {
    if (isOf(release())) return {};
    throw new StepError(`This host has an RDMA device, and its kernel is ${release()}, not ${kernel}.`);
  }
  if (engine !== 'qemu') {
    const uml = (await umlKernels()).find((one) => isOf(one.release));
    if (uml) return { engine: 'uml', kernel: uml.path };
    if (engine === 'uml')
      throw new StepError(
        `No User-Mode Linux kernel ${kernel}: let NODE_RDMA_RXE_KERNEL name one, or build one by node-rdma rxe kernel build.`,
      );
  }
  return { engine: 'qemu', kernel: imagePackage(kernel) };
}

/** The one that is named, and those that were built. */
async function umlKernels() {
  const { builtUmlKernels, findUmlKernel } = await import(
    new URL('../build/lib/rxe/kernel/uml.js', import.meta.url).href
  );
  const named = await findUmlKernel();
  return [...(named ? [named] : []), ...(await builtUmlKernels())];
}

/** The newest kernel package of a version. @param {string} version */
function imagePackage(version) {
  const flavour = process.arch === 'x64' ? 'amd64' : process.arch;
  const pattern = `^linux-image-${version.replace('.', '\\.')}\\.[^ ]*[0-9]-${flavour}$`;
  const found = execFileSync('apt-cache', ['search', '--names-only', pattern], { encoding: 'utf8' })
    .split('\n')
    .map((line) => line.split(' ')[0] ?? '')
    .filter(Boolean)
    .sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
  const newest = found.at(-1);
  if (newest) return newest;
  throw new StepError(
    `No package linux-image-${version}… in the package sources: 6.12 for Debian 12 is in its backports; or name a kernel by --kernel.`,
  );
}
