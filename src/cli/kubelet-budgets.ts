import { isAutopilot } from "../audit/audit-node.ts";
import { type Fields, textOf, valueAt } from "../audit/json-field.ts";
import { readKubeletConfiguration } from "../audit/kubelet-configuration.ts";
import type { KubeAnswer, KubeApi } from "../contracts/kube-api.ts";
import type { ShutdownGroup } from "../core/drain-plan/grace-budget.ts";
import { isLastcallError, LastcallError, messageOf } from "../errors.ts";

/** Asks the kubelet of a node for `/configz`; throws LastcallError where there is no answer. */
export type AskKubelet = (node: Fields, signal?: AbortSignal) => Promise<KubeAnswer>;

export interface KubeletBudgets {
  /** By node name; nodes that gave none keep what their platform ships. */
  readonly read: ReadonlyMap<string, readonly ShutdownGroup[]>;
  /** One sentence for each node that gave none. */
  readonly notes: readonly string[];
}

const nodesAtOnce = 16;

/**
 * Through the API server. Needs `get` on nodes/proxy, which amounts to running commands in every
 * pod of every node.
 */
export function proxiedKubelet(api: KubeApi): AskKubelet {
  return (node, signal) =>
    api.send({ method: "GET", path: `/api/v1/nodes/${nodeNameOf(node)}/proxy/configz`, signal });
}

/** Asks the nodes, but those that may not be asked; throws RIGHT_MISSING and API_UNAUTHORIZED, as the next node will say the same. */
export async function readKubeletBudgets(
  nodes: readonly Fields[],
  ask: AskKubelet,
  signal?: AbortSignal,
): Promise<KubeletBudgets> {
  const read = new Map<string, readonly ShutdownGroup[]>();
  const notes: string[] = [];
  const queue = nodes.filter((node) => !isAutopilot(nodeNameOf(node)));
  const worker = async (): Promise<void> => {
    for (let node = queue.shift(); node !== undefined; node = queue.shift()) {
      const name = nodeNameOf(node);
      try {
        read.set(name, budgetIn(await ask(node, signal), name));
      } catch (error) {
        if (isFinal(error)) throw error;
        notes.push(`${messageOf(error)}; node ${name} is judged by what its platform ships`);
      }
    }
  };
  await Promise.all(Array.from({ length: nodesAtOnce }, worker));
  return { read, notes: notes.sort() };
}

function budgetIn({ status, body }: KubeAnswer, node: string): readonly ShutdownGroup[] {
  if (status === 200) return readKubeletConfiguration(body, () => `the kubelet of ${node}`);
  const said = textOf(valueAt(body, ["message"])) ?? textOf(body)?.trim() ?? "no reason";
  const codes = { 401: "API_UNAUTHORIZED", 403: "RIGHT_MISSING" } as const;
  const code = status === 401 || status === 403 ? codes[status] : "API_REFUSED";
  throw new LastcallError(
    code,
    `Cannot read /configz of the kubelet of ${node}: it answered ${status} (${said}), expected 200`,
  );
}

function isFinal(error: unknown): boolean {
  if (!isLastcallError(error)) return true;
  return ["RIGHT_MISSING", "API_UNAUTHORIZED", "INTERRUPTED"].includes(error.code);
}

export function nodeNameOf(node: Fields): string {
  return textOf(valueAt(node, ["metadata", "name"])) ?? "";
}
