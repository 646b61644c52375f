import type { NodeFacts } from "../cluster/node.ts";
import type { DrainAct } from "../drain/drain-progress.ts";
import type { NewPlaceholder } from "../drain/placeholder-plan.ts";
import type { ReleaseMode } from "../policy/policy.ts";
import type { Instant } from "../time/time.ts";
import type { RequestFault } from "./scene.ts";

interface BaseRequest {
  /** At most one request of a key is in flight. */
  readonly key: string;
  /** It is aborted as soon as it is no longer wanted; any other runs to its answer. */
  readonly stops?: true | undefined;
}

/**
 * What can be asked of the world. A request is data: it is sent in one place, checks there what it
 * depends on (uid, machine, resourceVersion, or `next` once more for what cannot be undone), and is
 * sent in the lane of its kind.
 */
export type DepartureRequest = BaseRequest &
  (
    | { readonly kind: "Cordon"; readonly seen: NodeFacts | undefined }
    | { readonly kind: "RenewMarks" }
    | { readonly kind: "DropInstant" }
    /** `departure` names the marks to remove: its own, or those that an ended one has left. */
    | {
        readonly kind: "Uncordon";
        readonly departure: string;
        readonly seen?: NodeFacts | undefined;
      }
    | { readonly kind: "HandOver"; readonly owner: string }
    | { readonly kind: "Pod"; readonly act: DrainAct; readonly dueAt: Instant }
    | { readonly kind: "Reserve"; readonly placeholder: NewPlaceholder }
    | { readonly kind: "Unreserve"; readonly name: string }
    /**
     * Carries out an action, with all its attempts, and records what came of it. Once it is no
     * longer wanted, nothing more is changed.
     */
    | { readonly kind: "RunAction"; readonly name: string }
    | { readonly kind: "UndoAction"; readonly name: string }
    /** Ends actions that an earlier process has started, and that nothing continues. */
    | { readonly kind: "InterruptActions"; readonly names: readonly string[] }
    | { readonly kind: "RecordActions" }
    | {
        readonly kind: "Release";
        readonly machineId: string;
        readonly providerID: string;
        readonly mode: Exclude<ReleaseMode, "None">;
      }
    | { readonly kind: "RemoveNode" }
  );

const nodeWrites: ReadonlySet<DepartureRequest["kind"]> = new Set([
  "Cordon",
  "RenewMarks",
  "Uncordon",
  "RemoveNode",
]);

/**
 * Whether a request writes the Node. One does at a time: an uncordon that overtakes the cordon of
 * an earlier phase would leave the node cordoned.
 */
export function writesNode({ kind }: Pick<DepartureRequest, "kind">): boolean {
  return nodeWrites.has(kind);
}

/** The response to a request that was carried out. */
export type RequestAnswer =
  | { readonly kind: "Done" }
  | { readonly kind: "Gone" }
  | { readonly kind: "Mismatch"; readonly found: string }
  | { readonly kind: "NotOurs"; readonly departure: string }
  /** The departure to hand a notice over to does not exist. */
  | { readonly kind: "Orphan" }
  /** The last look kept the machine. */
  | { readonly kind: "Kept" };

/** What this process has asked, and what came of it. */
export interface AskedRequest {
  readonly kind: DepartureRequest["kind"];
  readonly attempts: number;
  /** Since when it fails, or is asked for the first time (monotonic). */
  readonly sinceMs: number;
  readonly answer?: RequestAnswer | undefined;
  /** The last fault, until an attempt succeeds. */
  readonly fault?: RequestFault | undefined;
  /** Whether an attempt is on its way. */
  readonly isInFlight: boolean;
  /** When the last attempt ended (monotonic), and the number of the evaluation before it. */
  readonly answeredMs?: number | undefined;
  readonly answeredNumber?: number | undefined;
  /** Not before this is it sent again after a fault (monotonic). */
  readonly againMs?: number | undefined;
}
