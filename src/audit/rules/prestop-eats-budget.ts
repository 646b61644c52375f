import { type AuditedFleet, canReach, graceOn } from "../fleet.ts";
import type { Platform } from "../platform.ts";
import { longestPreStop } from "../pre-stop.ts";
import { type Remark, type Rule, spotWorkloads } from "../rule.ts";

/** Fewer seconds than this after the hook are hardly enough to close connections. */
const enoughSeconds = 5;

export const prestopEatsBudget: Rule = {
  id: "prestop-eats-budget",
  severity: "error",
  title: "the preStop hook fits the grace that was asked for, not the one that is given",
  why: `The hook runs inside what the node gives. A sleep of 15 s is harmless with the default grace of 30 s, and on a GKE Spot node, which gives 15 s, it leaves nothing for SIGTERM. Nothing left is an error, fewer than ${enoughSeconds} s a warning.`,
  fix: "Shorten the hook so that it and the process fit into the budget of the node.",
  whenNotToUse: "The process has nothing to finish after SIGTERM.",
  bad: {
    yaml: `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    spec:
      containers:
      - name: web
        image: web
        lifecycle: {preStop: {sleep: {seconds: 15}}}
`,
  },
  good: {
    yaml: `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    spec:
      containers:
      - name: web
        image: web
        lifecycle: {preStop: {sleep: {seconds: 5}}}
`,
  },
  check: checkPrestopEatsBudget,
};

function checkPrestopEatsBudget(
  fleet: AuditedFleet,
  platforms: readonly Platform[],
): readonly Remark[] {
  return spotWorkloads(fleet).flatMap((workload) => {
    const hookSeconds = longestPreStop(workload.template);
    if (hookSeconds === 0 || hookSeconds >= workload.wantedGraceSeconds) return [];
    return platforms.flatMap((platform): readonly Remark[] => {
      const { grantedSeconds, cut } = graceOn(platform, workload);
      const leftSeconds = Math.max(0, grantedSeconds - hookSeconds);
      if (!cut || grantedSeconds === 0 || leftSeconds >= enoughSeconds) return [];
      if (!canReach(workload, platform)) return [];
      const severity = leftSeconds === 0 ? "error" : "warning";
      const message = `The preStop hook takes at least ${hookSeconds} s of the ${grantedSeconds} s that ${platform.name} gives, which leaves ${leftSeconds} s for SIGTERM`;
      const fix = `Shorten the hook to at most ${Math.max(0, grantedSeconds - enoughSeconds)} s`;
      return [{ severity, platform: platform.name, about: workload, message, fix }];
    });
  });
}
