// @ts-check
// What is measured of node-rdma/net, by whom, and how much of the ring's figure is asked for.

/**
 * `ring`: a ring of ours, polled, in one process with its peer; `send`: `Connection.send`, awaited only where the connection asks for
 * it; `awaited`: `await send()`, one at a time; `alloc`: from memory of `connection.alloc()`; `duplex`: `toDuplex()`; `c`: a loop in C that
 * copies into slots and keeps credits; `rstream`: the program of rdma-core, in two processes.
 *
 * @typedef {'ring' | 'send' | 'awaited' | 'alloc' | 'duplex' | 'c' | 'rstream'} Who
 */
/**
 * @typedef {object} Measure
 * @property {string} name
 * @property {string} title
 * @property {number} bytes of a message
 * @property {number} messages that a round takes
 * @property {number} window of the ring
 * @property {'MB/s' | 'messages/s'} unit
 * @property {Who[]} by
 * @property {Partial<Record<Who, number>>} least share of the ring's figure
 */

/** @type {Measure[]} */
export const measures = [
  {
    name: 'rate-64',
    title: 'messages of 64 B',
    bytes: 64,
    messages: 20_000,
    window: 128,
    unit: 'messages/s',
    by: ['ring', 'send', 'awaited', 'c'],
    least: { send: 0.5 },
  },
  {
    name: 'bandwidth-64k',
    title: 'messages of 64 KiB',
    bytes: 65_536,
    messages: 800,
    window: 32,
    unit: 'MB/s',
    by: ['ring', 'send', 'awaited', 'duplex', 'c', 'rstream'],
    least: { send: 0.85, duplex: 0.75 },
  },
  {
    name: 'bandwidth-1m',
    title: 'messages of 1 MiB',
    bytes: 2 ** 20,
    messages: 60,
    window: 8,
    unit: 'MB/s',
    by: ['ring', 'send', 'alloc'],
    least: {},
  },
];
