import { isKnownProviderId } from "../../core/cluster/node.ts";
import { selectPolicy } from "../../core/policy/policy.ts";
import { counted } from "../../core/reason/counted.ts";
import {
  type Check,
  type CheckResult,
  type DoctorFacts,
  type Fact,
  fail,
  judging,
  type MachineFacts,
  namesOf,
  namesWith,
  pass,
  setupCommand,
  skip,
  spotNodes,
  warn,
} from "../facts.ts";

const rightsFix = `${setupCommand}; the lists of permissions are in docs/cloud`;

type Unanswered = Extract<Fact<never>, { readonly kind: "Unknown" }>;

/** A problem with the credentials, not with the permissions or the cloud. */
function isOfIdentity({ code }: Unanswered): boolean {
  return code === "CLOUD_CREDENTIALS" || code === "CONFIG_INVALID";
}

/** Outside the cluster, the caller lacks the controller's credentials, and may have none at all. */
function hasNone(fact: Unanswered, { inPod }: DoctorFacts): boolean {
  return !inPod && isOfIdentity(fact) && fact.passing === true;
}

const awayCodes: ReadonlySet<string> = new Set(["CLOUD_REFUSED", "CLOUD_UNREACHABLE"]);

const askInPod = "this caller has no cloud credentials: run it in the controller's pod";

/** Checks the machines that were looked up, if there are any. */
function ofMachines(
  { machines }: DoctorFacts,
  judge: (found: readonly MachineFacts[]) => CheckResult,
): CheckResult {
  return judging(machines, (found) =>
    found.length === 0 ? skip("there is no Spot node of a supported cloud") : judge(found),
  );
}

function cloudsOf(found: readonly MachineFacts[]): string {
  return [...new Set(found.map(({ cloud }) => cloud))].join(", ");
}

function identityVerdict(found: readonly MachineFacts[], facts: DoctorFacts): CheckResult {
  const unanswered = found.flatMap(({ state }) => (state.kind === "Unknown" ? state : []));
  const stranger = unanswered.find(isOfIdentity);
  if (stranger !== undefined) return hasNone(stranger, facts) ? skip(askInPod) : fail(stranger.why);
  const silent = unanswered.find(({ code }) => code === "CLOUD_UNREACHABLE");
  if (silent !== undefined) return warn(silent.why);
  return pass(`credentials are accepted by ${cloudsOf(found)}`);
}

function permissionVerdict(found: readonly MachineFacts[]): CheckResult {
  const refused = found.flatMap(({ state, release }) =>
    [state, release].flatMap((fact) =>
      fact?.kind === "Unknown" && fact.code === "CLOUD_RIGHT_MISSING" ? fact.why : [],
    ),
  );
  if (refused[0] !== undefined) return fail(refused[0]);
  const asked = found.flatMap(({ release }) => (release?.kind === "Known" ? release.value : []));
  const missing = asked.find((one) => one.kind === "Impossible" && /permission/.test(one.problem));
  if (missing?.kind === "Impossible") return fail(missing.problem);
  if (asked.length === 0) return skip("no policy releases machines, or no cloud responded");
  const untold = asked.some((one) => one.kind === "Possible" && one.permission === "Unknown");
  return pass(
    untold
      ? "lookups are permitted; whether releases are, this cloud shows only when one is done"
      : "lookups and releases are permitted",
  );
}

function releaseVerdict(found: readonly MachineFacts[], facts: DoctorFacts): CheckResult {
  const answers = found.filter(({ release }) => release !== undefined);
  if (answers.length === 0) return skip("no policy releases machines");
  for (const { node, release } of answers) {
    if (release?.kind !== "Known" || release.value.kind !== "Impossible") continue;
    return fail(`the machine of ${node} could not be released: ${release.value.problem}`);
  }
  const unasked = answers.find(({ release }) => release?.kind === "Unknown");
  if (unasked?.release?.kind === "Unknown") {
    return hasNone(unasked.release, facts) ? skip(askInPod) : warn(unasked.release.why);
  }
  return pass(`${counted(answers.length, "machine")} could be released now`);
}

/** Checks of the cloud, which change nothing, and of the queue. */
export const cloudChecks: readonly Check[] = [
  {
    id: "cloud-identity",
    looksAt:
      "whether the cloud accepts the caller's credentials; run it in the controller's pod to check the controller's",
    fix: `${setupCommand}; docs/cloud`,
    run: (facts) => ofMachines(facts, (found) => identityVerdict(found, facts)),
  },
  {
    id: "cloud-permissions",
    looksAt:
      "whether the permissions are granted, as far as the cloud tells without doing anything",
    fix: rightsFix,
    run: (facts) => ofMachines(facts, permissionVerdict),
  },
  {
    id: "machines",
    looksAt: "whether the machines of up to three Ready nodes are found",
    fix: "compare spec.providerID of the node with the cloud's console",
    run: (facts) =>
      ofMachines(facts, (all) => {
        const found = all.filter(({ nodeReady }) => nodeReady);
        const seen = found.flatMap(({ node, state }) =>
          state.kind === "Known" ? [{ node, state: state.value }] : [],
        );
        if (seen.length === 0) return skip("no lookup of the machine of a Ready node succeeded");
        const absent = seen.filter(({ state }) => state.kind === "Absent").map(({ node }) => node);
        if (absent.length > 0) return fail(`the cloud has no machine for ${namesOf(absent)}`);
        const names = seen.map(({ node }) => node).join(", ");
        const each = seen.length === 1 ? "its machine was" : "the machine of each was";
        return pass(`${counted(seen.length, "node")} looked up, ${each} found: ${names}`);
      }),
  },
  {
    id: "nodes-without-machine",
    looksAt: "whether up to three nodes that are not Ready still have their machine",
    fix: "delete the Node object with kubectl delete node, unless the machine will be started again",
    run: (facts) =>
      ofMachines(facts, (all) => {
        const lost = all.filter(({ nodeReady }) => !nodeReady);
        if (lost.length === 0) return pass("every Spot node is Ready");
        const gone = lost.filter(
          ({ state }) => state.kind === "Known" && state.value.kind === "Absent",
        );
        if (gone.length === 0)
          return pass(
            "each node that is not Ready still has its machine, of those that the cloud was asked for",
          );
        return warn(
          `${namesWith(
            gone.map(({ node }) => node),
            "no longer has",
            "no longer have",
          )} a machine`,
        );
      }),
  },
  {
    id: "machines-without-node",
    looksAt:
      "whether every machine that runs in the groups of the nodes, or is known to be of their cluster, is a node after a quarter of an hour",
    fix: "check the machine's own log: its kubelet does not reach the cluster; then delete the machine in its group, or its NodeClaim",
    run: (facts) =>
      ofMachines(facts, (all) =>
        judging(facts.orphanMachines, (orphans) => {
          if (all.every(({ state }) => state.kind === "Unknown"))
            return skip("no lookup of a machine succeeded");
          if (orphans.length === 0) return pass("every machine that was found is a node");
          const names = namesOf(orphans.map((one) => one.slice(one.lastIndexOf("/") + 1)));
          return warn(`${counted(orphans.length, "machine")} without a Node: ${names}`);
        }),
      ),
  },
  {
    id: "launch-times",
    looksAt:
      "whether the cloud reports the launch times of machines, from which lifetimes are counted",
    fix: rightsFix,
    run: (facts) =>
      ofMachines(facts, (all) => {
        const present = all.flatMap(({ node, state }) =>
          state.kind === "Known" && state.value.kind === "Present"
            ? [{ node, ...state.value }]
            : [],
        );
        if (present.length === 0) return skip("no lookup of a machine succeeded");
        const silent = present.filter(({ launchKnown }) => !launchKnown).map(({ node }) => node);
        if (silent.length === 0) return pass("the cloud reports the launch times of its machines");
        return warn(`for ${namesOf(silent)}, the age of the Node object is used`);
      }),
  },
  {
    id: "provider-id",
    looksAt: "whether each Spot node names a machine of a known cloud",
    fix: "the cloud controller manager writes spec.providerID; if nothing does, set release: None",
    run: (facts) =>
      judging(spotNodes(facts), (spot) => {
        if (spot.length === 0) return skip("there is no Spot node");
        const policies = facts.policies.kind === "Known" ? facts.policies.value.policies : [];
        const nameless = spot.filter((node) => {
          if (node.providerID !== undefined && isKnownProviderId(node.providerID)) return false;
          return selectPolicy(node, policies)?.policy.instance.release !== "None";
        });
        if (nameless.length === 0)
          return pass(
            `${counted(spot.length, "Spot node, with", "Spot nodes, each with")} a known machine`,
          );
        return fail(`the machine of ${namesOf(nameless.map(({ name }) => name))} is not known`);
      }),
  },
  {
    id: "release",
    looksAt: "whether machines could be released: otherwise a departure does not start",
    fix: rightsFix,
    run: (facts) => ofMachines(facts, (found) => releaseVerdict(found, facts)),
  },
  {
    id: "queue",
    looksAt:
      "if the controller reads a queue: whether it responds, and how many messages are waiting",
    fix: "check the controller's log and the EventBridge rules: docs/cloud/aws.md",
    run: ({ queue }) => {
      // If the queue does not exist or does not respond, the controller receives nothing either.
      const isAway = queue.kind === "Unknown" && awayCodes.has(queue.code ?? "");
      if (isAway) return fail(queue.why);
      return judging(queue, (found) => {
        if (found === undefined) return skip("the controller reads no queue");
        const said = `${counted(found.waiting, "message")} waiting, ${found.inFlight} in flight`;
        // Two receivers take ten messages at a time. A larger backlog means that they cannot keep
        // up.
        return found.waiting >= 100 ? warn(`the queue is not keeping up: ${said}`) : pass(said);
      });
    },
  },
];
