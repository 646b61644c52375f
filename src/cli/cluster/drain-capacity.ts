import type { ClusterCapacity } from "../../contracts/cluster-capacity.ts";
import type { KubeApi } from "../../contracts/kube-api.ts";
import { loadsOf } from "../../core/capacity/node-capacity.ts";
import type { PodFacts } from "../../core/cluster/pod.ts";
import type { CommandIo } from "../command-line/command-io.ts";

/** What the files say of room; where volumes can be reached they do not say. */
export function capacityInFiles(pods: readonly PodFacts[]): ClusterCapacity {
  const loads = loadsOf(pods);
  return {
    loadOn: (nodeName) => Promise.resolve(loads.get(nodeName) ?? {}),
    loads: () => Promise.resolve(loads),
    withVolumes: (some) => Promise.resolve(some),
  };
}

/** Work that takes less than this says nothing. */
const silentMs = 2000;

/** The cluster's own; a long look at all pods says on a terminal how far it is. */
export async function capacityInCluster(
  api: KubeApi,
  about: { readonly io: CommandIo; readonly quiet: boolean },
): Promise<{ readonly capacity: ClusterCapacity; readonly clear: () => void }> {
  const { KubeClusterCapacity } = await import("../../kube/cluster-capacity.ts");
  const { io, quiet } = about;
  const startedMs = io.clock.monotonic();
  let seen = 0;
  let shown = "";
  const onPage = (pods: number): void => {
    seen += pods;
    if (quiet || !io.isTerminal || io.clock.monotonic() - startedMs < silentMs) return;
    shown = `looking for capacity: ${seen} pods read`;
    io.err(`\r${shown}`);
  };
  const clear = (): void => {
    if (shown !== "") io.err(`\r${" ".repeat(shown.length)}\r`);
  };
  return { capacity: new KubeClusterCapacity(api, onPage), clear };
}
