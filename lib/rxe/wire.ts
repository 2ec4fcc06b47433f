import { isIP } from 'node:net';

/** One end of the wire: an rxe device on one end of a veth pair. */
export interface WireEnd {
  device: string;
  netdev: string;
  address: string;
  address6: string;
}

export interface Wire {
  a: WireEnd;
  b: WireEnd;
  /** Of the network devices, in bytes. rxe's path MTU is the greatest of 256 … 4096 that fits with 80 bytes to spare. */
  mtu: number;
  /** Numbers of the two routing tables, and of the first policy rule, that the wire may use. */
  firstTable: number;
  firstRule: number;
}

/** The wire of a machine that has its kernel to itself. */
export function machineWire(mtu: number): Wire {
  return {
    a: { device: 'rxe_a', netdev: 'wire_a', address: '10.9.0.1', address6: 'fd09::1' },
    b: { device: 'rxe_b', netdev: 'wire_b', address: '10.9.0.2', address6: 'fd09::2' },
    mtu,
    firstTable: 101,
    firstRule: 10,
  };
}

/** How a command learns where the devices are, so that no test has to guess. */
export function wireEnvironment(wire: Wire): Record<string, string> {
  return {
    NODE_RDMA_RXE_DEVICE_A: wire.a.device,
    NODE_RDMA_RXE_DEVICE_B: wire.b.device,
    NODE_RDMA_RXE_NETDEV_A: wire.a.netdev,
    NODE_RDMA_RXE_NETDEV_B: wire.b.netdev,
    NODE_RDMA_RXE_ADDRESS_A: wire.a.address,
    NODE_RDMA_RXE_ADDRESS_B: wire.b.address,
    NODE_RDMA_RXE_ADDRESS6_A: wire.a.address6,
    NODE_RDMA_RXE_ADDRESS6_B: wire.b.address6,
    NODE_RDMA_RXE_MTU: String(wire.mtu),
  };
}

/**
 * The shell script that lays the wire. Both ends are in one network namespace (rxe before Linux 6.19 works in the first
 * one only), where packets between local addresses would never leave the stack: policy routing sends them through the
 * veth pair all the same, so that tc, netem and tcpdump act on RoCE traffic.
 *
 * It ends with status 3, and a line on standard error, where the kernel has no rdma_rxe; with status 5 where a tool is
 * missing.
 */
export function wireScript(wire: Wire): string {
  const { a, b, mtu } = wire;
  return `set -e
for tool in ip rdma; do
  if ! command -v $tool > /dev/null; then
    echo "$tool is not installed; install it: apt-get install iproute2" >&2
    exit 5
  fi
done
set_to() { echo "$1" > "/proc/sys/net/$2"; }

ip link set lo up
ip link add ${a.netdev} mtu ${mtu} type veth peer name ${b.netdev} mtu ${mtu}
for netdev in ${a.netdev} ${b.netdev}; do
  set_to 1 ipv4/conf/$netdev/accept_local
  set_to 0 ipv4/conf/$netdev/rp_filter
  # An address that is still being checked for duplicates is no GID yet.
  set_to 0 ipv6/conf/$netdev/accept_dad
done
set_to 0 ipv4/conf/all/rp_filter
ip -4 -batch - <<END
${routeCommands(wire, 4).join('\n')}
END
ip -6 -batch - <<END
${routeCommands(wire, 6).join('\n')}
END

rdma link add ${a.device} type rxe netdev ${a.netdev} || exit 3
rdma link add ${b.device} type rxe netdev ${b.netdev} || exit 3

# The table of GIDs follows the addresses a moment later.
has_gids() {
  found=0
  for index in 0 1 2 3; do
    read -r gid < /sys/class/infiniband/$1/ports/1/gids/$index || return 1
    case $gid in $2 | $3) found=$((found + 1)) ;; esac
  done
  [ $found -eq 2 ]
}
tries=0
until has_gids ${a.device} ${gidOf(a.address)} ${gidOf(a.address6)} &&
    has_gids ${b.device} ${gidOf(b.address)} ${gidOf(b.address6)}; do
  tries=$((tries + 1))
  if [ $tries -gt 200 ]; then
    echo "the rxe devices have no GIDs for their addresses after 20 s" >&2
    exit 4
  fi
  sleep 0.1
done
`;
}

/** Takes away what `wireScript` laid, and nothing else. What is not there is passed over. */
export function wireRemovalScript(wire: Wire): string {
  const { a, b, firstRule } = wire;
  // While the rules are taken away, local addresses must be found at all times.
  const removals = rules(wire, 4).map((_, i) => `  ip -$family rule del pref ${firstRule + i}`);
  return `rdma link del ${a.device}
rdma link del ${b.device}
ip link del ${a.netdev}
for family in 4 6; do
  ip -$family rule add pref 0 lookup local
${removals.join('\n')}
done 2> /dev/null
true
`;
}

type Family = 4 | 6;

function routeCommands(wire: Wire, family: Family): string[] {
  const { a, b, firstTable } = wire;
  const [addressA, addressB] = addresses(wire, family);
  const [length, nodad] = family === 4 ? [24, ''] : [64, ' nodad'];
  return [
    `link set ${a.netdev} up`,
    `link set ${b.netdev} up`,
    `addr add ${addressA}/${length} dev ${a.netdev}${nodad}`,
    `addr add ${addressB}/${length} dev ${b.netdev}${nodad}`,
    `route add ${addressB} dev ${a.netdev} src ${addressA} table ${firstTable}`,
    `route add ${addressA} dev ${b.netdev} src ${addressB} table ${firstTable + 1}`,
    ...rules(wire, family).map((rule, i) => `rule add pref ${wire.firstRule + i} ${rule}`),
    'rule del pref 0',
  ];
}

/**
 * What comes in at an end is for this machine; what leaves from an end, or from its address, goes to the other end; all
 * else is looked up as usual. The usual lookup of local addresses, which is first by default, moves behind these.
 */
function rules(wire: Wire, family: Family): string[] {
  const { a, b, firstTable } = wire;
  const [addressA, addressB] = addresses(wire, family);
  return [
    `iif ${a.netdev} lookup local`,
    `iif ${b.netdev} lookup local`,
    `oif ${a.netdev} lookup ${firstTable}`,
    `oif ${b.netdev} lookup ${firstTable + 1}`,
    `from ${addressA} lookup ${firstTable}`,
    `from ${addressB} lookup ${firstTable + 1}`,
    'lookup local',
  ];
}

function addresses({ a, b }: Wire, family: Family): [a: string, b: string] {
  return family === 4 ? [a.address, b.address] : [a.address6, b.address6];
}

/** An address as the kernel writes it in a table of GIDs. */
export function gidOf(address: string): string {
  if (isIP(address) === 4) {
    const [first, second] = address.match(/\d+\.\d+/g)!.map((pair) => {
      const [high, low] = pair.split('.').map(Number);
      return (high! * 256 + low!).toString(16).padStart(4, '0');
    });
    return `0000:0000:0000:0000:0000:ffff:${first}:${second}`;
  }
  const [head, tail] = address.split('::').map((half) => (half === '' ? [] : half.split(':')));
  const missing = 8 - head!.length - (tail?.length ?? 0);
  const groups = [...head!, ...Array<string>(tail ? missing : 0).fill('0'), ...(tail ?? [])];
  return groups.map((group) => group.padStart(4, '0')).join(':');
}
