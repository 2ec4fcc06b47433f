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

const loadsAddon = {
  regex: '^(node-gyp-build|(node:)?module)$',
  message: 'Only lib/verbs/native.ts loads the addon.',
};
const surface = {
  regex: '^\\./index\\.js$|^(\\.\\./)+index\\.js$',
  message: 'An index.ts is for those outside its folder: import from the file that defines it.',
};

/** @type {import('eslint').Linter.Config[]} */
export const importDirection = [
  ...layers.flat().map((folder) => ({
    name: `import direction: ${folder}`,
    files: [`lib/${folder}/**/*.ts`],
    rules: forbid(
      {
        regex: `^(\\.\\./)+(${mayNotImport(folder).join('|') || '(?!)'})/`,
        message: `${folder} may not know this folder: imports run ${order}.`,
      },
      loadsAddon,
      ...(folder === 'cli' ? [] : [surface]),
    ),
  })),
  {
    name: 'import direction: the addon',
    files: ['lib/verbs/native.ts'],
    rules: forbid({
      regex: '^\\.\\.?/',
      message: 'native.ts is the lowest layer: it imports nothing of the project.',
    }),
  },
  {
    name: 'import direction: loading by other ways',
    files: ['lib/**/*.ts'],
    ignores: ['lib/verbs/native.ts'],
    rules: {
      'no-restricted-properties': [
        'error',
        { object: 'process', property: 'dlopen', message: loadsAddon.message },
      ],
    },
  },
];
