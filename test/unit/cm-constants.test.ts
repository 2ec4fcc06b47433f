import { expect, it } from 'vitest';
import {
  AddressInfoFlag,
  cmEventTypes,
  CmOption,
  IB_PATH_OPTION,
  PortSpaceNumber,
} from '../../lib/cm/constants.js';
import { native } from '../../lib/verbs/native.js';

// The words that this library uses for the numbers of <rdma/rdma_cma.h>, against the header that the addon was built with.
const header = native().headerConstants().connectionManager!;

const snake = (camel: string) => camel.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase();

const known: [string, number][] = [
  ...Object.entries(PortSpaceNumber).map(
    ([word, number]) => [`RDMA_PS_${word.toUpperCase()}`, number] as [string, number],
  ),
  ...cmEventTypes.map((word, i) => [`RDMA_CM_EVENT_${snake(word)}`, i] as [string, number]),
  ['RDMA_OPTION_ID', CmOption.tos.level],
  ['RDMA_OPTION_ID_TOS', CmOption.tos.name],
  ['RDMA_OPTION_ID_REUSEADDR', CmOption.reuseAddr.name],
  ['RDMA_OPTION_ID_AFONLY', CmOption.afOnly.name],
  ['RDMA_OPTION_ID_ACK_TIMEOUT', CmOption.ackTimeout.name],
  ['RDMA_OPTION_IB', IB_PATH_OPTION.level],
  ['RDMA_OPTION_IB_PATH', IB_PATH_OPTION.name],
  ...Object.entries(AddressInfoFlag).map(([word, number]) => [`RAI_${word}`, number] as [string, number]),
];

it.each(known)('%s is %i', (name, value) => {
  expect(header[name]).toBe(value);
});

it('leaves out no number that the addon knows of', () => {
  expect(Object.keys(header).sort()).toEqual(known.map(([name]) => name).sort());
});
