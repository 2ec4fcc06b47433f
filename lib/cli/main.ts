#!/usr/bin/env node
import { Command } from 'commander';
import { createRequire } from 'node:module';
import { addDemoCommand } from './demo.js';
import { addRxeCommand } from './rxe.js';

const { version } = createRequire(import.meta.url)('../../package.json') as { version: string };

const program = new Command('node-rdma')
  .description('RDMA for Node.js: tools')
  .version(version)
  .enablePositionalOptions()
  .showHelpAfterError('(--help shows what there is)');

addDemoCommand(program);
addRxeCommand(program);

await program.parseAsync();
