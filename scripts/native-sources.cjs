// Lists the C++ sources of one target for binding.gyp and CMakeLists.txt, so that both builds have one list:
// `native` is the addon (native/ and native/util/), `agent` the program that runs inside a machine (native/agent/).
// With --unity the list is one file, in build/, that includes them all: most of a compiler's time goes into Node's headers, and
// so the addon takes a fifth of it.
'use strict';
const fs = require('node:fs');
const path = require('node:path');

const folders = { native: ['native', 'native/util'], agent: ['native/agent'] };
const root = path.join(__dirname, '..');
const [target, option] = process.argv.slice(2);

const sources = folders[target].flatMap((folder) =>
  fs
    .readdirSync(path.join(root, folder))
    .filter((name) => name.endsWith('.cc'))
    .sort()
    .map((name) => path.posix.join(folder, name)),
);
console.log(option === '--unity' ? unity() : sources.join('\n'));

function unity() {
  const file = path.posix.join('build', 'unity', `${target}.cc`);
  fs.mkdirSync(path.join(root, path.dirname(file)), { recursive: true });
  const text = sources.map((source) => `#include "../../${source}"\n`).join('');
  fs.writeFileSync(path.join(root, file), text);
  return file;
}
