import { seconds } from "../../src/core/time/time.ts";
import {
  type AdmissionTrial,
  type DoctorFacts,
  known,
  type PolicyState,
  type TrialAnswer,
  type WorkloadFacts,
} from "../../src/doctor/facts.ts";
import { LastcallError } from "../../src/errors.ts";
import { acting, at, green, policyOf } from "./green-facts.ts";

/** The check, its status, a part of its message, and what differs from a healthy cluster. */
export type RedCase = readonly [string, "Warn" | "Fail" | "Skip", string, Partial<DoctorFacts>];

export function knownIn<Value>(fact: { kind: string; value?: Value }): Value {
  return fact.value as Value;
}

export const controller = knownIn(green.controller) as object;
export const withController = (more: object) =>
  ({ controller: known({ ...controller, ...more }) }) as Partial<DoctorFacts>;
export const withPolicies = (...policies: ReturnType<typeof policyOf>[]) => ({
  policies: known({ policies, bad: [], states: new Map() }),
});
export const withActions = (notReady?: PolicyState["notReady"], observedGeneration?: number) => ({
  policies: known({
    policies: [policyOf("spot", { actions: [acting] })],
    bad: [],
    states: new Map([["spot", { observedGeneration, infeasible: undefined, notReady }]]),
  }),
});
export const [pod] = knownIn(green.ownPods) as [object];
export const [machine] = knownIn(green.machines) as [object];
export const withMachine = (more: object) =>
  ({ machines: known([{ ...machine, ...more }]) }) as Partial<DoctorFacts>;
export const agent = knownIn(green.agent) as WorkloadFacts;
export const hidden = (option: string) => ({ hiddenOptions: [{ option, place: "the Secret x" }] });
export const unscheduled = {
  ownPods: known([{ ...pod, unscheduled: "0/3 nodes are available" }]),
} as Partial<DoctorFacts>;
export const withTrial = (more: Partial<AdmissionTrial>) => ({
  agentTrials: known(
    (knownIn(green.agentTrials) as readonly AdmissionTrial[]).map((one) => ({ ...one, ...more })),
  ),
});
export const withPodTrial = (answer: TrialAnswer) => ({
  podTrials: known([{ who: "the agents", answer }]),
});
export const drainer = (name: string) => ({ name, right: "change nodes", isEverybody: false });
export const denied = new LastcallError("CLOUD_RIGHT_MISSING", "the permission x is missing");
export const stranger = new LastcallError("CLOUD_CREDENTIALS", "no credentials", {
  retryable: true,
});
export const lease = (more: object) =>
  ({
    lease: known({ holder: "c-1", renewedAt: at, durationMs: seconds(40), ...more }),
  }) as Partial<DoctorFacts>;
export const definitions = (more: object) => ({
  definitions: known(
    (knownIn(green.definitions) as readonly object[]).map((one) => ({ ...one, ...more })),
  ) as DoctorFacts["definitions"],
});

export const untold = { labels: {}, providerID: "aws:///eu-west-1a/i-1" };
