import type { ModelObject } from "../../src/sim/api/store/object-store.ts";

/** An instant in milliseconds since 1970. */
export type At = number;

/** One thing that happened. A run is the ordered trace of these. */
export type TraceEvent = { readonly at: At } & (
  | {
      readonly kind: "Change";
      /** Such as `nodes` or `departures.lastcall.dev`. */
      readonly storage: string;
      readonly type: "ADDED" | "MODIFIED" | "DELETED";
      readonly object: ModelObject;
      readonly previous: ModelObject | undefined;
    }
  | {
      /** A request as the API server carried it out, or as it was lost on the way there. */
      readonly kind: "Request";
      readonly process: string;
      readonly sentAt: At;
      readonly method: string;
      readonly path: string;
      readonly body: unknown;
      /** 0: it never arrived. */
      readonly status: number;
      /** What became of the answer. */
      readonly answer: "Arrived" | "Lost" | "Injected";
    }
  | {
      readonly kind: "Delivery";
      readonly process: string;
      readonly what: string;
    }
  | {
      readonly kind: "CloudCall";
      readonly process: string;
      readonly call: string;
      readonly machine: string;
      readonly result: string;
    }
  | {
      /** A receiver is asked to change something around a machine, or to undo it. */
      readonly kind: "Action";
      readonly process: string;
      readonly call: "apply" | "undo";
      readonly name: string;
      readonly departure: string;
      readonly key: string;
    }
  | {
      readonly kind: "Machine";
      readonly what: "Launched" | "Registered" | "Noticed" | "Stopping" | "Gone";
      readonly name: string;
      readonly id: string;
      readonly bornAt: At;
      readonly because: string | undefined;
    }
  | {
      readonly kind: "Fault";
      readonly what: "begins" | "ends";
      readonly index: number;
      readonly name: string;
    }
  | { readonly kind: "Process"; readonly process: string; readonly what: string }
  | { readonly kind: "Person"; readonly what: string }
  | {
      readonly kind: "Notice";
      readonly node: string;
      /** Undefined: it does not end after all. */
      readonly endsInMs: number | undefined;
    }
  | { readonly kind: "Log"; readonly process: string; readonly text: string }
  | { readonly kind: "Calm" }
  | { readonly kind: "End" }
);

/** The one-line text of an event: what a story prints, and what two runs are compared by. */
export function lineOf(event: TraceEvent): string {
  return `${new Date(event.at).toISOString().slice(11, 23)} ${textOf(event)}`;
}

function textOf(event: TraceEvent): string {
  switch (event.kind) {
    case "Change": {
      const { metadata } = event.object;
      return `  store ${event.type} ${event.storage} ${metadata.name} ${metadata.resourceVersion}`;
    }
    case "Request": {
      const body = event.body === undefined ? "" : ` ${JSON.stringify(event.body)}`;
      const answer = event.status === 0 ? "lost on its way" : `${event.status} ${event.answer}`;
      return `${event.process} ${event.method} ${event.path}${body} -> ${answer}`;
    }
    case "Delivery":
      return `  ${event.process} sees ${event.what}`;
    case "CloudCall":
      return `${event.process} cloud ${event.call} ${event.machine} -> ${event.result}`;
    case "Action":
      return `${event.process} action ${event.call} ${event.name} of ${event.departure}`;
    case "Machine":
      return `machine ${event.name} (${event.id.slice(-4)}) ${event.what} ${event.because ?? ""}`;
    case "Fault":
      return `FAULT ${event.name} #${event.index} ${event.what}`;
    case "Process":
      return `PROCESS ${event.process} ${event.what}`;
    case "Person":
      return `PERSON ${event.what}`;
    case "Notice":
      return `CLOUD SAYS ${event.node}: ${noticeText(event.endsInMs)}`;
    case "Log":
      return `  ${event.process} logs ${event.text}`;
    default:
      return event.kind.toUpperCase();
  }
}

function noticeText(endsInMs: number | undefined): string {
  return endsInMs === undefined ? "does not end after all" : `ends in ${endsInMs / 1000} s`;
}
