import type { KubeSender } from "../contracts/kube-api.ts";
import type { PodFacts } from "../core/cluster/pod.ts";
import { listAll } from "./list.ts";
import { podsPath } from "./paths.ts";
import { translatePod } from "./translate-pod.ts";

/** The pods of one node now. */
export async function listPodsOn(api: KubeSender, nodeName: string): Promise<readonly PodFacts[]> {
  const objects = await listAll(api, podsPath, onNode(nodeName));
  return objects.map(translatePod);
}

/** The query for the pods of one node, for a list or a watch. */
export function onNode(nodeName: string): Readonly<Record<string, string>> {
  return { fieldSelector: `spec.nodeName=${nodeName}` };
}
