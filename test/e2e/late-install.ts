/**
 * A policy for nodes that are already overdue when it is created: they leave one after another as
 * soon as the budget allows, so a test does not wait for planned instants.
 */
export const lateInstall = {
  lifetime: { max: "2s", reserve: "1s" },
  spacing: { min: "1s" },
  drain: { timeout: "2m", onTimeout: "Wait" },
} as const;
