// @ts-check
// Where Node's headers are.
import { existsSync } from 'node:fs';
import path from 'node:path';

/**
 * The environment for node-gyp and cmake-js. They download Node's headers where they are not told where these are: tell
 * them, when the headers came with this Node.
 */
export function buildEnvironment() {
  const prefix = path.dirname(path.dirname(process.execPath));
  const atHand = existsSync(path.join(prefix, 'include/node/node_api.h'));
  return atHand ? { npm_config_nodedir: prefix, ...process.env } : process.env;
}
