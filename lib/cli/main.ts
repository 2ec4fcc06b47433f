#!/usr/bin/env node
import { Command } from 'commander';
import { readFileSync } from 'node:fs';
import { addDemoCommand } from './demo.js';
import { addPerfCommand } from './perf.js';
import { addRxeCommand } from './rxe.js';

const description = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
const { version } = JSON.parse(description) as { version: string };

const program = new Command('node-rdma')
  .description('RDMA for Node.js: tools')
  .version(version)
  .enablePositionalOptions()
  .showHelpAfterError('(--help shows what there is)');

addDemoCommand(program);
addPerfCommand(program);
addRxeCommand(program);

await program.parseAsync();
