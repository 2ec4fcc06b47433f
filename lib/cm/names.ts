import { native } from '../verbs/native.js';
import { wordIndex } from '../verbs/validate.js';
import { cmEventTypes, type CmEventType } from './constants.js';

/** What C programs print for an event of the connection manager, such as `'RDMA_CM_EVENT_ESTABLISHED'`. `rdma_event_str` */
export function cmEventString(type: CmEventType): string {
  return native().cmEventString(wordIndex('type', cmEventTypes, type));
}
