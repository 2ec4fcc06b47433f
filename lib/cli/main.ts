#!/usr/bin/env node
import { Command } from 'commander';
import { packageVersion } from '../package.js';
import { addDemoCommand } from './demo.js';
import { addPerfCommand } from './perf.js';
import { addRxeCommand } from './rxe.js';

const program = new Command('node-rdma')
  .description('RDMA for Node.js: tools')
  .version(packageVersion())
  .enablePositionalOptions()
  .showHelpAfterError('(--help shows what there is)');

addDemoCommand(program);
addPerfCommand(program);
addRxeCommand(program);

await program.parseAsync();
