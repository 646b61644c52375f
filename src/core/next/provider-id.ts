import type { Memory } from "./memory.ts";
import type { DepartureScene } from "./scene.ts";

/**
 * Absent in a Departure that was written by hand, or by an agent: then that of the Node of the same
 * uid, which never changes, as watched, as of the last identity check, or as recorded. Undefined:
 * nothing identifies the machine.
 */
export function providerOf(of: {
  readonly scene: Pick<DepartureScene, "departure" | "node">;
  readonly memory: Pick<Memory, "target">;
}): string | undefined {
  const { node: named, status } = of.scene.departure;
  const known = [of.scene.node, of.memory.target].filter((node) => node?.uid === named.uid);
  const { providerID } = known.find((node) => node?.providerID) ?? {};
  return named.providerID ?? providerID ?? status.machine?.providerID;
}
