import { createEventChannel, type EventChannel } from '../cm/event-channel.js';

let channel: EventChannel | undefined;
let users = 0;

/** The event channel that all connections, listeners and sockets of this environment share: one descriptor for all. */
export function acquireChannel(): EventChannel {
  channel ??= createEventChannel();
  ++users;
  return channel;
}

/** Its last user closes it. What was made on it must be closed before. */
export function releaseChannel(): void {
  if (--users > 0) return;
  channel?.close();
  channel = undefined;
}
