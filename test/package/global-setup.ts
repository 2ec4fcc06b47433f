// What the tests of the package start from, made once: the tarball as a release makes it, and a project that installed it.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { TestProject } from 'vitest/node';
import { emptyProject, mustRun, repository } from './project.js';

declare module 'vitest' {
  interface ProvidedContext {
    workspace: string;
    tarball: string;
    project: string;
  }
}

export default async function setUp({ provide }: TestProject) {
  await mustRun(process.execPath, ['scripts/prebuilds.js'], repository);
  const workspace = mkdtempSync(path.join(tmpdir(), 'node-rdma-package-'));
  // `npm test` has just built dist/; without --ignore-scripts npm would build it a second time.
  const packed = await mustRun(
    'npm',
    ['pack', '--json', '--ignore-scripts', '--pack-destination', workspace],
    repository,
  );
  const [{ filename }] = JSON.parse(packed) as [{ filename: string }];
  const tarball = path.join(workspace, filename);

  const project = emptyProject(workspace);
  await mustRun('npm', ['install', '--prefer-offline', '--no-audit', '--no-fund', tarball], project);

  provide('workspace', workspace);
  provide('tarball', tarball);
  provide('project', project);
  return () => rmSync(workspace, { recursive: true, force: true });
}
