// Operations on the tags of a shared receive queue (struct ibv_ops_wr).
import { invalidArgType } from './errors.js';
import { nativeElements } from './memory-kinds.js';
import { integer, options as checkOptions, unsigned64, wordNumber } from './validate.js';
import type { Sge } from './work-request.js';

/** `enum ibv_ops_wr_opcode`. */
const opcodes = { add: 0, del: 1, sync: 2 } as const;

export interface TagOperation {
  /** `add` a tag that is awaited; `del`: it is awaited no more; `sync`: only the count of unexpected messages. */
  opcode: keyof typeof opcodes;
  /** Comes back in the completion of the operation; 64 bits, 0 by default. */
  wrId?: bigint | number;
  /** Whether the operation makes a completion when it succeeds; true by default. */
  signaled?: boolean;
  /** Unexpected messages that were seen until now: the device adds nothing where it has seen more. Absent, it is not told. */
  unexpectedCount?: number;
  /** For `del`: what `add` has returned. */
  handle?: number;
  /** For `add`: the tag, which of its bits count (all by default), where the message goes, and what its completion says. */
  tag?: bigint | number;
  mask?: bigint | number;
  sge?: Sge | readonly Sge[];
  recvWrId?: bigint | number;
}

const SIGNALED = 1;
const TM_SYNC = 2;

/** @internal */
export function tagOperation(operation: TagOperation) {
  if (operation === undefined) throw invalidArgType('operation', 'an object', operation);
  checkOptions('operation', operation);
  const { opcode, wrId = 0, signaled = true, unexpectedCount, handle = 0 } = operation;
  const elements = nativeElements(operation.sge);
  return {
    words: Uint32Array.of(
      wordNumber('opcode', opcodes, opcode),
      (signaled ? SIGNALED : 0) | (unexpectedCount === undefined ? 0 : TM_SYNC),
      integer('unexpectedCount', unexpectedCount ?? 0, 0, 2 ** 32 - 1),
      integer('handle', handle, 0, 2 ** 32 - 1),
      elements.length / 3,
    ),
    elements,
    tag: unsigned64('tag', operation.tag ?? 0),
    mask: unsigned64('mask', operation.mask ?? (1n << 64n) - 1n),
    wrId: unsigned64('wrId', wrId),
    recvWrId: unsigned64('recvWrId', operation.recvWrId ?? 0),
  };
}
