/** How long a measurement takes. All in milliseconds. */
export interface Timing {
  /** What is measured begins for so long; what has begun is waited for. 300 by default. */
  duration?: number;
  /** Before it, without being counted: the code is compiled, caches fill. 50 by default. */
  warmUp?: number;
  /** Without a completion for so long the measurement fails. 10 000 by default. */
  stallTimeout?: number;
}

export const defaultTiming: Required<Timing> = { duration: 300, warmUp: 50, stallTimeout: 10_000 };
