import type { Context } from '../verbs/context.js';
import { RdmaError } from '../verbs/errors.js';
import type { Settings } from './options.js';

/**
 * Refuses more inline data than the device takes. No attribute tells how much that is: it is found by trying.
 *
 * @throws RdmaError `ERR_RDMA_LIMIT`, with what would do; as `createQp` does where no such queue pair can be made at all
 */
export function checkInline({ connection: type, txDepth, inlineSize }: Settings, context: Context): void {
  if (inlineSize === 0) return;
  const pd = context.allocPd();
  const cq = context.createCq({ cqe: 1 });
  const make = (maxInlineData: number) =>
    pd.createQp({ type, cq, maxSendWr: txDepth, maxRecvWr: 0, maxInlineData }).close();
  try {
    make(inlineSize);
  } catch (cause) {
    const most = largest(make, inlineSize);
    throw new RdmaError(
      'ERR_RDMA_LIMIT',
      `inlineSize ${inlineSize} is more than a queue pair of ${context.device.name} takes: ${most} is the most`,
      { device: context.device.name, cause },
    );
  } finally {
    cq.close({ cascade: true });
    pd.close({ cascade: true });
  }
}

function largest(make: (maxInlineData: number) => void, refused: number): number {
  make(0);
  let [fits, tooMuch] = [0, refused];
  while (tooMuch - fits > 1) {
    const middle = Math.floor((fits + tooMuch) / 2);
    try {
      make(middle);
      fits = middle;
    } catch {
      tooMuch = middle;
    }
  }
  return fits;
}
