// @ts-check
// The direction of imports, as lint rules: a file's folder says what it may know.

/** From the lowest to the highest. A folder may import from those below it, and not from its neighbours. */
const layers = [['verbs'], ['ring'], ['cm'], ['perf', 'net', 'rxe'], ['cli']];

const order = 'cli → perf, net, rxe → cm → ring → verbs → native';

/** @param {string} folder */
function mayNotImport(folder) {
  const level = layers.findIndex((layer) => layer.includes(folder));
  return layers
    .slice(level)
    .flat()
    .filter((other) => other !== folder);
}

/**
 * @param {{ regex: string, message: string }[]} patterns
 * @returns {import('eslint').Linter.RulesRecord}
 */
const forbid = (...patterns) => ({ '@typescript-eslint/no-restricted-imports': ['error', { patterns }] });

const message = 'Only lib/verbs/native.ts loads the addon.';
const loader = { regex: '^node-gyp-build$', message };
const createsRequire = { regex: '^(node:)?module$', message };
const surface = {
  regex: '^\\./index\\.js$|^(\\.\\./)+index\\.js$',
  message: 'An index.ts is for those outside its folder: import from the file that defines it.',
};

/** @param {string} folder */
const belowOf = (folder) => ({
  regex: `^(\\.\\./)+(${mayNotImport(folder).join('|')})/`,
  message: `${folder} may not know this folder: imports run ${order}.`,
});

/** @type {import('eslint').Linter.Config[]} */
export const importDirection = [
  ...layers.flat().map((folder) => ({
    name: `import direction: ${folder}`,
    files: [`lib/${folder}/**/*.ts`],
    rules: folder === 'cli' ? forbid(loader) : forbid(belowOf(folder), surface, loader, createsRequire),
  })),
  {
    name: 'import direction: the addon',
    files: ['lib/verbs/native.ts'],
    rules: forbid(belowOf('verbs'), surface),
  },
  {
    name: 'import direction: loading by other ways',
    files: ['lib/**/*.ts'],
    ignores: ['lib/verbs/native.ts'],
    rules: {
      'no-restricted-properties': ['error', { object: 'process', property: 'dlopen', message }],
    },
  },
];
