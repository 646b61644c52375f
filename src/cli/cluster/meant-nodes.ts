import { nodeHint } from "../../config/problem.ts";
import type { KubeApi } from "../../contracts/kube-api.ts";
import { compareNames } from "../../core/cluster/name-order.ts";
import { isLastcallError, LastcallError } from "../../errors.ts";
import { nodesPath } from "../../kube/object/api-call.ts";
import { listAll } from "../../kube/watch/collection.ts";
import type { FleetSnapshot } from "../input/fleet-snapshot.ts";

export interface NodesAsked {
  /** What to do with them, as in `Cannot <verb> nodes`. */
  readonly command: string;
  readonly words: readonly string[];
  readonly selector: string | undefined;
}

/** Throws USAGE unless nodes are given by name or by labels, and not by both. */
export function checkNodes({ command, words, selector }: NodesAsked): void {
  // The API server takes it for no selector at all: every node of the cluster.
  if (selector !== undefined && !/[^\s,]/.test(selector)) {
    throw new LastcallError(
      "USAGE",
      `Cannot run lastcall ${command}: -l ${JSON.stringify(selector)} selects every node, expected labels such as pool=spot`,
    );
  }
  if ((words.length === 0) !== (selector === undefined)) return;
  const found =
    words.length === 0
      ? "no argument was given, expected NODE… or -l SELECTOR"
      : `found ${words.join(" ")} and -l ${selector}, expected one of the two`;
  throw new LastcallError("USAGE", `Cannot run lastcall ${command}: ${found}`);
}

/** The names of the nodes that are meant. Throws NOT_FOUND if no node has the labels. */
export async function meantNodes(
  { command, words, selector }: NodesAsked,
  api: KubeApi,
): Promise<readonly string[]> {
  if (selector === undefined) return [...new Set(words)];
  // The API server itself reads the selector, as it does for kubectl.
  const nodes = await listAll(api, nodesPath, { labelSelector: selector }).catch(
    (error: unknown) => {
      // All that is bad in this request is its selector.
      if (!isLastcallError(error) || !error.message.includes(": 400 ")) throw error;
      throw new LastcallError(
        "USAGE",
        `Cannot read --selector: found ${JSON.stringify(selector)}, expected a label selector such as pool=spot`,
        { cause: error },
      );
    },
  );
  if (nodes.length > 0)
    return nodes.map(({ metadata }) => metadata?.name ?? "").toSorted(compareNames);
  throw new LastcallError(
    "NOT_FOUND",
    `Cannot run lastcall ${command}: no node has the labels ${selector}, list them with: kubectl get nodes --show-labels`,
  );
}

/**
 * What is found in place of a node, for a sentence; `among`: what was searched. The name of a node
 * that has just left is no mistake: its group may give it to the next machine, which has not
 * registered yet.
 */
export function missingNode(
  name: string,
  { nodes, departures }: Pick<FleetSnapshot, "nodes" | "departures">,
  among = "",
): string {
  const [last] = departures
    .filter(({ node }) => node.name === name)
    .toSorted((a, b) => (b.createdAt ?? 0) - (a.createdAt ?? 0));
  if (last !== undefined) {
    return `there is no such node${among} now, it has left with the departure ${last.name} and no new machine has its name yet`;
  }
  const names = nodes.map((one) => one.name);
  return `there is no such node${among}${nodeHint(name, names)}`;
}
