/**
 * Rooms of `test` whose files share a worker and its modules, which takes a third off the time of
 * the suite. Their tests change nothing of the process that others would find changed: no
 * environment variable, no global, no module; `tools/check-style.ts` holds them to it.
 */
export const sharedRooms: readonly string[] = [
  ...["actions", "agent", "audit", "board", "config", "contract", "controller", "core"],
  ...["doctor", "drain", "kube", "migrate", "server", "sim"],
];
