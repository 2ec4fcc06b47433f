// @ts-check
// What is measured on a device, by whom, and the ratios to C that are asked for.

/** @typedef {'c' | 'ring' | 'objects' | 'pyverbs'} Who */
/**
 * @typedef {object} Measure
 * @property {string} name
 * @property {string} title
 * @property {string} command for the programs; `{messages}` stands for what a round takes
 * @property {number} messages
 * @property {'MiB/s' | 'messages/s' | 'µs' | 'ms'} unit
 * @property {number} bytes of a message
 * @property {Who[]} by
 * @property {number} [least] ratio of the ring to C at the least
 * @property {number} [most] ratio of the ring to C at the most
 */

/** @type {Who[]} */
const all = ['c', 'ring', 'objects', 'pyverbs'];
const kibibyte = 1024;

/**
 * @param {'send' | 'write' | 'read'} verb
 * @param {number} kibibytes
 * @param {number} window
 * @param {number} messages
 * @returns {Measure}
 */
const bandwidth = (verb, kibibytes, window, messages) => ({
  name: `${verb}-bandwidth-${kibibytes}k`,
  title: `${verb} bandwidth, ${kibibytes === 1024 ? '1 MiB' : `${kibibytes} KiB`}, ${window} in flight`,
  command: `bandwidth ${verb} ${kibibytes * kibibyte} ${window} 1 1 {messages}`,
  messages,
  unit: 'MiB/s',
  bytes: kibibytes * kibibyte,
  by: all,
  least: 0.97,
});

/**
 * @param {'send' | 'write'} verb
 * @returns {Measure}
 */
const messageRate = (verb) => ({
  name: `${verb}-rate`,
  title: `${verb} message rate, 8 B, 128 in flight`,
  command: `bandwidth ${verb} 8 128 32 1 {messages}`,
  messages: 6000,
  unit: 'messages/s',
  bytes: 8,
  by: all,
  least: 0.9,
});

/**
 * @param {'send' | 'write'} verb
 * @param {'poll' | 'events'} wait
 * @param {number} most
 * @returns {Measure}
 */
const latency = (verb, wait, most) => ({
  name: `${verb}-latency-${wait}`,
  title: `${verb} latency p50, 8 B, ${wait === 'poll' ? 'polling' : 'events'}`,
  command: `latency ${verb} 8 ${wait} {messages}`,
  messages: 1000,
  unit: 'µs',
  bytes: 8,
  by: all,
  most,
});

/**
 * @param {number} count
 * @returns {Measure}
 */
const queuePairs = (count) => {
  const window = Math.max(128 / count, 1);
  return {
    name: `queue-pairs-${count}`,
    title: `write message rate, 8 B, ${count} queue pair${count === 1 ? '' : 's'} on one completion queue`,
    command: `bandwidth write 8 ${window} ${Math.max(window / 4, 1)} ${count} {messages}`,
    messages: 8192 / count,
    unit: 'messages/s',
    bytes: 8,
    by: all,
    least: 0.9,
  };
};

/** @type {Measure[]} */
export const measures = [
  bandwidth('write', 64, 16, 200),
  bandwidth('write', 1024, 4, 14),
  bandwidth('send', 64, 16, 200),
  bandwidth('send', 1024, 4, 14),
  bandwidth('read', 64, 8, 200),
  // With more of them on their way rxe 6.1 barely gets on: 8 READs of 1 MiB hardly ever end.
  bandwidth('read', 256, 4, 50),
  messageRate('write'),
  messageRate('send'),
  latency('send', 'poll', 1.15),
  latency('write', 'poll', 1.15),
  latency('send', 'events', 1.35),
  ...[1, 16, 64, 256, 1024].map(queuePairs),
  {
    name: 'event-loop-delay',
    title: 'delay of the event loop p99 while writes stream (of C: of a thread that sleeps)',
    command: 'delay 65536 16 {messages}',
    messages: 300,
    unit: 'ms',
    bytes: 65536,
    by: ['c', 'ring'],
  },
  {
    name: 'registration-delay',
    title: 'delay of the event loop, the longest while 1 GiB is registered',
    command: 'register {messages}',
    messages: 2 ** 30,
    unit: 'ms',
    bytes: 0,
    by: ['ring'],
  },
];
