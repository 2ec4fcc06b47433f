const reported = new Set<string>();

/** Says once for each kind of object that one was left to the garbage collector. */
export function reportLeak(kind: string): void {
  if (reported.has(kind)) return;
  reported.add(kind);
  process.emitWarning(
    `A ${kind} was garbage-collected without close(). It is destroyed now, at a time nobody chose; until then it ` +
      `held device resources and pinned memory. Call close(), or declare it with "using". (Said once for each kind.)`,
    { type: 'RdmaWarning', code: 'RDMA_LEAK' },
  );
}
