import { Command, CommanderError } from 'commander';
import { describe, expect, it } from 'vitest';
import { addDemoCommand } from '../../lib/cli/demo.js';

/** What the command's action is handed for these arguments. */
function parse(...args: string[]): Record<string, unknown> {
  const program = new Command().exitOverride().configureOutput({ writeErr: () => {} });
  addDemoCommand(program);
  const demo = program.commands[0]!.action(() => {});
  program.parse(['demo', ...args], { from: 'user' });
  return demo.opts();
}

describe('options of node-rdma demo', () => {
  it('are none by default', () => {
    expect(parse()).toEqual({});
  });

  it('take sizes in bytes or larger units, and one device or two', () => {
    expect(parse('--json', '--quick', '--sizes', '8,4K, 1MiB', '--device', 'rxe_a', 'rxe_b')).toEqual({
      json: true,
      quick: true,
      sizes: [8, 4096, 1048576],
      device: ['rxe_a', 'rxe_b'],
    });
  });

  it.each([
    [['--sizes', '0'], /Give sizes from 1 byte/],
    [['--sizes', '8,,9'], /Give sizes from 1 byte/],
    [['--sizes', '8;9'], /Give sizes from 1 byte/],
    [['--device'], /argument missing/],
    [['--size', '8'], /unknown option '--size'/],
    [['rxe_a'], /too many arguments/],
  ])('%j are refused', (args, reason) => {
    expect(() => parse(...args)).toThrow(CommanderError);
    expect(() => parse(...args)).toThrow(reason);
  });
});
