import { instanceIdOf, type NodeIdentity } from "./node.ts";

/** What a platform calls a machine, with or without a domain: its Node has one of these names. */
export interface MachineNames {
  readonly hosts: readonly string[];
  /**
   * The form of the names that the platform gives to its machines. A Node whose name has another
   * form was named by somebody else, and is not compared. Absent: the platform names all nodes.
   */
  readonly form?: RegExp | undefined;
}

/**
 * Why a Node is not the machine that its providerID identifies; undefined if nothing shows that. A
 * kubelet writes the providerID of its Node itself, but its credentials hold for one node name.
 */
export function anothersMachine(
  { name, providerID = "" }: Pick<NodeIdentity, "name" | "providerID">,
  names: MachineNames | undefined,
): string | undefined {
  if (names === undefined || names.hosts.length === 0) return undefined;
  const host = hostOf(name);
  if (names.hosts.some((one) => hostOf(one) === host)) return undefined;
  if (names.form?.test(host) === false) return undefined;
  const called = [...new Set(names.hosts)].join(" or ");
  return `the machine ${providerID} is called ${called} by its cloud, and the Node ${name}: delete the Node, or correct the providerID that its kubelet sets`;
}

/**
 * Of the Nodes that name a machine, those to which its notices apply: that which has the machine's
 * name, or else all of them. So no Node can divert a notice from another one by naming its machine.
 */
export function nodesOfMachine<Node extends Pick<NodeIdentity, "name" | "providerID">>(
  nodes: readonly Node[],
): readonly Node[] {
  if (nodes.length < 2) return nodes;
  const own = nodes.filter((node) => hostOf(node.name) === instanceIdOf(node));
  return own.length === 1 ? own : nodes;
}

function hostOf(name: string): string {
  const [host = ""] = name.toLowerCase().split(".", 1);
  return host;
}
