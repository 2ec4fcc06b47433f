// The structs of flow specifications (struct ibv_flow_spec_*), written as bytes. What stands in a packet is in network order
// there, as in verbs; type and size, tags and pointers are the machine's own.
import { isIP } from 'node:net';
import { invalidArgType, outOfRange } from './errors.js';
import { parseGid } from './gid.js';
import { Counters, FlowAction } from './flow-objects.js';
import { integer, wordNumber } from './validate.js';

/** One layer of what packets are to match. Of each field, only the bits of the mask count; without a mask all of them. */
interface Match<Fields> {
  /** Values; a field that is absent matches everything. */
  value?: Partial<Fields>;
  /** By default all bits of each field that `value` has. */
  mask?: Partial<Fields>;
  /** The header inside a tunnel, instead of the outer one. */
  inner?: boolean;
}

/** Numbers are in host order, addresses are text. */
export interface FlowFields {
  /** MAC addresses as text, such as `'02:00:00:00:00:01'`; `vlanTag` as in 802.1Q: priority 3 bits, CFI 1, VLAN 12. */
  eth: { dstMac: string; srcMac: string; etherType: number; vlanTag: number };
  ipv4: { srcIp: string; dstIp: string };
  ipv4Ext: { srcIp: string; dstIp: string; proto: number; tos: number; ttl: number; flags: number };
  ipv6: {
    srcIp: string;
    dstIp: string;
    flowLabel: number;
    nextHdr: number;
    trafficClass: number;
    hopLimit: number;
  };
  esp: { spi: number; seq: number };
  tcp: { dstPort: number; srcPort: number };
  udp: { dstPort: number; srcPort: number };
  vxlan: { tunnelId: number };
  gre: { flagsAndVersion: number; protocol: number; key: number };
  mpls: { label: number };
}

export type FlowMatch = {
  [Layer in keyof FlowFields]: { match: Layer } & Match<FlowFields[Layer]>;
}[keyof FlowFields];

/** What becomes of a packet that matches. */
export type FlowDecision =
  /** Its completion carries the tag: see {@link ExtendedWorkCompletion.flowTag}. */
  | { action: 'tag'; tag: number }
  | { action: 'drop' }
  | { action: 'handle'; handle: FlowAction }
  | { action: 'count'; counters: Counters };

export type FlowSpec = FlowMatch | FlowDecision;

type Kind = 'mac' | 'ipv4' | 'ipv6' | 8 | 16 | 32;
interface Layer {
  type: number;
  /** Bytes of the struct of one filter, and where its fields are. */
  size: number;
  fields: Record<string, readonly [place: number, kind: Kind]>;
}

/** `enum ibv_flow_spec_type`, and `struct ibv_flow_*_filter`. */
const layers: Record<keyof FlowFields, Layer> = {
  eth: {
    type: 0x20,
    size: 16,
    fields: { dstMac: [0, 'mac'], srcMac: [6, 'mac'], etherType: [12, 16], vlanTag: [14, 16] },
  },
  ipv4: { type: 0x30, size: 8, fields: { srcIp: [0, 'ipv4'], dstIp: [4, 'ipv4'] } },
  ipv4Ext: {
    type: 0x32,
    size: 12,
    fields: {
      srcIp: [0, 'ipv4'],
      dstIp: [4, 'ipv4'],
      proto: [8, 8],
      tos: [9, 8],
      ttl: [10, 8],
      flags: [11, 8],
    },
  },
  ipv6: {
    type: 0x31,
    size: 40,
    fields: {
      srcIp: [0, 'ipv6'],
      dstIp: [16, 'ipv6'],
      flowLabel: [32, 32],
      nextHdr: [36, 8],
      trafficClass: [37, 8],
      hopLimit: [38, 8],
    },
  },
  esp: { type: 0x34, size: 8, fields: { spi: [0, 32], seq: [4, 32] } },
  tcp: { type: 0x40, size: 4, fields: { dstPort: [0, 16], srcPort: [2, 16] } },
  udp: { type: 0x41, size: 4, fields: { dstPort: [0, 16], srcPort: [2, 16] } },
  vxlan: { type: 0x50, size: 4, fields: { tunnelId: [0, 32] } },
  gre: { type: 0x51, size: 8, fields: { flagsAndVersion: [0, 16], protocol: [2, 16], key: [4, 32] } },
  mpls: { type: 0x60, size: 4, fields: { label: [0, 32] } },
};
const INNER = 0x100;
const decisions = { tag: 0x1000, drop: 0x1001, handle: 0x1002, count: 0x1003 } as const;

/** Bytes of type and size in front of each struct, and those of one with a pointer, which is aligned. */
const HEADER = 6;
const ALIGNED = 8;
const WITH_POINTER = 16;

/** @internal The bytes of all specs, and the objects whose pointers belong at places in them. */
export interface PackedSpecs {
  bytes: Uint8Array;
  objects: { place: number; object: FlowAction | Counters }[];
}

/** @internal @throws TypeError, RangeError */
export function packSpecs(specs: readonly FlowSpec[]): PackedSpecs {
  if (!Array.isArray(specs)) throw invalidArgType('specs', 'an array', specs);
  integer('specs.length', specs.length, 0, 255);
  const parts: Uint8Array[] = [];
  const objects: PackedSpecs['objects'] = [];
  let place = 0;
  for (const spec of specs as readonly FlowSpec[]) {
    if (typeof spec !== 'object' || spec === null) throw invalidArgType('specs', 'objects', spec);
    const { bytes, object } =
      'match' in spec ? { bytes: packMatch(spec), object: undefined } : packDecision(spec);
    if (object !== undefined) objects.push({ place: place + ALIGNED, object });
    parts.push(bytes);
    place += bytes.length;
  }
  return { bytes: Buffer.concat(parts), objects };
}

function struct(type: number, size: number): { bytes: Uint8Array; view: DataView } {
  const bytes = new Uint8Array(size);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, type, true);
  view.setUint16(4, size, true);
  return { bytes, view };
}

function packMatch(spec: FlowMatch): Uint8Array {
  if (!Object.hasOwn(layers, spec.match))
    throw outOfRange('match', `one of ${Object.keys(layers).join(', ')}`, spec.match);
  const layer = layers[spec.match];
  // The compiler puts the filters where their widest field may be.
  const start = Object.values(layer.fields).some(([, kind]) => kind === 32 || kind === 'ipv4')
    ? ALIGNED
    : HEADER;
  const end = start + 2 * layer.size;
  const { bytes, view } = struct(layer.type | (spec.inner === true ? INNER : 0), Math.ceil(end / 4) * 4);
  const value = (spec.value ?? {}) as Record<string, unknown>;
  const mask = (spec.mask ?? {}) as Record<string, unknown>;
  for (const given of [value, mask]) {
    const unknown = Object.keys(given).find((name) => !Object.hasOwn(layer.fields, name));
    if (unknown !== undefined)
      throw outOfRange(spec.match, `with fields among ${Object.keys(layer.fields).join(', ')}`, unknown);
  }
  for (const [name, [place, kind]] of Object.entries(layer.fields)) {
    if (value[name] !== undefined) put(view, start + place, kind, `${spec.match}.${name}`, value[name]);
    const bits = mask[name] ?? (value[name] === undefined ? undefined : all(kind, name));
    if (bits !== undefined) put(view, start + layer.size + place, kind, `${spec.match}.${name}`, bits);
  }
  return bytes;
}

/** All bits of a field: of a flow label these are 20. */
function all(kind: Kind, name: string): unknown {
  switch (kind) {
    case 'mac':
      return 'ff:ff:ff:ff:ff:ff';
    case 'ipv4':
      return '255.255.255.255';
    case 'ipv6':
      return 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff';
    default:
      return name === 'flowLabel' ? 0xfffff : 2 ** kind - 1;
  }
}

function put(view: DataView, place: number, kind: Kind, name: string, value: unknown): void {
  switch (kind) {
    case 8:
      view.setUint8(place, integer(name, value, 0, 2 ** 8 - 1));
      break;
    case 16:
      view.setUint16(place, integer(name, value, 0, 2 ** 16 - 1));
      break;
    case 32:
      view.setUint32(place, integer(name, value, 0, 2 ** 32 - 1));
      break;
    default:
      new Uint8Array(view.buffer).set(addressBytes(kind, name, value), place);
  }
}

function addressBytes(kind: 'mac' | 'ipv4' | 'ipv6', name: string, value: unknown): Uint8Array {
  if (kind === 'mac') {
    if (typeof value !== 'string' || !/^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/i.test(value))
      throw outOfRange(name, 'a MAC address such as 02:00:00:00:00:01', value);
    return Uint8Array.from(value.split(':'), (part) => parseInt(part, 16));
  }
  const family = kind === 'ipv4' ? 4 : 6;
  if (typeof value !== 'string' || isIP(value) !== family)
    throw outOfRange(name, `an IPv${family} address`, value);
  return kind === 'ipv4' ? Uint8Array.from(value.split('.'), Number) : parseGid(value);
}

function packDecision(spec: FlowDecision): { bytes: Uint8Array; object: FlowAction | Counters | undefined } {
  const type = wordNumber('action', decisions, spec.action);
  const size = spec.action === 'drop' ? ALIGNED : spec.action === 'tag' ? 12 : WITH_POINTER;
  const { bytes, view } = struct(type, size);
  switch (spec.action) {
    case 'tag':
      view.setUint32(ALIGNED, integer('tag', spec.tag, 0, 2 ** 32 - 1), true);
      return { bytes, object: undefined };
    case 'drop':
      return { bytes, object: undefined };
    case 'handle':
      if (!(spec.handle instanceof FlowAction)) throw invalidArgType('handle', 'a FlowAction', spec.handle);
      return { bytes, object: spec.handle };
    case 'count':
      if (!(spec.counters instanceof Counters)) throw invalidArgType('counters', 'Counters', spec.counters);
      return { bytes, object: spec.counters };
  }
}
