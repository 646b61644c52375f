import type { BoardAct } from "../../board/act/act.ts";
import { holdAnnotation, type NodeFacts } from "../../core/cluster/node.ts";
import { LastcallError } from "../../errors.ts";
import { connect } from "../cluster/connect.ts";
import { checkNodes, meantNodes, missingNode } from "../cluster/meant-nodes.ts";
import type { CommandRun } from "../command-line/command.ts";
import { type FleetSnapshot, readFleet } from "../input/fleet-snapshot.ts";
import { endOf, performActs } from "./perform-acts.ts";

/** Writes the hold annotation of nodes, or removes it, with the caller's permissions. */
export const runHold: CommandRun<"hold"> = async ({ options, words, io }) => {
  const asked = { command: "hold", words, selector: options.selector };
  checkNodes(asked);
  const { api, close } = await connect({ ...options, signal: io.signal }, io);
  try {
    const names = await meantNodes(asked, api);
    const source = { ...options, from: [], filename: [] };
    const optional = ["Departure", "DeparturePolicy"] as const;
    const fleet = await readFleet(source, { api, optional, named: { kind: "Node", names } }, io);
    const nodes = names.map((name) => nodeNamed(name, fleet));
    const until = endOf(options, { io, now: fleet.readAt });
    const isHeld = (node: NodeFacts) => node.annotations[holdAnnotation] !== undefined;
    const { meant = [], idle = [] } = Object.groupBy(nodes, (node) =>
      options.undo && !isHeld(node) ? "idle" : "meant",
    );
    const acts = meant.map(
      ({ name: node, uid }): BoardAct =>
        options.undo ? { kind: "ReleaseHold", node, uid } : { kind: "Hold", node, uid, until },
    );
    const unheld = idle.map(({ name }) => `${name} has no ${holdAnnotation} to remove`);
    return await performActs({ acts, idle: unheld }, { api, fleet, io, ...options });
  } finally {
    close();
  }
};

/** Throws NOT_FOUND. */
function nodeNamed(name: string, fleet: FleetSnapshot): NodeFacts {
  const node = fleet.nodes.find((one) => one.name === name);
  if (node !== undefined) return node;
  throw new LastcallError(
    "NOT_FOUND",
    `Cannot hold ${name}: ${missingNode(name, fleet)}, list them with: kubectl get nodes`,
  );
}
