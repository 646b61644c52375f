/** Resolves once everything that could go on without waiting for time or I/O has gone on. */
export function eventLoopTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
