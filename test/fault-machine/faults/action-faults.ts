import { type FaultKind, faultKind } from "../fault.ts";

/**
 * Its undo record is enough to undo it, also for a leader whose policy has lost the action. A
 * silence takes the address of its Alertmanager, which is in the policy only.
 */
const quarantine = { replaceSecurityGroups: { groupIds: ["sg-quarantine"] } };

/** What policies make others do around a departure. */
export const actionFaults: Readonly<Record<string, FaultKind>> = {
  "policy-acts": faultKind({
    says: "the policy has actions that can be undone, and loses them again",
    draw: ({ draw }) => ({ at: draw.pick("AtNotice", "BeforeDrain", "AfterDrain") }),
    begin: (stage, { at }) => {
      const actions = [{ name: "mute", at, ...quarantine }];
      stage.patch("policies", "spot", { spec: { actions } });
      return () => stage.patch("policies", "spot", { spec: { actions: null } });
    },
  }),
};
