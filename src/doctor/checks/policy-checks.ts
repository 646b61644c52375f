import type { NodeFacts } from "../../core/cluster/node.ts";
import { isLive } from "../../core/departure/departure.ts";
import {
  explainRepeated,
  repeatedCure,
  repeatedDeparture,
} from "../../core/plan/repeated-departure.ts";
import { type Policy, selectedBy, selectPolicy } from "../../core/policy/policy.ts";
import { counted } from "../../core/reason/counted.ts";
import { formatInstant, hours, minus } from "../../core/time/time.ts";
import {
  type Check,
  type CheckResult,
  type DoctorFacts,
  fail,
  judging,
  namesOf,
  namesWith,
  type PolicyFacts,
  pass,
  skip,
  warn,
} from "../facts.ts";

/** Checks the policies that can be read, if there are any. */
function ofPolicies(facts: DoctorFacts, judge: (found: PolicyFacts) => CheckResult): CheckResult {
  return judging(facts.policies, (found) =>
    found.policies.length === 0 ? skip("there is no policy that can be read") : judge(found),
  );
}

function tieVerdict({ policies }: PolicyFacts, { nodes }: DoctorFacts): CheckResult {
  return judging(nodes, (all) => {
    for (const node of all) {
      const choice = selectPolicy(node, policies);
      if (choice === undefined || choice.tiedWith.length === 0) continue;
      const names = [choice.policy.name, ...choice.tiedWith].join(", ");
      return warn(
        `${names} have the same weight and select ${node.name}: the first by name applies`,
      );
    }
    return pass("no node is selected by two policies of the highest weight");
  });
}

/** Policies that apply to no node: their selector matches none, or other policies come first. */
function idleSays(idle: readonly Policy[], nodes: readonly NodeFacts[]): string {
  const [empty = [], outranked = []] = [true, false].map((isEmpty) =>
    idle
      .filter((policy) => (selectedBy(policy, nodes).length === 0) === isEmpty)
      .map(({ name }) => name),
  );
  const others = "because policies of more weight or of an earlier name do";
  return [
    ...(empty.length === 0 ? [] : [`${namesWith(empty, "selects", "select")} no node`]),
    ...(outranked.length === 0
      ? []
      : [
          `${namesWith(outranked, "applies to no node that it selects", "apply to no node that they select")}, ${others}`,
        ]),
  ].join("; ");
}

/** Checks of the policies and their effect. */
export const policyChecks: readonly Check[] = [
  {
    id: "policies",
    looksAt: "whether there are policies, and whether each can be read",
    fix: "kubectl apply -f policy.yaml; docs/reference/departurepolicy.md",
    run: ({ policies }) =>
      judging(policies, ({ policies: found, bad }) => {
        const [first] = bad;
        if (first !== undefined) return fail(`${first.name} cannot be read: ${first.problem}`);
        if (found.length === 0) return warn("there is no policy: no node is planned");
        return pass(
          `${counted(found.length, "policy", "policies")}: ${namesOf(found.map(({ name }) => name))}`,
        );
      }),
  },
  {
    id: "policy-match",
    looksAt: "whether each policy applies to a node",
    fix: "compare spec.weight of the policies, and spec.nodeSelector with the labels of the nodes: kubectl get nodes --show-labels",
    run: (facts) =>
      ofPolicies(facts, ({ policies }) =>
        judging(facts.nodes, (nodes) => {
          const applied = new Set(nodes.map((node) => selectPolicy(node, policies)?.policy));
          const idle = policies.filter((policy) => !applied.has(policy));
          return idle.length === 0
            ? pass("each policy applies to nodes")
            : warn(idleSays(idle, nodes));
        }),
      ),
  },
  {
    id: "policy-ties",
    looksAt: "whether two policies of the same weight select the same node",
    fix: "give the policies different weights (spec.weight)",
    run: (facts) => ofPolicies(facts, (found) => tieVerdict(found, facts)),
  },
  {
    id: "paused",
    looksAt: "whether a policy is paused or frozen, or only reports what it would do",
    fix: "set spec.paused and spec.dryRun to false, or remove gates.freezeUntil, to make it act",
    run: (facts) =>
      ofPolicies(facts, ({ policies }) => {
        const named = (which: (one: (typeof policies)[number]) => boolean) =>
          policies.filter(which).map(({ name }) => name);
        const idle = named(({ paused, dryRun }) => paused || dryRun);
        if (idle.length > 0) return warn(`${namesWith(idle, "is", "are")} paused or a dry run`);
        const frozen = named(({ gates }) => (gates.freezeUntil ?? facts.at) > facts.at);
        if (frozen.length > 0)
          return warn(`${namesWith(frozen, "is", "are")} frozen by gates.freezeUntil`);
        return pass("no policy is paused or frozen");
      }),
  },
  {
    id: "forecast",
    looksAt: "whether the controller has found each policy feasible, and follows its changes",
    fix: "lastcall plan shows which nodes leave late, and how much wider the windows would have to be",
    run: (facts) =>
      ofPolicies(facts, ({ policies, states }) => {
        for (const { name, generation } of policies) {
          const state = states.get(name);
          if (state?.infeasible !== undefined) return fail(`${name}: ${state.infeasible}`);
          if (state?.observedGeneration === undefined) {
            return warn(`the controller has not written a status of ${name} yet`);
          }
          if (generation !== undefined && state.observedGeneration < generation) {
            return warn(`the controller has not seen the last change of ${name} yet`);
          }
        }
        return pass("the controller has found each policy feasible");
      }),
  },
  {
    id: "windows",
    looksAt: "whether nodes live from one opening of their policy's windows to the next",
    fix: `${repeatedCure}: docs/planning.md`,
    run: (facts) =>
      ofPolicies(facts, ({ policies }) => {
        if (policies.every(({ windows }) => windows.length === 0)) {
          return pass("no policy has windows");
        }
        for (const policy of policies) {
          const repeated = repeatedDeparture(policy, facts.at);
          if (repeated !== undefined) return warn(`${policy.name}: ${explainRepeated(repeated)}`);
        }
        return pass("nodes live from one opening of the windows to the next");
      }),
  },
  {
    id: "actions",
    looksAt:
      "whether the controller has found each action of the policies valid: hosts, Secrets, names and permissions",
    fix: "the message names the field, its value, and a missing permission: docs/actions.md",
    run: (facts) =>
      ofPolicies(facts, ({ policies, states }) => {
        const acting = policies.filter(({ actions }) => actions.length > 0);
        if (acting.length === 0) return skip("no policy has actions");
        for (const [status, verdict] of [["False", fail] as const, ["Unknown", warn] as const]) {
          for (const { name } of acting) {
            const found = states.get(name)?.notReady;
            if (found?.status === status) return verdict(`${name}: ${found.message}`);
          }
        }
        const unseen = acting.find(
          ({ name }) => states.get(name)?.observedGeneration === undefined,
        );
        if (unseen !== undefined)
          return warn(`the controller has not checked those of ${unseen.name} yet`);
        return pass("the controller has found the actions of each policy valid");
      }),
  },
  {
    id: "alerts",
    looksAt: "whether Alertmanager responds to the alerts gate of each policy",
    fix: "name the host of gates.alerts.url in the controller's --action-hosts, and check that it responds from where the controller runs; until then the gate holds everything",
    run: ({ alerts, policies }) => {
      if (alerts.length === 0) return judging(policies, () => skip("no policy has an alerts gate"));
      for (const { policy, firing } of alerts) {
        if (firing.kind === "Known") continue;
        if (firing.code === undefined) return skip(firing.why);
        return fail(`the gate of ${policy} has no response: ${firing.why}`);
      }
      const held = alerts.flatMap(({ policy, firing }) =>
        firing.kind === "Known" && firing.value.length > 0
          ? [`${policy} (${namesOf(firing.value)})`]
          : [],
      );
      if (held.length === 0) return pass("Alertmanager responds, and no alert of a gate is firing");
      return warn(`alerts hold planned departures of ${held.join(", ")}`);
    },
  },
  {
    id: "departures",
    looksAt: "whether a departure is stuck: due for an hour and not ended, or failed within a day",
    fix: "kubectl describe departure shows what it waits for",
    run: ({ departures, at }) =>
      judging(departures, (all) => {
        const hourAgo = minus(at, hours(1));
        const stuck = all.filter(
          (one) => isLive(one) && one.departAt !== undefined && one.departAt < hourAgo,
        );
        const [first] = stuck;
        if (first !== undefined) {
          const { message = first.status.reason ?? first.status.phase } = first.status;
          return warn(
            `${counted(stuck.length, "departure")} due for over an hour, the first of ${first.node.name}: ${message}`,
          );
        }
        const dayAgo = minus(at, hours(24));
        const failed = all.filter(
          ({ status }) => status.outcome === "Failed" && (status.endedAt ?? at) >= dayAgo,
        );
        if (failed.length === 0)
          return pass(
            `${counted(all.filter(isLive).length, "departure")} to come or under way, none stuck`,
          );
        const last = failed[0]?.status.endedAt;
        const when = last === undefined ? "" : `, one at ${formatInstant(last)}`;
        return warn(`${counted(failed.length, "departure")} failed within a day${when}`);
      }),
  },
];
