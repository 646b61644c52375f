import { type FaultKind, faultKind } from "../fault.ts";

const silence = { alertmanagerSilence: { url: "http://am:9093", matchers: ["a=b"] } };

/** What policies make others do around a departure. */
export const actionFaults: Readonly<Record<string, FaultKind>> = {
  "policy-acts": faultKind({
    says: "the policy has actions that can be undone, and loses them again",
    draw: ({ draw }) => ({ at: draw.pick("AtNotice", "BeforeDrain", "AfterDrain") }),
    begin: (stage, { at }) => {
      const actions = [{ name: "mute", at, ...silence }];
      stage.patch("policies", "spot", { spec: { actions } });
      return () => stage.patch("policies", "spot", { spec: { actions: null } });
    },
  }),
};
