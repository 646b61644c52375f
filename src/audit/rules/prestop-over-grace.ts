import type { AuditedFleet } from "../fleet.ts";
import { longestPreStop } from "../pre-stop.ts";
import { type Remark, type Rule, spotWorkloads } from "../rule.ts";

export const prestopOverGrace: Rule = {
  id: "prestop-over-grace",
  severity: "error",
  title: "the preStop hook takes the whole grace",
  why: "The grace runs from the start of the preStop hook, not from SIGTERM. A hook that sleeps as long as the grace, or longer, leaves the process two seconds at most between SIGTERM and SIGKILL, on every node.",
  fix: "Make terminationGracePeriodSeconds longer than the hook by what the process needs after SIGTERM, or make the hook shorter.",
  whenNotToUse:
    "The process has nothing to finish, and the hook alone (such as a wait for the load balancer) is what the grace is for.",
  bad: {
    yaml: `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    spec:
      terminationGracePeriodSeconds: 10
      containers:
      - name: web
        image: web
        lifecycle: {preStop: {exec: {command: [sh, -c, "sleep 10 && nginx -s quit"]}}}
`,
  },
  good: {
    yaml: `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    spec:
      terminationGracePeriodSeconds: 15
      containers:
      - name: web
        image: web
        lifecycle: {preStop: {sleep: {seconds: 5}}}
`,
  },
  check: checkPrestopOverGrace,
};

function checkPrestopOverGrace(fleet: AuditedFleet): readonly Remark[] {
  return spotWorkloads(fleet).flatMap((workload) => {
    const hookSeconds = longestPreStop(workload.template);
    const graceSeconds = workload.wantedGraceSeconds;
    if (hookSeconds === 0 || hookSeconds < graceSeconds) return [];
    const ends = Number.isFinite(hookSeconds);
    const takes = ends ? `takes at least ${hookSeconds} s` : "has no end and takes all";
    const message = `The preStop hook ${takes} of a grace of ${graceSeconds} s, so nothing is left for SIGTERM`;
    const fix = ends ? `Ask for more than ${hookSeconds} s, or shorten the hook` : "End the hook";
    return [{ severity: "error", about: workload, message, fix }];
  });
}
