// The README shows this program; here it runs as a user has it, with node-rdma by its name.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const root = `${import.meta.dirname}/../..`;
const example = `${root}/examples/send-message.mjs`;

it('the example sends its message', () => {
  const output = execFileSync(process.execPath, [example], { encoding: 'utf8', timeout: 50_000 });
  expect(output).toBe('Hello from Node.js over RDMA\n');
});

it('the README shows the example as it is', () => {
  const readme = readFileSync(`${root}/README.md`, 'utf8');
  expect(readme).toContain('```js\n' + readFileSync(example, 'utf8') + '```\n');
});

it('the example of the connection manager connects', () => {
  const output = execFileSync(process.execPath, [`${root}/examples/connect.mjs`], {
    encoding: 'utf8',
    timeout: 100_000,
  });
  expect(output).toBe('asked: may I?\naccepted: welcome\nreceived: Hello over rdma_cm\n');
});
