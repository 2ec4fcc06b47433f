// The host engine, on the one kernel with rdma_rxe that every machine has: that of a machine of another engine.
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { machineWire, wireRemovalScript } from '../../lib/rxe/wire.js';
import { rxe, type Outcome } from './cli.js';
import { engines } from './engines.js';

const main = join(import.meta.dirname, '../../dist/cli/main.js');

// One machine for all: each line that it prints is what one test looks at.
const script = `
${wireRemovalScript(machineWire(1500))}
run() { ${process.execPath} ${main} rxe run --engine host "$@" 2> /tmp/said; }
say() { echo "$1: $(cat)"; }

# Two ends of a connection, and what the wire between them has carried.
run --mtu 4200 -- sh -c '
  echo "devices: $(ibv_devinfo | grep -c PORT_ACTIVE) $NODE_RDMA_RXE_ENGINE $NODE_RDMA_RXE_DEVICE_A"
  before=$(cat /sys/class/net/$NODE_RDMA_RXE_NETDEV_B/statistics/rx_bytes)
  ibv_rc_pingpong -d $NODE_RDMA_RXE_DEVICE_B -g 1 -s 65536 -n 20 -e > /tmp/server &
  while ! grep -q ":4853 0*:0000 0A" /proc/net/tcp /proc/net/tcp6; do sleep 0.1; done
  ibv_rc_pingpong -d $NODE_RDMA_RXE_DEVICE_A -g 1 -s 65536 -n 20 -e 127.0.0.1 > /dev/null
  echo "traffic: $? $(($(cat /sys/class/net/$NODE_RDMA_RXE_NETDEV_B/statistics/rx_bytes) - before))"
  exit 17
'
echo "status: $?"
rdma link show | grep -c . | say left

# One that is killed leaves its devices; who comes while it lives is refused, and the next after it takes them away.
${process.execPath} ${main} rxe run --engine host -- sh -c 'echo up > /tmp/up; exec sleep 600' > /dev/null 2>&1 &
killed=$!
while [ ! -e /tmp/up ]; do sleep 0.1; done
run -- true; echo "second: $? $(cat /tmp/said)"
kill -9 $killed
wait $killed 2> /dev/null
rdma link show | grep -c nrdma | say abandoned
pkill -x sleep
run -- sh -c 'rdma link show | grep -c nrdma' | say again
rdma link show | grep -c . | say end
`;

describe.runIf(engines.length > 0)('the host engine', () => {
  let outcome: Outcome;
  let lines: Map<string, string>;
  beforeAll(async () => {
    outcome = await rxe(['run', '--engine', engines[0]!, '--timeout', '150', '--', 'sh', '-s'], {
      input: script,
    });
    lines = new Map(
      outcome.stdout
        .toString()
        .split('\n')
        .map((line) => line.split(/: (.*)/) as [string, string]),
    );
  });
  const line = (name: string) => lines.get(name) ?? `nothing; ${outcome.stderr.toString()}`;

  it('has two active devices, named in the environment', () =>
    expect(line('devices')).toBe('2 host nrdma_a'));

  it('passes the status on', () => expect(line('status')).toBe('17'));

  it('takes its devices away', () => expect([line('left'), line('end')]).toEqual(['0', '0']));

  it('carries what the devices send over its wire', () => {
    const [status, bytes] = line('traffic').split(' ').map(Number);
    expect(status, line('traffic')).toBe(0);
    expect(bytes).toBeGreaterThan(20 * 65536);
  });

  it('refuses a second one at a time, and names the first', () => {
    expect(line('second')).toMatch(/^216 .*process \d+ uses the rxe devices of this host/);
  });

  it('takes away what one that was killed has left', () =>
    expect([line('abandoned'), line('again')]).toEqual(['2', '2']));
});
