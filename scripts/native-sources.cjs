// Lists the C++ sources of one target for binding.gyp and CMakeLists.txt, so that both builds have one list:
// `native` is the addon (native/ and native/util/), `agent` the program that runs inside a machine (native/agent/).
'use strict';
const fs = require('node:fs');
const path = require('node:path');

const folders = { native: ['native', 'native/util'], agent: ['native/agent'] };
const root = path.join(__dirname, '..');
for (const folder of folders[process.argv[2]]) {
  for (const name of fs.readdirSync(path.join(root, folder)).sort()) {
    if (name.endsWith('.cc')) console.log(path.posix.join(folder, name));
  }
}
