import { describe, expect, it } from 'vitest';
import * as constants from '../../lib/verbs/constants.js';
import { native } from '../../lib/verbs/native.js';

// The words that this library uses for the numbers of <infiniband/verbs.h>, against the header that the addon was built with.
const header = native().headerConstants().verbs!;

const snake = (camel: string) => camel.replace(/[A-Z0-9]+/g, (part) => `_${part}`).toUpperCase();

/** Every word of a list has its place as its number. */
function inOrder(prefix: string, words: readonly string[]): [string, number][] {
  return words.map((word, index) => [`${prefix}${snake(word)}`, index]);
}

const tables: [string, [string, number][]][] = [
  ['Access', Object.entries(constants.Access).map(([name, value]) => [`IBV_ACCESS_${name}`, value])],
  [
    'DeviceCapFlags',
    Object.entries(constants.DeviceCapFlags).map(([name, value]) => [`IBV_DEVICE_${name}`, value]),
  ],
  ['SendFlags', Object.entries(constants.SendFlags).map(([name, value]) => [`IBV_SEND_${name}`, value])],
  ['Opcode', Object.entries(constants.Opcode).map(([name, value]) => [`IBV_WR_${snake(name)}`, value])],
  [
    'CompletionOpcodeNumber',
    Object.entries(constants.CompletionOpcodeNumber).map(([name, value]) => [`IBV_WC_${snake(name)}`, value]),
  ],
  [
    'CompletionFlags',
    Object.entries(constants.CompletionFlags).map(([name, value]) => [`IBV_WC_${name}`, value]),
  ],
  ['completionStatuses', inOrder('IBV_WC_', constants.completionStatuses)],
  [
    'QpTypeNumber',
    Object.entries(constants.QpTypeNumber).map(([name, value]) => [`IBV_QPT_${snake(name)}`, value]),
  ],
  ['qpStates', inOrder('IBV_QPS_', constants.qpStates)],
  ['migrationStates', inOrder('IBV_MIG_', constants.migrationStates)],
  [
    'QpAttributeMask',
    Object.entries(constants.QpAttributeMask).map(([name, value]) => [`IBV_QP_${name}`, value]),
  ],
  ['mtuBytes', Object.entries(constants.mtuBytes).map(([code, bytes]) => [`IBV_MTU_${bytes}`, Number(code)])],
  [
    'nodeTypes',
    Object.entries(constants.nodeTypes)
      .filter(([number]) => number !== '-1')
      .map(([number, word]) => [`IBV_NODE_${snake(word)}`, Number(number)]),
  ],
  [
    'transportTypes',
    Object.entries(constants.transportTypes).map(([number, word]) => [
      `IBV_TRANSPORT_${snake(word)}`,
      Number(number),
    ]),
  ],
  ['portStates', inOrder('IBV_PORT_', constants.portStates)],
  ['linkLayers', inOrder('IBV_LINK_LAYER_', constants.linkLayers)],
  ['atomicCaps', inOrder('IBV_ATOMIC_', constants.atomicCaps)],
  ['gidTypes', inOrder('IBV_GID_TYPE_', constants.gidTypes)],
  ['asyncEventTypes', inOrder('IBV_EVENT_', constants.asyncEventTypes)],
];

describe.each(tables)('%s', (_table, entries) => {
  it.each(entries)('%s is %i', (name, value) => {
    expect(header[name]).toBe(value);
  });
});

it('leaves out no number that the addon knows of', () => {
  const known = new Set(tables.flatMap(([, entries]) => entries.map(([name]) => name)));
  expect(Object.keys(header).filter((name) => !known.has(name))).toEqual([]);
});
