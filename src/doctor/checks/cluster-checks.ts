import {
  departingTaint,
  killerAnnotation,
  parseProviderId,
  rivalOf,
} from "../../core/cluster/node.ts";
import { isLive } from "../../core/departure/departure.ts";
import { budgetName, canNeverAllow } from "../../core/drain-plan/pod-obstacle.ts";
import { between, minutes } from "../../core/time/time.ts";
import {
  type Check,
  counted,
  type DoctorFacts,
  type Fact,
  fail,
  judging,
  namesOf,
  pass,
  type RightFacts,
  skip,
  spotNodes,
  warn,
} from "../facts.ts";

const crdFix = "lastcall setup crds --apply";
const definitionNames = ["departurepolicies.lastcall.dev", "departures.lastcall.dev"];

/**
 * From this version on the API server has ValidatingAdmissionPolicy, which narrows the permissions
 * of controller and agents.
 */
const oldestMinor = 30;
const clockWarnMs = 2000;
const clockFailMs = 15_000;

function rightsVerdict(fact: Fact<readonly RightFacts[]>, who: string) {
  return judging(fact, (rights) => {
    const missing = rights.filter(({ allowed }) => !allowed).map(({ name }) => name);
    if (missing.length === 0) return pass(`${who} has its ${counted(rights.length, "permission")}`);
    return fail(`${who} may not ${namesOf(missing)}`);
  });
}

/** The requests that were refused because the caller lacks the permission. */
function refusedFacts(facts: DoctorFacts): readonly string[] {
  return Object.values(facts).flatMap((fact: unknown) => {
    const { kind, code, why } = (fact ?? {}) as { kind?: string; code?: string; why?: string };
    return kind === "Unknown" && code === "RIGHT_MISSING" && why !== undefined ? [why] : [];
  });
}

/** Checks of the API server, the resources and the permissions. */
export const clusterChecks: readonly Check[] = [
  {
    id: "api",
    looksAt: "whether the API server responds, and its version",
    fix: "check the address and the credentials with kubectl version",
    run: ({ api }) => {
      if (api.kind === "Unknown") return fail(api.why);
      const { major, minor, name } = api.value;
      if (major === 1 && minor < oldestMinor) {
        const lack = "has no ValidatingAdmissionPolicy, which limits what Lastcall's tokens may do";
        return warn(`Kubernetes ${name} ${lack}`, `upgrade to 1.${oldestMinor} or later`);
      }
      return pass(`Kubernetes ${name} responds`);
    },
  },
  {
    id: "crds",
    looksAt: "whether both custom resource definitions are installed and served",
    fix: crdFix,
    run: ({ definitions }) =>
      judging(definitions, (found) => {
        const missing = definitionNames.filter((name) => !found.some((one) => one.name === name));
        if (missing.length > 0) return fail(`${namesOf(missing)} is not installed`);
        const dead = found.filter(({ established }) => !established).map(({ name }) => name);
        if (dead.length > 0) return fail(`${namesOf(dead)} is installed but not served`);
        return pass("DeparturePolicy and Departure are served");
      }),
  },
  {
    id: "crd-version",
    looksAt: "whether their schemas are those of this version",
    fix: `${crdFix}; an upgrade of the chart does not touch them`,
    run: ({ definitions, version }) =>
      judging(definitions, (found) => {
        if (found.length === 0) return skip("no custom resource definition is installed");
        const old = found.filter(({ served }) => !served.includes("v1alpha1"));
        if (old.length > 0) {
          return fail(`${namesOf(old.map(({ name }) => name))} does not serve v1alpha1`);
        }
        const other = found.filter(({ sameSchema }) => !sameSchema).map(({ name }) => name);
        if (other.length === 0) return pass(`the schemas are those of ${version}`);
        return warn(`the schema of ${namesOf(other)} is not that of ${version}`);
      }),
  },
  {
    id: "rights",
    looksAt: "whether the controller's ServiceAccount may do all that it does",
    fix: "apply deploy/base/rbac.yaml, or upgrade the chart",
    run: ({ rights }) => rightsVerdict(rights, "the controller"),
  },
  {
    id: "agent-rights",
    looksAt: "whether the agents' ServiceAccount may report notices",
    fix: "apply deploy/agent/rbac.yaml, or upgrade the chart",
    run: ({ agentRights, agent }) => {
      const isAbsent = agent.kind === "Known" && agent.value === undefined;
      if (isAbsent) return skip("no agent is installed");
      return rightsVerdict(agentRights, "the agent");
    },
  },
  {
    id: "reader",
    looksAt: "whether the caller may read everything that the checks need",
    fix: "run it with a role that may list these; the checks concerned are skipped",
    run: (facts) => {
      if (facts.api.kind === "Unknown") return skip("the API server does not respond");
      const refused = refusedFacts(facts);
      if (refused.length === 0) return pass("everything that was requested could be read");
      return warn(`${counted(refused.length, "request")} refused, the first: ${refused[0]}`);
    },
  },
  {
    id: "clock",
    looksAt: "whether this clock and the API server's agree",
    fix: "synchronize the clocks; deadlines depend on them",
    run: ({ clockAheadMs }) =>
      judging(clockAheadMs, (ahead) => {
        const off = Math.abs(ahead);
        const said = `the API server's clock is ${Math.round(off / 1000)} s ${ahead < 0 ? "behind" : "ahead of"} this one`;
        if (off >= clockFailMs) return fail(said);
        return off >= clockWarnMs ? warn(said) : pass("the API server's clock and this one agree");
      }),
  },
  {
    id: "admission",
    looksAt: "whether the admission policies that limit the tokens are in place",
    fix: "apply deploy/base/admission.yaml and deploy/agent/admission.yaml, or upgrade the chart",
    run: ({ admissionPolicies, controller, agent }) =>
      judging(admissionPolicies, (inForce) => {
        // Each policy is named after the workload that it restricts.
        const expected = [
          ...namesIn(controller).map((name) => `${name}-placeholder`),
          ...namesIn(agent),
        ];
        if (expected.length === 0) return skip("neither controller nor agent is installed");
        const missing = expected.filter((name) => !inForce.has(name));
        if (missing.length === 0) return pass(`in place: ${expected.join(", ")}`);
        return warn(`the admission policy ${namesOf(missing)} is missing or bound to nothing`);
      }),
  },
  {
    id: "priority-quota",
    looksAt: "on GKE: whether a ResourceQuota admits pods of the system's priority classes",
    fix: "apply deploy/base/quota.yaml and deploy/agent/quota.yaml, or upgrade the chart",
    run: ({ nodes, quotaClasses, controller, agent }) =>
      judging(nodes, (all) => {
        const onGke = all.some(
          ({ providerID }) => parseProviderId(providerID ?? "")?.cloud === "gcp",
        );
        if (!onGke) return skip("no node is of Compute Engine");
        return judging(quotaClasses, (covered) => {
          const needed = [controller, agent]
            .flatMap((fact) => (fact.kind === "Known" ? (fact.value?.priorityClass ?? []) : []))
            .filter((name) => name.startsWith("system-"));
          const missing = needed.filter((name) => !covered.has(name));
          if (missing.length === 0)
            return pass("the priority classes of Lastcall's pods are admitted");
          return fail(`no ResourceQuota of the namespace covers ${namesOf(missing)}`);
        });
      }),
  },
];

function namesIn(fact: Fact<{ readonly name: string } | undefined>): readonly string[] {
  return fact.kind === "Known" && fact.value !== undefined ? [fact.value.name] : [];
}

/** For this long, a node that joins may lack an agent. */
const joiningMs = minutes(5);

/** Checks of the nodes, the pods on them, and other tools that drain. */
export const nodeChecks: readonly Check[] = [
  {
    id: "agents",
    looksAt: "whether a Ready agent runs on each Spot node",
    fix: "install the agent (docs/notices.md), and remove what keeps it off these nodes",
    run: (facts) =>
      judging(facts.agent, (agent) => {
        if (agent === undefined) {
          return warn(
            "no agent is installed: notices come only from marks on Nodes, a queue or polling",
          );
        }
        return judging(facts.ownPods, (pods) =>
          judging(spotNodes(facts), (spot) => {
            const covered = new Set(
              pods.flatMap(({ component, ready, node }) =>
                component === "agent" && ready ? (node ?? []) : [],
              ),
            );
            const old = spot.filter(
              ({ createdAt, ready }) =>
                ready && (createdAt === undefined || between(createdAt, facts.at) > joiningMs),
            );
            const bare = old.filter(({ name }) => !covered.has(name)).map(({ name }) => name);
            if (bare.length > 0)
              return fail(
                `${counted(bare.length, "Spot node")} without a Ready agent: ${namesOf(bare)}`,
              );
            return pass(`an agent runs on each of ${counted(old.length, "Spot node")}`);
          }),
        );
      }),
  },
  {
    id: "other-tools",
    looksAt: "whether another tool drains the same nodes, and which tools coexist without harm",
    fix: "let only one of them handle Spot nodes; docs/cloud describes how to coexist with each",
    run: ({ otherTools }) =>
      judging(otherTools, (found) => {
        const rivals = found.filter(({ rival }) => rival);
        const told = (some: typeof found) =>
          namesOf(some.map(({ tool, place }) => `${tool} (${place})`));
        if (rivals.length > 0) return warn(`drains or ends the same nodes: ${told(rivals)}`);
        if (found.length === 0) return pass("no other tool that removes nodes was found");
        return pass(`coexists with Lastcall: ${told(found)}`);
      }),
  },
  {
    id: "other-marks",
    looksAt: "whether other tools have left their marks on Spot nodes",
    fix: "nodes that others are removing are left to them; remove the marks of a tool that is no longer installed",
    run: (facts) =>
      judging(spotNodes(facts), (spot) => {
        const marked = spot.flatMap((node) => {
          const rival =
            rivalOf(node) ??
            (node.annotations[killerAnnotation] === undefined ? undefined : "estafette");
          return rival === undefined ? [] : [`${node.name} (${rival})`];
        });
        if (marked.length === 0) return pass("no Spot node has the mark of another tool");
        return warn(`marked by others: ${namesOf(marked)}`);
      }),
  },
  {
    id: "marks",
    looksAt: "whether a node still has Lastcall's marks although its departure has ended",
    fix: "the controller removes such marks within a minute: check whether one leads",
    run: ({ nodes, departures }) =>
      judging(nodes, (all) =>
        judging(departures, (known) => {
          const leaving = new Set(known.filter(isLive).map(({ node }) => node.uid));
          const orphans = all.filter(
            ({ uid, taints }) =>
              taints.some(({ key }) => key === departingTaint) && !leaving.has(uid),
          );
          if (orphans.length === 0) return pass("no mark without a departure");
          return warn(`marked without a departure: ${namesOf(orphans.map(({ name }) => name))}`);
        }),
      ),
  },
  {
    id: "budgets",
    looksAt: "whether a PodDisruptionBudget can never allow an eviction, as it is set",
    fix: "set maxUnavailable to at least 1, or more replicas than minAvailable: docs/drain.md",
    run: ({ budgets }) =>
      judging(budgets, (all) => {
        const never = all.filter(canNeverAllow).map(budgetName);
        if (never.length === 0)
          return pass(`${counted(all.length, "budget")}, each can allow an eviction`);
        return fail(
          `${counted(never.length, "budget")} can never allow an eviction: ${namesOf(never)}`,
        );
      }),
  },
  {
    id: "left-pods",
    looksAt: "whether pods that ended with a machine are still listed as Failed",
    fix: "the controller removes those whose node name another machine has taken (docs/drain.md); for the rest: kubectl delete pods --all-namespaces --field-selector status.phase=Failed",
    run: ({ leftPods }) =>
      judging(leftPods, (left) => {
        if (left.length === 0) return pass("no pods are left from machines that have ended");
        return warn(
          `${counted(left.length, "pod")} left from machines that ended: ${namesOf(left)}`,
        );
      }),
  },
  {
    id: "grace",
    looksAt:
      "whether the audit of the workloads finds errors: pods that get less time than they ask for, and worse",
    fix: "lastcall audit lists them with what to change",
    run: ({ grace }) =>
      judging(grace, ({ errors, worst }) => {
        if (errors === 0) return pass("the audit of the workloads finds no error");
        const first = worst === undefined ? "" : `, the first: ${worst}`;
        return warn(`the audit finds ${counted(errors, "error")}${first}`);
      }),
  },
  {
    id: "spot-nodes",
    looksAt: "whether there are Spot nodes at all",
    fix: "label them as the cloud does, or select them in the policy's nodeSelector",
    run: (facts) =>
      judging(spotNodes(facts), (spot) =>
        spot.length === 0
          ? warn("no node is labelled as Spot, and no policy selects one")
          : pass(counted(spot.length, "Spot node")),
      ),
  },
];
