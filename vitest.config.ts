import { defineConfig } from 'vitest/config';

// Tests import from `../../lib/`. The unit tests run that TypeScript itself; all others run what `npm run build:ts` made of
// it, as users do: in an emulated machine, reading a few plain files is far quicker than transforming the sources.
const compiled = {
  resolve: {
    alias: [{ find: /^(?:\.\.\/)+lib\/(.*)\.js$/, replacement: `${import.meta.dirname}/build/lib/$1.js` }],
  },
};
const external = { deps: { external: [/\/build\/lib\//] } };

/** Tests on a device, one file after the other in one process: they share the device's names and its bandwidth. */
const onDevice = (name: string) => ({
  ...compiled,
  test: {
    name,
    include: [`test/${name}/**/*.test.ts`],
    server: external,
    isolate: false,
    maxWorkers: 1,
    // A bound for what hangs, no measure of speed: under emulation on a busy machine Node alone takes ten seconds to start.
    testTimeout: 180_000,
    hookTimeout: 180_000,
  },
});

/** Tests of the host's own processes: machines, builds, installations. */
const onHost = (name: string, more = {}) => ({
  ...compiled,
  test: {
    name,
    include: [`test/${name}/**/*.test.ts`],
    server: external,
    maxWorkers: 1,
    testTimeout: 180_000,
    hookTimeout: 180_000,
    ...more,
  },
});

export default defineConfig({
  test: {
    pool: 'forks',
    fileParallelism: false,
    // Of tests that may run side by side, as the programs in test/process: as many as an emulated machine has processors.
    maxConcurrency: 2,
    execArgv: ['--enable-source-maps'],
    projects: [
      { test: { name: 'unit', include: ['test/unit/**/*.test.ts'], pool: 'threads', testTimeout: 20_000 } },
      onDevice('rxe'),
      onDevice('interop'),
      onDevice('process'),
      onHost('runner'),
      onHost('package', { globalSetup: 'test/package/global-setup.ts' }),
    ],
  },
});
