import type { ControlPlane } from "../support/control-plane.ts";
import type { LastcallProcess } from "../support/lastcall-process.ts";
import { waitUntil } from "../support/wait-until.ts";

/** What has to stay alive while a test waits. */
export interface Living {
  readonly plane: ControlPlane;
  readonly processes: Iterable<LastcallProcess>;
}

/**
 * Waits for a condition, unless the control plane or a controller dies meanwhile. Throws with the
 * end of every controller's log.
 */
export async function untilAlive<T>(
  condition: () => Promise<T | false | undefined>,
  { what, timeoutMs }: { readonly what: string; readonly timeoutMs: number },
  { plane, processes }: Living,
): Promise<T> {
  const all = [...processes];
  const signal = AbortSignal.any([plane.signal, ...all.map(({ death }) => death)]);
  try {
    return await waitUntil(condition, { what, timeoutMs, signal, intervalMs: 50 });
  } catch (error) {
    const logs = all.map((one) => one.log().split("\n").slice(-40).join("\n"));
    throw new Error([String(error), ...logs].join("\n"), { cause: error });
  }
}
