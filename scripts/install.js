// @ts-check
// Runs when the package is installed: keeps the prebuilt addon where it fits this system, and builds one where none does.
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { howToInstall, missingPackages } from './missing-packages.js';
import { buildEnvironment } from './node-headers.js';

const root = fileURLToPath(new URL('..', import.meta.url));

if (process.env.npm_config_build_from_source === 'true' || !hasAddon()) build();

function hasAddon() {
  let file;
  try {
    file = createRequire(import.meta.url)('node-gyp-build').path(root);
  } catch {
    return false; // none for this platform
  }
  const { status, stderr } = spawnSync(process.execPath, ['-e', `require(${JSON.stringify(file)})`], {
    encoding: 'utf8',
  });
  // A machine may get its RDMA libraries later; until then the first call tells what is missing.
  if (status === 0 || /lib(ibverbs|rdmacm)\.so\S*: cannot open shared object file/.test(stderr)) return true;
  console.error(`${file} does not fit this system (${/^Error: (.*)$/m.exec(stderr)?.[1] ?? stderr.trim()}).`);
  return false;
}

function build() {
  console.error('node-rdma: building the addon from source');
  const missing = missingPackages(['build']);
  if (missing.length > 0) {
    console.error(
      `node-rdma: no prebuilt addon fits this system, and none can be built here.\n${howToInstall(missing)}`,
    );
    process.exitCode = 1;
    return;
  }
  const nodeGyp = process.env.npm_config_node_gyp;
  const [command, ...args] = nodeGyp ? [process.execPath, nodeGyp] : ['node-gyp'];
  const { status, error } = spawnSync(command, [...args, 'rebuild', '--jobs', 'max'], {
    cwd: root,
    env: buildEnvironment(),
    stdio: 'inherit',
  });
  if (error) console.error(`node-rdma: ${command} does not start: ${error.message}`);
  process.exitCode = status ?? 1;
}
