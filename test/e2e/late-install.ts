/**
 * A policy for nodes that are past their time already when it comes: they leave one after another
 * as soon as the budget lets them, with no waiting for planned instants in a test.
 */
export const lateInstall = {
  lifetime: { max: "2s", reserve: "1s" },
  spacing: { min: "1s" },
  drain: { timeout: "2m", onTimeout: "Wait" },
} as const;
