import type { KubeApi, KubeObject } from "../../contracts/kube-api.ts";
import {
  type DoctorFacts,
  type Fact,
  known,
  type OwnPod,
  type PodTrial,
  type PolicyFacts,
  type WorkloadFacts,
} from "../../doctor/facts.ts";
import type { CommandIo } from "../command-line/command.ts";
import { agentTrials, controllerTrials, podTrial, type TrialGround } from "./admission-trials.ts";
import { fact } from "./cluster-facts.ts";

/** What the policies make the controller do beyond its usual permissions. */
export function usesOf(policies: Fact<PolicyFacts>) {
  const all = policies.kind === "Known" ? policies.value.policies : [];
  return {
    placeholders: all.some(({ replacement }) => replacement.when === "BeforeDrain"),
    restarts: all.some(({ drain }) => drain.onSingleReplica === "RestartOwner"),
  };
}

/** Tries what admission allows, for the workloads that were found. */
export async function trialFacts(
  { api, io }: { readonly api: KubeApi; readonly io: CommandIo },
  found: Pick<DoctorFacts, "controller" | "agent" | "nodes" | "policies" | "at"> & {
    readonly pods: Fact<readonly OwnPod[]>;
    readonly workloads: Fact<Readonly<Record<"controller" | "agent", KubeObject | undefined>>>;
  },
) {
  const { nodes, pods, at, workloads } = found;
  const ground = (signal: AbortSignal): TrialGround => ({
    ...{ api, at, signal },
    nodes: nodes.kind === "Known" ? nodes.value : [],
    pods: pods.kind === "Known" ? pods.value : [],
  });
  const tried = <Trial>(
    one: Fact<WorkloadFacts | undefined>,
    run: (workload: WorkloadFacts, ground: TrialGround) => Promise<readonly Trial[]>,
  ): Promise<Fact<readonly Trial[]>> => {
    const workload = one.kind === "Known" ? one.value : undefined;
    if (one.kind === "Unknown") return Promise.resolve(one);
    if (workload === undefined) return Promise.resolve(known([]));
    return fact(io, (signal) => run(workload, ground(signal)));
  };
  const [agentOnes, controllerOnes, podOnes] = await Promise.all([
    nodes.kind === "Unknown" ? nodes : tried(found.agent, agentTrials),
    tried(found.controller, (one, on) => controllerTrials(one, usesOf(found.policies), on)),
    workloads.kind === "Unknown"
      ? workloads
      : fact(io, async (signal): Promise<readonly PodTrial[]> => {
          const { controller, agent } = workloads.value;
          const both = [
            { who: "the controller", creator: "replicaset-controller", workload: controller },
            { who: "the agents", creator: "daemon-set-controller", workload: agent },
          ];
          return (await Promise.all(both.map((one) => podTrial(one, ground(signal))))).flat();
        }),
  ]);
  return { agentTrials: agentOnes, controllerTrials: controllerOnes, podTrials: podOnes };
}
