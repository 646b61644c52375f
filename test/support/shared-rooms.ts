/**
 * Folders of `test` whose files share a worker and its modules, which saves a third of the suite's
 * time. Their tests must not change any state of the process that others would see: no environment
 * variable, no global, no module. `tools/check-style.ts` enforces this.
 */
export const sharedRooms: readonly string[] = [
  ...["actions", "agent", "audit", "board", "config", "contract", "controller", "core"],
  ...["doctor", "drain", "kube", "migrate", "server", "sim"],
];
