import { ESLint } from 'eslint';
import tseslint from 'typescript-eslint';
import { describe, expect, test } from 'vitest';
import { importDirection } from '../../eslint.layers.js';

/** The rules alone, without type information, so that files that do not exist can be linted. */
const linter = new ESLint({
  overrideConfigFile: true,
  overrideConfig: [
    {
      files: ['**/*.ts'],
      languageOptions: { parser: tseslint.parser },
      plugins: { '@typescript-eslint': tseslint.plugin },
    },
    ...importDirection,
  ] as ESLint.Options['overrideConfig'],
});

async function complaints(filePath: string, code: string): Promise<string[]> {
  const [result] = await linter.lintText(code, { filePath });
  return result!.messages.map(({ message }) => message);
}

describe('imports run cli → perf, net, rxe → cm → ring → verbs → native', () => {
  test.each([
    ['lib/verbs/context.ts', '../cli/main.js'],
    ['lib/verbs/context.ts', '../ring/send-ring.js'],
    ['lib/ring/send-ring.ts', '../cm/channel.js'],
    ['lib/cm/channel.ts', '../net/server.js'],
    ['lib/net/server.ts', '../rxe/engine.js'],
    ['lib/rxe/engines/uml.ts', '../../perf/latency.js'],
    ['lib/perf/latency.ts', '../cli/main.js'],
  ])('%s may not import %s', async (file, specifier) => {
    expect(await complaints(file, `import { x } from '${specifier}';`)).toEqual([
      expect.stringContaining('imports run cli → perf, net, rxe → cm → ring → verbs → native'),
    ]);
    expect(await complaints(file, `export * from '${specifier}';`)).toHaveLength(1);
    expect(await complaints(file, `import type { X } from '${specifier}';`)).toHaveLength(1);
  });

  test.each([
    ['lib/cli/main.ts', '../perf/latency.js'],
    ['lib/cli/main.ts', '../index.js'],
    ['lib/net/server.ts', '../cm/channel.js'],
    ['lib/cm/channel.ts', '../verbs/native.js'],
    ['lib/ring/send-ring.ts', '../verbs/memory-region.js'],
    ['lib/rxe/engines/uml.ts', '../agent/protocol.js'],
    ['lib/verbs/context.ts', './native.js'],
  ])('%s may import %s', async (file, specifier) => {
    expect(await complaints(file, `import { x } from '${specifier}';`)).toEqual([]);
  });

  test('only native.ts loads the addon, by whatever way', async () => {
    for (const code of [
      `import load from 'node-gyp-build';`,
      `import { createRequire } from 'node:module';`,
      `import { createRequire } from 'module';`,
      `process.dlopen({ exports: {} }, 'x.node');`,
    ]) {
      expect(await complaints('lib/verbs/context.ts', code), code).toEqual([
        expect.stringContaining('Only lib/verbs/native.ts loads the addon'),
      ]);
      expect(await complaints('lib/verbs/native.ts', code), code).toEqual([]);
    }
  });

  test('native.ts is bound by the direction like the rest of its folder', async () => {
    expect(await complaints('lib/verbs/native.ts', `import { x } from '../ring/send-ring.js';`)).toHaveLength(
      1,
    );
    expect(await complaints('lib/verbs/native.ts', `import { x } from './errors.js';`)).toEqual([]);
  });

  test('nothing in a folder imports the surface of the library', async () => {
    expect(await complaints('lib/net/server.ts', `import { x } from '../index.js';`)).toHaveLength(1);
  });

  test("the project's own configuration has these rules", async () => {
    const project = new ESLint();
    for (const { files, rules } of importDirection) {
      if (files?.[0] === 'lib/**/*.ts') continue;
      const file = String(files?.[0]).replace('**/*.ts', 'any.ts');
      const config = (await project.calculateConfigForFile(file)) as { rules: Record<string, unknown[]> };
      const [name, rule] = Object.entries(rules!)[0] as [string, unknown[]];
      expect(config.rules[name]?.[1], file).toEqual(rule[1]);
    }
  });
});
