import { clouds } from "../../cloud/clouds.ts";
import type { Cloud } from "../../contracts/cloud-descriptor.ts";
import {
  cloudOf,
  departingTaint,
  isOnWindows,
  killerAnnotation,
  type NodeFacts,
  rivalOf,
} from "../../core/cluster/node.ts";
import { isLeftByMachine } from "../../core/cluster/pod.ts";
import { isLive } from "../../core/departure/departure.ts";
import { budgetName, whyNeverAllowed } from "../../core/drain-plan/budget-standing.ts";
import { matchesNodeSelector } from "../../core/policy/policy.ts";
import { counted } from "../../core/reason/counted.ts";
import { andList } from "../../core/reason/word-list.ts";
import { between, minutes } from "../../core/time/time.ts";
import {
  type Check,
  type CheckResult,
  type DoctorFacts,
  fail,
  judging,
  namesOf,
  namesWith,
  pass,
  skip,
  spotNodes,
  warn,
} from "../facts.ts";

const crdFix = "lastcall setup crds --apply";
const definitionNames = ["departurepolicies.lastcall.dev", "departures.lastcall.dev"];

/**
 * From this version on the API server has ValidatingAdmissionPolicy by default, which narrows the
 * permissions of controller and agents, and adds the node to the tokens of its pods. Source:
 * kubernetes `pkg/features/kube_features.go`, ServiceAccountTokenPodNodeInfo.
 */
const oldestMinor = 30;
const clockWarnMs = 2000;
const clockFailMs = 15_000;

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
        const lack =
          "has no ValidatingAdmissionPolicy, which limits what Lastcall's tokens may do, and its tokens name no node, so agents report nothing";
        return fail(`Kubernetes ${name} ${lack}`, `upgrade to 1.${oldestMinor} or later`);
      }
      return pass(`Kubernetes ${name} responds`);
    },
  },
  {
    id: "namespace",
    looksAt: "whether the namespace of the installation exists",
    fix: "name the right one with -n: kubectl get namespaces",
    run: ({ home, namespace }) =>
      judging(home, ({ exists, controllerIn }) => {
        if (exists) return pass(`the installation is looked up in the namespace ${namespace}`);
        const fix = controllerIn === undefined ? undefined : `use -n ${controllerIn}`;
        return fail(`the namespace ${namespace} does not exist`, fix);
      }),
  },
  {
    id: "crds",
    looksAt: "whether both custom resource definitions are installed and served",
    fix: crdFix,
    run: ({ definitions }) =>
      judging(definitions, (found) => {
        const missing = definitionNames.filter((name) => !found.some((one) => one.name === name));
        if (missing.length > 0) return fail(`${namesWith(missing, "is", "are")} not installed`);
        const dead = found.filter(({ established }) => !established).map(({ name }) => name);
        if (dead.length > 0)
          return fail(`${namesWith(dead, "is", "are")} installed but not served`);
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
          return fail(
            `${namesWith(
              old.map(({ name }) => name),
              "does",
              "do",
            )} not serve v1alpha1`,
          );
        }
        const other = found.filter(({ sameSchema }) => !sameSchema).map(({ name }) => name);
        if (other.length === 0) return pass(`the schemas are those of ${version}`);
        return warn(`the schema of ${namesOf(other)} is not that of ${version}`);
      }),
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
];

/** For this long, a node that joins may lack an agent. */
const joiningMs = minutes(5);

/** Of all Spot nodes, these have a Ready agent, and the others need none yet. */
/** The agent's image is one for Linux. */
function unwatched(windows: readonly string[]): CheckResult {
  return warn(
    `no agent can run on ${counted(windows.length, "Windows node")}: ${namesOf(windows)}`,
    `${clouds.flatMap(({ doctor }) => doctor.agentless ?? []).join(", ")}: they find notices of nodes without an agent`,
  );
}

function coverage(all: number, covered: number): CheckResult {
  if (all === 0) return skip("there is no Spot node");
  const rest = all - covered;
  const fresh = `${counted(rest, "Spot node")} ${rest === 1 ? "is" : "are"} not Ready, or ${rest === 1 ? "has" : "have"} just joined`;
  if (covered === 0) return skip(fresh);
  const told =
    covered === 1
      ? "an agent runs on the Spot node"
      : `an agent runs on each of ${covered} Spot nodes`;
  return pass(rest === 0 ? told : `${told}; ${fresh}`);
}

function budgetsText(count: number): string {
  if (count === 0) return "there is no PodDisruptionBudget";
  return count === 1
    ? "1 budget, it can allow an eviction"
    : `${count} budgets, each can allow an eviction`;
}

const unworked = ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"];

/** Machines whose labels do not tell whether they are Spot, and that no policy selects. */
function unlabeledNodes(cloud: Cloud, all: readonly NodeFacts[], spot: readonly NodeFacts[]) {
  const known = new Set(spot.map(({ uid }) => uid));
  const usual = [...Object.keys(cloud.facts.spotLabels), ...unworked];
  const labels = [...usual, ...(cloud.doctor.unlabeledSpot?.exempt ?? [])];
  return all
    .filter((node) => cloudOf(node)?.name === cloud.facts.name && !known.has(node.uid))
    .filter((node) => !labels.some((key) => key in node.labels))
    .map(({ name }) => name);
}

const withUnlabeledSpot = clouds.filter(({ doctor }) => doctor.unlabeledSpot !== undefined);
const unlabeledMachines = andList(
  withUnlabeledSpot.flatMap(({ doctor }) => doctor.unlabeledSpot?.machines ?? []),
);

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
            const bare = old
              .filter((node) => !isOnWindows(node) && !covered.has(node.name))
              .map(({ name }) => name);
            if (bare.length > 0)
              return fail(
                `${counted(bare.length, "Spot node")} without a Ready agent: ${namesOf(bare)}`,
              );
            const windows = spot.filter(isOnWindows).map(({ name }) => name);
            if (windows.length > 0) return unwatched(windows);
            return coverage(spot.length, spot.filter(({ name }) => covered.has(name)).length);
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
    looksAt:
      "whether a PodDisruptionBudget can never allow an eviction, as it is set or with the pods that it selects",
    fix: "set maxUnavailable to at least 1, or more replicas than minAvailable; for pods of Jobs and pods without a controller set minAvailable to a number, or exclude them from the selector: docs/drain.md",
    run: ({ budgets }) =>
      judging(budgets, (all) => {
        const never = all.flatMap((budget) => {
          const why = whyNeverAllowed(budget);
          return why === undefined ? [] : [`${budgetName(budget)} (${why})`];
        });
        if (never.length === 0) return pass(budgetsText(all.length));
        return fail(
          `${counted(never.length, "budget")} can never allow an eviction: ${namesOf(never)}`,
        );
      }),
  },
  {
    id: "left-pods",
    looksAt: "whether pods that ended with a machine are still listed as Failed",
    fix: "the controller removes those whose node name another machine has taken (docs/drain.md); for the rest: kubectl delete pods --all-namespaces --field-selector status.phase=Failed",
    run: ({ failedPods, nodes }) =>
      judging(failedPods, (failed) =>
        judging(nodes, (all) => {
          const byName = new Map(all.map((node) => [node.name, node]));
          const left = failed
            .filter((pod) => isLeftByMachine(pod, byName.get(pod.nodeName ?? "")))
            .map(({ namespace, name }) => `${namespace}/${name}`);
          if (left.length === 0) return pass("no pods are left from machines that have ended");
          return warn(
            `${counted(left.length, "pod")} left from machines that ended: ${namesOf(left)}`,
          );
        }),
      ),
  },
  {
    id: "local-volumes",
    looksAt:
      "whether persistent volumes are on the disks of Spot nodes, and are destroyed with their machines",
    fix: "use a StorageClass whose disks outlive a machine, or keep these pods on stable nodes; if the application replicates its data, let one of their nodes leave at a time, with the budgets of a policy",
    run: (facts) =>
      judging(facts.localVolumes, (volumes) =>
        judging(spotNodes(facts), (spot) => {
          const lost = volumes.flatMap(({ claim, nodes }) => {
            const node = spot.find((one) => matchesNodeSelector(one, nodes));
            return node === undefined ? [] : [`${claim} on ${node.name}`];
          });
          if (lost.length === 0) return pass("no volume is on the disk of a Spot node");
          return warn(
            `${counted(lost.length, "volume")} will be destroyed with the machine: ${namesOf(lost)}`,
          );
        }),
      ),
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
    looksAt: `whether there are Spot nodes at all, and whether the labels of ${unlabeledMachines} tell`,
    fix: "label them as the cloud does, or select them in the policy's nodeSelector",
    run: (facts) =>
      judging(spotNodes(facts), (spot) =>
        judging(facts.nodes, (all) => {
          for (const cloud of withUnlabeledSpot) {
            const unlabeled = unlabeledNodes(cloud, all, spot);
            const message = `no label of ${namesOf(unlabeled)} tells whether it is Spot`;
            if (unlabeled.length > 0) return warn(message, cloud.doctor.unlabeledSpot?.fix);
          }
          if (spot.length > 0) return pass(counted(spot.length, "Spot node"));
          return warn("no node is labelled as Spot, and no policy selects one");
        }),
      ),
  },
];
