import { cqModerationFor, type Settings } from './options.js';
import type { Plan } from './plan.js';

/** How it was measured: the options, with all defaults. */
export type PerfConfiguration = Omit<
  Settings,
  'verb' | 'measure' | 'size' | 'iterations' | 'duration' | 'margin' | 'cqModeration'
> & {
  /** Bytes of a message. */
  sizes: number[];
  /** Null where `seconds` decides. */
  iterations: number | null;
  /** Null where `iterations` decides. */
  seconds: number | null;
  /** Of `seconds`, at its start and at its end, those that do not count. */
  marginSeconds: number | null;
  /** Messages for each completion, by size. */
  cqModeration: number[];
};

/** The settings as a result tells them. Plain data: Infinity is none. */
export function configurationOf(
  settings: Settings,
  { sizes, mtu, outstandingReads }: Pick<Plan, 'sizes' | 'mtu' | 'outstandingReads'>,
): PerfConfiguration {
  const {
    verb: _verb,
    measure: _measure,
    size: _size,
    cqModeration: _cqModeration,
    iterations,
    duration,
    margin,
    ...rest
  } = settings;
  const limited = duration < Infinity;
  return {
    ...rest,
    sizes,
    iterations: limited ? null : iterations,
    seconds: limited ? duration / 1000 : null,
    marginSeconds: limited ? margin / 1000 : null,
    cqModeration: sizes.map((one) => cqModerationFor(settings, one)),
    mtu,
    outstandingReads,
  };
}
