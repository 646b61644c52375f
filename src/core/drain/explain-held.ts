import type { HeldPod } from "./drain-step.ts";

/** A status is read on one line: of so many of the things that are said each is told. */
const toldAtMost = 2;

/**
 * What holds a drain up, each thing that is said once and by the first pod that it is said of:
 * `shop/web-0: The disruption budget web needs 2 healthy pods and has 2 currently; and 1 more pod`.
 */
export function explainHeld(held: readonly HeldPod[]): string | undefined {
  const said = new Map<string, string>();
  for (const { pod, message } of held) {
    // A budget's words name it without its namespace.
    const key = JSON.stringify([pod.namespace, message]);
    const words = `${pod.namespace}/${pod.name}: ${message.replace(/\.$/, "")}`;
    if (!said.has(key)) said.set(key, words);
  }
  if (said.size === 0) return undefined;
  const told = [...said.values()].slice(0, toldAtMost);
  const more = held.length - told.length;
  const rest = more === 0 ? [] : [`and ${more} more ${more === 1 ? "pod" : "pods"}`];
  return [...told, ...rest].join("; ");
}
