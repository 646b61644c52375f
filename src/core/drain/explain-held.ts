import type { HeldPod } from "./drain-step.ts";

/** How many distinct messages fit the one line of a status. */
const mostMessages = 2;

/**
 * What blocks a drain. Each message appears once, for the first pod that has it:
 * `shop/web-0: The disruption budget web needs 2 healthy pods and has 2 currently; and 1 more pod`.
 */
export function explainHeld(held: readonly HeldPod[]): string | undefined {
  const said = new Map<string, string>();
  for (const { pod, message } of held) {
    // A budget's message names it without its namespace.
    const key = JSON.stringify([pod.namespace, message]);
    const words = `${pod.namespace}/${pod.name}: ${message.replace(/\.$/, "")}`;
    if (!said.has(key)) said.set(key, words);
  }
  if (said.size === 0) return undefined;
  const told = [...said.values()].slice(0, mostMessages);
  const more = held.length - told.length;
  const rest = more === 0 ? [] : [`and ${more} more ${more === 1 ? "pod" : "pods"}`];
  return [...told, ...rest].join("; ");
}
