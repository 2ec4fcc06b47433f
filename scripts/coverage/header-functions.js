// @ts-check
// The public functions of the installed headers of libibverbs and librdmacm.
import { readFileSync } from 'node:fs';

const include = '/usr/include';

/** Whose functions docs/coverage.md lists. */
export const headers = ['infiniband/verbs.h', 'infiniband/verbs_api.h', 'rdma/rdma_cma.h'];

/** Whose names are public: a leading underscore marks what the header keeps to itself. */
const publicName = /^(?:ibv_|rdma_|mult_to_ibv_|mbps_to_ibv_|verbs_get_)/;

/**
 * The functions that C source declares or defines at file level, in their order.
 * @param {string} source
 * @returns {string[]}
 */
export function functionsIn(source) {
  const text = source
    .replace(/\/\*[\s\S]*?\*\//g, ' ')
    .replace(/\/\/.*/g, ' ')
    .replace(/^[ \t]*#(?:.*\\\n)*.*$/gm, ' ')
    .replace(/extern\s+"C"\s*\{/g, ' ');
  /** @type {Set<string>} */
  const names = new Set();
  for (const declaration of atFileLevel(text)) {
    if (/^\s*(?:struct|union|enum|typedef)\b[^(]*$/.test(declaration)) continue;
    const name = /(\w+)\s*\((?!\s*\*)/.exec(declaration.replace(/__attribute__\s*\(\(.*?\)\)/g, ' '))?.[1];
    if (name !== undefined && publicName.test(name)) names.add(name);
  }
  return [...names];
}

/**
 * What stands outside of all braces, cut at semicolons and bodies.
 * @param {string} text
 */
function* atFileLevel(text) {
  let depth = 0;
  let start = 0;
  for (let i = 0; i < text.length; ++i) {
    const char = text[i];
    if (char === '{') {
      if (depth++ === 0) yield text.slice(start, i);
    } else if (char === '}') {
      if (depth > 0 && --depth === 0) start = i + 1;
    } else if (char === ';' && depth === 0) {
      yield text.slice(start, i);
      start = i + 1;
    }
  }
}

/** @returns {string[]} of all {@link headers}, each once */
export function installedFunctions() {
  return [...new Set(headers.flatMap((header) => functionsIn(readFileSync(`${include}/${header}`, 'utf8'))))];
}
