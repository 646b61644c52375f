import type { KubeAnswer, KubeMethod } from "../../contracts/kube-api.ts";

/** Which requests shall fail; a field that is absent fits any. */
export interface FaultMatch {
  readonly method?: KubeMethod | "WATCH";
  /** A part of the path, or a pattern of it. */
  readonly path?: string | RegExp;
}

/**
 * What happens to a request that fits. `Drop`: it is lost before the server saw it.
 * `DropAnswer`: the server did it, and the connection broke before the answer came back.
 */
export type FaultEffect = KubeAnswer | "Drop" | "DropAnswer";

export interface Fault {
  readonly match: FaultMatch;
  readonly answer: FaultEffect;
  /** How many fitting requests fail; one where absent. */
  readonly times?: number;
}

/** The faults that are still to come, in the order in which they were told. */
export class FaultPlan {
  readonly #waiting: { fault: Fault; left: number }[] = [];

  add(fault: Fault): void {
    this.#waiting.push({ fault, left: fault.times ?? 1 });
  }

  /** The fault that strikes this request, if any; it is used up by it. */
  take(request: { method: KubeMethod | "WATCH"; path: string }): FaultEffect | undefined {
    if (this.#waiting.length === 0) return undefined;
    const at = this.#waiting.findIndex(({ fault }) => fits(fault.match, request));
    const found = this.#waiting[at];
    if (!found) return undefined;
    found.left -= 1;
    if (found.left === 0) this.#waiting.splice(at, 1);
    return found.fault.answer;
  }
}

function fits(match: FaultMatch, request: { method: string; path: string }): boolean {
  if (match.method !== undefined && match.method !== request.method) return false;
  if (match.path === undefined) return true;
  return typeof match.path === "string"
    ? request.path.includes(match.path)
    : match.path.test(request.path);
}
