import { EventEmitter } from 'node:events';
import type { CmEventType } from './constants.js';
import type { CmEvent } from './events.js';

/** The events of an identifier by name; `'event'` is each of them, `'close'` the end of the identifier. */
export type CmEventMap = { [T in CmEventType]: [event: CmEvent & { type: T }] } & {
  event: [event: CmEvent];
  close: [];
};

/**
 * The events of an identifier. Listening alone keeps neither it nor the process alive; what methods of the identifier await
 * comes here too.
 */
export class CmIdEvents extends EventEmitter<CmEventMap> {
  /** @internal A listener that throws ends the process as it would anywhere else, after all others have been called. */
  tell(event: CmEvent): void {
    for (const name of [event.type, 'event'] as const) {
      try {
        (this as EventEmitter).emit(name, event);
      } catch (error) {
        process.nextTick(() => {
          throw error;
        });
      }
    }
  }
}
