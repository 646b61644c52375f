import { departingTaint, killerAnnotation, rivalOf } from "../../core/cluster/node.ts";
import { isLive } from "../../core/departure/departure.ts";
import { budgetName, canNeverAllow } from "../../core/drain-plan/pod-obstacle.ts";
import { between, minutes } from "../../core/time/time.ts";
import { type Check, counted, fail, judging, namesOf, pass, warn } from "../check.ts";
import { spotNodes } from "../facts.ts";

/** A node that joins has no agent for as long as that takes. */
const joiningMs = minutes(5);

/** Nodes and what runs on them, and who else deals with them. */
export const nodeChecks: readonly Check[] = [
  {
    id: "agents",
    looksAt: "whether a Ready agent runs on each Spot node",
    fix: "install the agent (docs/notices.md), and let nothing keep it off these nodes",
    run: (facts) =>
      judging(facts.agent, (agent) => {
        if (agent === undefined) {
          return warn(
            "no agent is installed: notices come by the Node's marks, a queue or polls alone",
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
            return pass(`an agent on each of ${counted(old.length, "Spot node")}`);
          }),
        );
      }),
  },
  {
    id: "other-tools",
    looksAt: "whether another tool drains the same nodes, and which work beside us without harm",
    fix: "let one of them deal with Spot nodes; how to live beside each is in docs/cloud",
    run: ({ otherTools }) =>
      judging(otherTools, (found) => {
        const rivals = found.filter(({ rival }) => rival);
        const told = (some: typeof found) =>
          namesOf(some.map(({ tool, place }) => `${tool} (${place})`));
        if (rivals.length > 0) return warn(`drains or ends the same nodes: ${told(rivals)}`);
        if (found.length === 0) return pass("no other tool that takes nodes away was seen");
        return pass(`works beside us: ${told(found)}`);
      }),
  },
  {
    id: "other-marks",
    looksAt: "whether other tools have left their marks on Spot nodes",
    fix: "nodes that others are taking away are left to them; remove what a tool that is gone has left",
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
    looksAt: "whether a node is still marked by us although its departure is over",
    fix: "the controller takes such marks away within a minute: look at whether one leads",
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
    fix: "those of a name that another machine has are removed by the controller (docs/drain.md); the rest: kubectl delete pods --all-namespaces --field-selector status.phase=Failed",
    run: ({ leftPods }) =>
      judging(leftPods, (left) => {
        if (left.length === 0) return pass("no pod is left of a machine that has ended");
        return warn(`${counted(left.length, "pod")} left of machines that ended: ${namesOf(left)}`);
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
