import type { Outcome, Phase } from "../../core/departure/departure.ts";
import { departureAnnotation } from "../../core/notice/interruption.ts";
import type { Cause } from "../../core/policy/action.ts";
import type { ModelObject } from "../api/store/model-object.ts";
import type { ModelStore } from "../api/store/object-store.ts";

/** The storage of Departures in the model. */
export const departureStorage = "departures.lastcall.dev";

/** A Departure as it lies in the API, typed as far as the model looks. */
export interface DepartureObject extends ModelObject {
  readonly spec: {
    readonly node: { readonly name: string; readonly uid: string; readonly providerID?: string };
    readonly cause: Cause;
    readonly policy?: string;
    readonly departAt?: string;
    readonly deadlineAt?: string;
    readonly noticedAt?: string;
  };
  readonly status?: {
    readonly phase?: Phase;
    readonly outcome?: Outcome;
    readonly reason?: string;
    readonly message?: string;
    readonly timeline?: readonly { readonly step: string; readonly result: string }[];
  };
}

export function phaseOf(departure: DepartureObject): Phase {
  return departure.status?.phase ?? "Scheduled";
}

/** Whether a departure is chosen: planned or asked for, and no notice has come since. */
export function isChosen({ spec }: DepartureObject): boolean {
  const voluntary = spec.cause === "Planned" || spec.cause === "Manual";
  return voluntary && spec.noticedAt === undefined;
}

/** The Departure that a node is marked with, if it exists and is about this Node object. */
export function departureOfNode(store: ModelStore, nodeName: string): DepartureObject | undefined {
  const node = store.collection("nodes").get("", nodeName);
  const mark = node?.metadata.annotations?.[departureAnnotation];
  if (node === undefined || mark === undefined) return undefined;
  const found = store.collection(departureStorage).get("", mark) as DepartureObject | undefined;
  return found?.spec.node.uid === node.metadata.uid ? found : undefined;
}
