import { execFile } from 'node:child_process';
import { accessSync, constants, cpSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const repository = fileURLToPath(new URL('../..', import.meta.url));

export interface Outcome {
  status: number;
  stdout: string;
  stderr: string;
}

/** Runs a command to its end, whatever its status. What this run of npm and vitest put into the environment stays out. */
export function run(
  command: string,
  args: string[],
  cwd: string,
  env: NodeJS.ProcessEnv = {},
): Promise<Outcome> {
  const inherited = Object.entries(process.env).filter(
    ([name]) =>
      !/^npm_(package|lifecycle|command|execpath|node_execpath)|^(NODE_RDMA_|NODE_OPTIONS|VITEST)/.test(name),
  );
  const options = { cwd, env: { ...Object.fromEntries(inherited), ...env }, maxBuffer: 1 << 26 };
  return new Promise((resolve) => {
    execFile(command, args, options, (error, stdout, stderr) => {
      if (error === null) resolve({ status: 0, stdout, stderr });
      else if (typeof error.code === 'number') resolve({ status: error.code, stdout, stderr });
      else resolve({ status: -1, stdout, stderr: `${stderr}${error.message}` });
    });
  });
}

/** The same, for what must work. Resolves to its standard output. */
export async function mustRun(...call: Parameters<typeof run>): Promise<string> {
  const { status, stdout, stderr } = await run(...call);
  if (status !== 0) throw new Error(`${call[0]} ${call[1].join(' ')}: status ${status}\n${stdout}${stderr}`);
  return stdout;
}

/** An empty project in the workspace. */
export function emptyProject(workspace: string): string {
  const folder = mkdtempSync(path.join(workspace, 'project-'));
  writeFileSync(path.join(folder, 'package.json'), JSON.stringify({ name: 'project', private: true }));
  return folder;
}

/** A copy of a project, for a test that changes what is installed there. */
export function copyOf(project: string): string {
  const folder = emptyProject(path.dirname(project));
  cpSync(project, folder, { recursive: true, verbatimSymlinks: true });
  return folder;
}

/** The package where a project has it. */
export const installedIn = (project: string) => path.join(project, 'node_modules', 'node-rdma');

/** A folder with nothing but these programs: the PATH of a machine that lacks all others. */
export function pathWith(workspace: string, ...programs: string[]): string {
  const folder = mkdtempSync(path.join(workspace, 'bin-'));
  for (const program of programs) symlinkSync(which(program), path.join(folder, program));
  return folder;
}

function which(program: string): string {
  for (const folder of process.env.PATH!.split(':')) {
    const file = path.join(folder, program);
    try {
      accessSync(file, constants.X_OK);
      return file;
    } catch {
      // not in this one
    }
  }
  throw new Error(`${program} is not in PATH`);
}
