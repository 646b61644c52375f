import { isLive } from "../../core/departure/departure.ts";
import {
  defaultNodeSelector,
  matchesNodeSelector,
  selectPolicy,
} from "../../core/policy/policy.ts";
import {
  between,
  formatDuration,
  formatInstant,
  hours,
  type Instant,
  type Millis,
  millis,
  minus,
  minutes,
} from "../../core/time/time.ts";
import {
  type Check,
  type CheckResult,
  counted,
  type DoctorFacts,
  fail,
  judging,
  type LeaderFacts,
  type LeaseFacts,
  namesOf,
  type PolicyFacts,
  pass,
  skip,
  spotNodes,
  type WorkloadFacts,
  warn,
} from "../facts.ts";

const installFix = "install it: docs/running.md";

/** Checks the controller's Deployment; if there is none, the check `controller` reports that. */
function ofController(
  facts: DoctorFacts,
  judge: (found: WorkloadFacts) => CheckResult,
): CheckResult {
  return judging(facts.controller, (found) =>
    found === undefined ? skip(`no controller is installed in ${facts.namespace}`) : judge(found),
  );
}

/** An age in seconds below two minutes, otherwise as a duration. */
function ageText(ageMs: Millis): string {
  if (ageMs < minutes(2)) return `${Math.round(ageMs / 1000)} s`;
  return formatDuration(minutes(Math.floor(ageMs / minutes(1))));
}

function leaseVerdict(lease: LeaseFacts, at: Instant): CheckResult {
  const { holder, renewedAt, durationMs } = lease;
  if (holder === undefined)
    return fail("nobody leads: the Lease was released and not acquired again");
  if (renewedAt === undefined) return fail(`${holder} leads, and has never renewed its Lease`);
  const ageMs = between(renewedAt, at);
  const age = ageText(millis(Math.abs(ageMs)));
  if (ageMs > durationMs) return fail(`${holder} led, and its Lease was last renewed ${age} ago`);
  if (ageMs < -5000)
    return warn(`${holder} leads, by a clock that is ${age} ahead of the API server's`);
  return pass(`${holder} leads, its Lease was renewed ${age} ago`);
}

const stopOne = "stop one of them: each starts as many departures as a budget allows";

function secondLeader(other: LeaderFacts, own: string | undefined, here: string): CheckResult {
  const elsewhere = `${other.holder} leads in the namespace ${other.namespace}`;
  if (own !== undefined) return fail(`${own} leads in ${here}, and ${elsewhere}`, stopOne);
  return fail(`nobody leads in ${here}, but ${elsewhere}`, `use -n ${other.namespace}`);
}

/** The version `1.2.3` of an image's tag or a chart's label; undefined if there is none. */
function versionIn(text: string): string | undefined {
  return /(?:^|[:@v-])(\d+\.\d+\.\d+[-.\w]*)$/.exec(text)?.[1];
}

function versionVerdict(facts: DoctorFacts, found: WorkloadFacts): CheckResult {
  const agent = facts.agent.kind === "Known" ? facts.agent.value : undefined;
  const parts: readonly (readonly [string, string | undefined])[] = [
    ["the controller", versionIn(found.image)],
    ["the agent", agent && versionIn(agent.image)],
    ["the chart", found.chart && versionIn(found.chart)],
  ];
  const told = parts.filter(([, version]) => version !== undefined);
  const other = told.filter(([, version]) => version !== facts.version);
  if (told.length === 0) return skip("no image shows its version");
  if (other.length === 0) return pass(`all parts have version ${facts.version}`);
  const skew = other.map(([part, version]) => `${part} is ${version}`).join(", ");
  return warn(`${skew}, and this program is ${facts.version}`);
}

/** Checks of the controller's installation. */
export const controllerChecks: readonly Check[] = [
  {
    id: "controller",
    looksAt: "whether the controller runs, with a second replica on standby",
    fix: `${installFix}, or check its pods and their Events`,
    run: ({ controller, namespace }) =>
      judging(controller, (found) => {
        if (found === undefined) return fail(`no controller is installed in ${namespace}`);
        const { ready, wanted } = found;
        if (ready === 0) return fail(`none of the controller's ${wanted} replicas is ready`);
        if (ready < wanted)
          return warn(`${ready} of the controller's ${wanted} replicas are ready`);
        if (wanted === 1) return warn("the controller has one replica and no standby");
        return pass(`${counted(ready, "replica")} of the controller are ready`);
      }),
  },
  {
    id: "lease",
    looksAt: "who leads, and how fresh the Lease is",
    fix: "check the controller's log: kubectl logs -l app.kubernetes.io/component=controller",
    run: ({ lease, otherLeaders, at, controller, namespace }) =>
      judging(lease, (found) => {
        const [other] = otherLeaders.kind === "Known" ? otherLeaders.value : [];
        if (other !== undefined) return secondLeader(other, found?.holder, namespace);
        if (found !== undefined) return leaseVerdict(found, at);
        const options = controller.kind === "Known" ? controller.value?.options : undefined;
        if (options?.["leader-elect"] === "false")
          return skip("the controller runs without a Lease");
        return fail("there is no Lease: no controller has ever led here");
      }),
  },
  {
    id: "dry-run",
    looksAt: "whether the controller acts, or only reports what it would do",
    fix: "remove dry-run from its options once you have seen enough",
    run: (facts) =>
      ofController(facts, ({ options }) => {
        const isDry = options["dry-run"] !== undefined && options["dry-run"] !== "false";
        return isDry
          ? warn("the controller runs with --dry-run and writes nothing")
          : pass("the controller carries out its decisions");
      }),
  },
  {
    id: "chart",
    looksAt: "whether controller, agent, chart and this program have the same version",
    fix: "upgrade the parts together: docs/running.md",
    run: (facts) => ofController(facts, (found) => versionVerdict(facts, found)),
  },
  {
    id: "images",
    looksAt: "whether the pods of controller and agent have started",
    fix: "check their Events with kubectl describe; images: docs/images.md",
    run: ({ ownPods }) =>
      judging(ownPods, (pods) => {
        const stuck = pods.filter(
          ({ waiting, component }) => waiting !== undefined && component !== "placeholder",
        );
        if (pods.length === 0) return skip("no pod of Lastcall was found");
        if (stuck.length === 0) return pass("no pod of Lastcall is waiting to start");
        const told = stuck.map(({ name, waiting }) => `${name} (${waiting})`);
        return fail(`${counted(stuck.length, "pod")} cannot start: ${namesOf(told)}`);
      }),
  },
  {
    id: "placement",
    looksAt: "whether the controller keeps off the nodes that it drains",
    fix: "keep its node affinity, and provide a node pool that is not Spot",
    run: (facts) =>
      judging(facts.ownPods, (pods) =>
        judging(spotNodes(facts), (spot) => {
          const names = new Set(spot.map(({ name }) => name));
          const here = pods.filter(({ component }) => component === "controller");
          if (here.length === 0) return skip("the controller has no pods");
          const onSpot = here.filter(({ node }) => node !== undefined && names.has(node));
          if (onSpot.length === 0) return pass("no pod of the controller is on a Spot node");
          const told = onSpot.map(({ name, node }) => `${name} on ${node}`);
          return warn(`the controller is on a Spot node: ${namesOf(told)}`);
        }),
      ),
  },
  {
    id: "placeholder-image",
    looksAt:
      "if capacity is reserved before a drain: the priority class of the placeholders, and their image",
    fix: "apply deploy/base/placeholder-priority.yaml; set an image that nodes can pull with --placeholder-image",
    run: ({ policies, priorityClasses, ownPods }) =>
      judging(policies, (found) => {
        const makers = found.policies.filter(
          ({ replacement }) => replacement.when === "BeforeDrain",
        );
        if (makers.length === 0) return skip("no policy reserves capacity before a drain");
        const pods = ownPods.kind === "Known" ? ownPods.value : [];
        const stuck = pods.filter(
          ({ component, waiting }) => component === "placeholder" && /Image/.test(waiting ?? ""),
        );
        if (stuck.length > 0)
          return fail(`${counted(stuck.length, "placeholder")} cannot pull its image`);
        return judging(priorityClasses, (classes) =>
          classes.has("lastcall-placeholder")
            ? pass("the priority class of the placeholders exists")
            : fail(
                "the PriorityClass lastcall-placeholder is missing: no capacity can be reserved",
              ),
        );
      }),
  },
  {
    id: "service-account",
    looksAt: "whether pods of the controller can get a cloud identity at all",
    fix: "lastcall setup gcp|aws|azure; docs/cloud",
    run: (facts) =>
      ofController(facts, ({ hostNetwork, podLabels }) => {
        if (hostNetwork) {
          return fail(
            "the controller uses its node's network, and therefore gets the node's identity",
          );
        }
        return judging(facts.accountAnnotations, (annotations) => {
          const client = annotations["azure.workload.identity/client-id"];
          const isUsed = podLabels["azure.workload.identity/use"] === "true";
          if (client !== undefined && !isUsed) {
            const lack = "its pods lack the label azure.workload.identity/use: true";
            return fail(`the ServiceAccount names an Azure identity, but ${lack}`);
          }
          const role = annotations["eks.amazonaws.com/role-arn"];
          if (role !== undefined && !/^arn:aws[-a-z]*:iam::\d{12}:role\/.+/.test(role)) {
            return fail(`eks.amazonaws.com/role-arn is not the ARN of a role: ${role}`);
          }
          return pass("nothing prevents the controller from getting its own identity");
        });
      }),
  },
];

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
    looksAt: "whether each policy selects a node",
    fix: "compare spec.nodeSelector with the labels of the nodes: kubectl get nodes --show-labels",
    run: (facts) =>
      ofPolicies(facts, ({ policies }) =>
        judging(facts.nodes, (nodes) => {
          const idle = policies.filter(
            ({ nodeSelector }) =>
              !nodes.some((node) => matchesNodeSelector(node, nodeSelector ?? defaultNodeSelector)),
          );
          if (idle.length === 0) return pass("each policy selects nodes");
          return warn(`${namesOf(idle.map(({ name }) => name))} selects no node`);
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
          namesOf(policies.filter(which).map(({ name }) => name));
        const idle = named(({ paused, dryRun }) => paused || dryRun);
        if (idle !== "") return warn(`${idle} is paused or a dry run`);
        const frozen = named(({ gates }) => (gates.freezeUntil ?? facts.at) > facts.at);
        if (frozen !== "") return warn(`${frozen} is frozen by gates.freezeUntil`);
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
        if (firing.kind === "Unknown")
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
