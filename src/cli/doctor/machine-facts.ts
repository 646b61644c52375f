import type {
  InstanceReleaser,
  Releasability,
  ReleaserChoice,
} from "../../contracts/instance-releaser.ts";
import type { NodeFacts } from "../../core/cluster/node.ts";
import { parseProviderId } from "../../core/cluster/node.ts";
import type { Policy, ReleaseMode } from "../../core/policy/policy.ts";
import { ownerProblem, releaseModeOf } from "../../core/policy/release-mode.ts";
import { selectPolicy } from "../../core/policy/selector.ts";
import type { MachineFacts } from "../../doctor/facts.ts";
import type { CommandIo } from "../command-line/command-io.ts";
import { fact } from "./asking.ts";

const mostMachines = 3;

interface MachineTools {
  readonly releaserFor: ReleaserChoice;
  readonly io: CommandIo;
}

/**
 * Asks the clouds for the machines of up to three nodes that are Ready and three that are not,
 * without harm: they are looked up, and the permission is asked for where the cloud tells it.
 */
export async function machineFacts(
  nodes: readonly NodeFacts[],
  policies: readonly Policy[],
  tools: MachineTools,
): Promise<readonly MachineFacts[]> {
  const askable = nodes.filter(
    ({ providerID }) => providerID && tools.releaserFor({ providerID, mode: "None" }),
  );
  const some = [true, false].flatMap((isReady) =>
    askable.filter(({ ready }) => ready === isReady).slice(0, mostMachines),
  );
  return Promise.all(some.map((node) => machineOf(node, policies, tools)));
}

async function machineOf(
  node: NodeFacts,
  policies: readonly Policy[],
  { releaserFor, io }: MachineTools,
): Promise<MachineFacts> {
  const providerID = node.providerID ?? "";
  const policy = selectPolicy(node, policies)?.policy;
  const mode = policy === undefined ? "None" : releaseModeOf(node, policy.instance);
  const releaser = releaserFor({ providerID, mode }) as InstanceReleaser;
  const state = await fact(io, async (signal) => {
    const found = await releaser.describe(providerID, signal);
    if (found.kind === "Absent") return found;
    const { running, bornAt } = found;
    return { kind: "Present", running, launchKnown: bornAt !== undefined } as const;
  });
  return {
    ...{ node: node.name, providerID, cloud: parseProviderId(providerID)?.cloud ?? "" },
    ...{ nodeReady: node.ready, mode, state },
    ...(mode === "None"
      ? {}
      : { release: await fact(io, (signal) => askRelease(node, mode, { releaser, signal })) }),
  };
}

async function askRelease(
  node: NodeFacts,
  mode: Exclude<ReleaseMode, "None">,
  { releaser, signal }: { readonly releaser: InstanceReleaser; readonly signal: AbortSignal },
): Promise<Releasability> {
  const problem = ownerProblem(node, mode);
  if (problem !== undefined) return { kind: "Impossible", problem };
  return releaser.check({ providerID: node.providerID ?? "", mode }, signal);
}
