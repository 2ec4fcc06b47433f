import { SendFlags } from '../../verbs/constants.js';
import type { Flow } from '../endpoint.js';
import type { Settings } from '../options.js';

/** Writes one request into the send ring of a flow. `flags`: of `SendFlags`. */
export type RequestWriter = (flags: number) => void;

/** How messages of one size lie in memory. */
export interface Spacing {
  /** Bytes from one message to the next. */
  step: number;
  /** After so many the first place comes again. */
  places: number;
}

/** Small messages go through a page of memory, as perftest has it; latency has one place. */
export function spacingOf(
  { measure }: Settings,
  size: number,
  { pageSize, cacheLine }: { pageSize: number; cacheLine: number },
): Spacing {
  if (measure === 'lat' || size > pageSize / 2) return { step: 0, places: 1 };
  const step = Math.ceil(size / cacheLine) * cacheLine;
  return { step, places: Math.floor(pageSize / step) };
}

/** @param id comes back in each completion */
export function requestWriter(
  flow: Flow,
  id: number,
  settings: Settings,
  size: number,
  { step, places }: Spacing,
): RequestWriter {
  const { sends, mr, sendAt, remote, target } = flow;
  const inline = size <= settings.inlineSize ? SendFlags.INLINE : 0;
  let place = 0;
  const next = () => {
    const offset = place * step;
    place = place + 1 === places ? 0 : place + 1;
    return offset;
  };
  switch (settings.verb) {
    case 'send':
      if (target !== undefined) {
        const { ah, qpNum, qkey } = target;
        return (flags) => sends.sendTo(id, mr, sendAt + next(), size, ah, qpNum, qkey, flags | inline);
      }
      return (flags) => sends.send(id, mr, sendAt + next(), size, flags | inline);
    case 'write':
      return (flags) => {
        const offset = next();
        sends.rdmaWrite(id, mr, sendAt + offset, size, remote!, offset, flags | inline);
      };
    case 'read':
      return (flags) => {
        const offset = next();
        sends.rdmaRead(id, mr, sendAt + offset, size, remote!, offset, flags);
      };
    case 'atomic':
      if (settings.atomic === 'compare-swap') {
        return (flags) => {
          const offset = next();
          sends.compareSwap(id, mr, sendAt + offset, remote!, offset, 0n, 0n, flags);
        };
      }
      return (flags) => {
        const offset = next();
        sends.fetchAdd(id, mr, sendAt + offset, remote!, offset, 1, 0, flags);
      };
  }
}
