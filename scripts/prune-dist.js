// @ts-check
// Removes from dist/ what tsc made of sources that are gone: it never does so itself.
import { existsSync, rmSync } from 'node:fs';
import path from 'node:path';
import { filesOf } from './fingerprint.js';
import { root } from './progress.js';

for (const file of filesOf('dist')) {
  const source = file.replace(/^dist/, 'lib').replace(/\.(d\.ts|js|js\.map)$/, '.ts');
  if (!existsSync(path.join(root, source))) rmSync(path.join(root, file));
}
