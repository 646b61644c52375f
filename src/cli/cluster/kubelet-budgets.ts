import { isAutopilot, readKubeletConfiguration } from "../../audit/objects/audit-node.ts";
import type { KubeAnswer, KubeApi } from "../../contracts/kube-api.ts";
import type { ShutdownGroup } from "../../core/drain-plan/grace-budget.ts";
import { type Fields, textOf, valueAt } from "../../core/json/json-field.ts";
import { isLastcallError, LastcallError, messageOf } from "../../errors.ts";
import { answerMessage, meaningOf } from "../../kube/object/api-error.ts";

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

/**
 * Asks the nodes, but those that may not be asked; throws RIGHT_MISSING and API_UNAUTHORIZED, as
 * the next node will say the same.
 */
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
        notes.push(
          `${messageOf(error)}; node ${name} is audited with the defaults of its platform`,
        );
      }
    }
  };
  await Promise.all(Array.from({ length: nodesAtOnce }, worker));
  return { read, notes: notes.sort() };
}

function budgetIn(answer: KubeAnswer, node: string): readonly ShutdownGroup[] {
  if (answer.status === 200) {
    return readKubeletConfiguration(answer.body, () => `the kubelet of ${node}`);
  }
  const { code, retryable } = meaningOf({ method: "GET", path: "/configz" }, answer);
  const found = `it answered ${answer.status} (${answerMessage(answer)})`;
  throw new LastcallError(
    code,
    `Cannot read /configz of the kubelet of ${node}: ${found}, expected 200`,
    { retryable },
  );
}

function isFinal(error: unknown): boolean {
  if (!isLastcallError(error)) return true;
  return ["RIGHT_MISSING", "API_UNAUTHORIZED", "INTERRUPTED"].includes(error.code);
}

export function nodeNameOf(node: Fields): string {
  return textOf(valueAt(node, ["metadata", "name"])) ?? "";
}
