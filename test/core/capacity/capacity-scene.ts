import type { NodeFacts } from "../../../src/core/cluster/node.ts";
import type { PodFacts, PodPlacement } from "../../../src/core/cluster/pod.ts";
import { node, pod } from "../drain/drain-scene.ts";

export const size = { cpu: 4, memory: 16e9, pods: 110 };

/** A machine with four cores. */
export function machine(name: string, changes: Partial<NodeFacts> = {}): NodeFacts {
  return node({ name, uid: `uid-${name}`, allocatable: size, ...changes });
}

/** A pod on `n1` with requests or placement constraints. */
export function asking(
  name: string,
  placement: Partial<PodPlacement>,
  changes: Partial<PodFacts> = {},
): PodFacts {
  const asked = { requests: {}, nodeSelector: {}, podAffinity: [], podAntiAffinity: [] };
  return pod(name, { placement: { ...asked, ...placement }, ...changes });
}
