import { fieldsOf, textOf, valueAt } from "../core/json/json-field.ts";
import { LastcallError } from "../errors.ts";

export interface TokenNode {
  readonly name: string;
  readonly uid: string;
}

/**
 * The node that a bound service account token names. A token which the kubelet asked for carries
 * the name and the uid of its node (KEP-4193, on by default from Kubernetes 1.30), so that the
 * agent needs no right to read Nodes. Nothing is verified here: it is our own token, and the API
 * server judges it. Undefined where the token has no such claim.
 */
export function nodeOfToken(token: string): TokenNode | undefined {
  const node = fieldsOf(valueAt(claimsOf(token), ["kubernetes.io", "node"]));
  const [name, uid] = [textOf(node.name), textOf(node.uid)];
  if (!name || !uid) return undefined;
  return { name, uid };
}

/**
 * The uid of the node that the agent runs on. Throws `CONFIG_INVALID` where the token is another
 * node's, and `RIGHT_MISSING` where it names none.
 */
export function ownUid(token: string, nodeName: string): string {
  const node = nodeOfToken(token);
  if (node === undefined) {
    throw new LastcallError(
      "RIGHT_MISSING",
      `Cannot tell the uid of node ${nodeName}: the service account token names no node, expected a token bound to a pod by Kubernetes 1.30 or later`,
    );
  }
  if (node.name !== nodeName) {
    throw new LastcallError(
      "CONFIG_INVALID",
      `Cannot speak for node ${nodeName}: the service account token is bound to ${node.name}, --node-name must be the node that the pod runs on`,
    );
  }
  return node.uid;
}

function claimsOf(token: string): unknown {
  const payload = token.split(".")[1];
  if (payload === undefined) return undefined;
  try {
    const binary = atob(payload.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(binary, (char) => char.charCodeAt(0));
    return JSON.parse(new TextDecoder().decode(bytes)) as unknown;
  } catch {
    return undefined;
  }
}
