import type { InstanceReleaser, Releasability, ReleaserChoice } from "../../contracts/cloud.ts";
import { detachState } from "../../core/action/action-plan.ts";
import { type NodeFacts, parseProviderId } from "../../core/cluster/node.ts";
import { type Policy, selectPolicy } from "../../core/policy/policy.ts";
import { ownerProblem, releaseModeOf } from "../../core/policy/release-answer.ts";
import { minutes, plus } from "../../core/time/time.ts";
import type { MachineFacts } from "../../doctor/facts.ts";
import type { CloudPorts } from "../assemble/controller-ports.ts";
import type { CommandIo } from "../command-line/command.ts";
import { fact } from "./cluster-facts.ts";

const mostMachines = 3;

/** A machine takes minutes to become a node. */
const nodeAfterMs = minutes(15);

/**
 * Asks the clouds that responded for the running machines of the nodes' groups, and returns those
 * that are old enough but are not nodes. If many have no Node, only a few are examined.
 */
export async function orphanMachines(
  asked: { readonly beside: readonly MachineFacts[]; readonly nodes: readonly NodeFacts[] },
  options: MachineLookOptions & { readonly groupsOf: CloudPorts["groupsOf"] },
  signal: AbortSignal,
): Promise<readonly string[]> {
  const { releaserFor, groupsOf, io } = options;
  const registered = new Set(asked.nodes.map(({ providerID = "" }) => providerID.toLowerCase()));
  const answered = asked.beside.filter(({ state }) => state.kind === "Known");
  const clouds = new Set(answered.map(({ cloud }) => cloud));
  // If groups are looked up for only a few, machines that certainly exist come first.
  const inOrder = [true, false].flatMap((isReady) =>
    asked.nodes.filter(({ ready }) => ready === isReady),
  );
  const askable = inOrder.flatMap(({ providerID = "" }) =>
    clouds.has(parseProviderId(providerID)?.cloud ?? "") ? [providerID] : [],
  );
  const beside = askable.length === 0 ? [] : await groupsOf(askable, signal);
  const unknownOnes = [...new Set(beside)]
    .filter((one) => !registered.has(one.toLowerCase()))
    .slice(0, mostOrphans);
  const old = await Promise.all(
    unknownOnes.map(async (providerID) => {
      const releaser = releaserFor({ providerID, mode: "None" });
      const machine = await releaser?.describe(providerID, signal);
      if (machine?.kind !== "Present" || !machine.running) return [];
      const { bornAt } = machine;
      return bornAt === undefined || plus(bornAt, nodeAfterMs) > io.clock.now() ? [] : [providerID];
    }),
  );
  return old.flat();
}

const mostOrphans = 10;

interface MachineLookOptions {
  readonly releaserFor: ReleaserChoice;
  readonly io: CommandIo;
}

/**
 * Checks the machines of up to three Ready and three NotReady nodes with their clouds, without
 * changing anything: they are looked up, and the permission is queried if the cloud supports that.
 */
export async function machineFacts(
  nodes: readonly NodeFacts[],
  policies: readonly Policy[],
  options: MachineLookOptions,
): Promise<readonly MachineFacts[]> {
  const askable = nodes.filter(
    ({ providerID }) => providerID && options.releaserFor({ providerID, mode: "None" }),
  );
  const some = [true, false].flatMap((isReady) =>
    askable.filter(({ ready }) => ready === isReady).slice(0, mostMachines),
  );
  return Promise.all(some.map((node) => machineOf(node, policies, options)));
}

async function machineOf(
  node: NodeFacts,
  policies: readonly Policy[],
  { releaserFor, io }: MachineLookOptions,
): Promise<MachineFacts> {
  const providerID = node.providerID ?? "";
  const policy = selectPolicy(node, policies)?.policy;
  const mode = policy === undefined ? "None" : releaseModeOf(node, policy.instance);
  const detach = policy && detachState(policy.actions, { cause: "Planned", records: [] });
  const releaser = releaserFor({ providerID, mode }) as InstanceReleaser;
  const state = await fact(io, async (signal) => {
    const found = await releaser.describe(providerID, signal);
    if (found.kind === "Absent") return found;
    const { running, bornAt } = found;
    return { kind: "Present", running, launchKnown: bornAt !== undefined } as const;
  });
  const facts = {
    ...{ node: node.name, providerID, cloud: parseProviderId(providerID)?.cloud ?? "" },
    ...{ nodeReady: node.ready, mode, state },
  };
  if (mode === "None") return facts;
  const problem = ownerProblem(node, mode);
  const release = await fact<Releasability>(io, async (signal) =>
    problem === undefined
      ? releaser.check({ providerID, mode, detach }, signal)
      : { kind: "Impossible", problem },
  );
  return { ...facts, release };
}
