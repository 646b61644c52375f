import { type Instant, parseHttpDate } from "../time/time.ts";
import type { NoticeCause } from "./notice.ts";

/** What the message of a condition or an Event of AKS says. */
export type AksMessage =
  | {
      readonly kind: "Event";
      /** "Leaves nothing": the machine only stands still. Absent: the message names none. */
      readonly cause?: NoticeCause | "LeavesNothing" | undefined;
      /** It has begun: the time that it names is over, whatever it is. */
      readonly hasBegun: boolean;
      readonly namedAt?: Instant | undefined;
      readonly eventId?: string | undefined;
      /** Which it is, where it has no id. */
      readonly gist: string;
    }
  /** The node could not ask its own metadata: it knows nothing, neither of a notice nor of its end. */
  | { readonly kind: "Fault" };

const causes: Readonly<Record<string, NoticeCause | "LeavesNothing">> = {
  preempt: "SpotInterruption",
  terminate: "LifecycleHook",
  reboot: "ScheduledMaintenance",
  redeploy: "ScheduledMaintenance",
  freeze: "LeavesNothing",
};

/**
 * Messages of AKS' node-problem-detector, as `Preempt Scheduled: Mon, 03 Aug 2026 08:18:16 GMT.
 * DurationInSeconds: -1. … EventId: 218E…`, `Started. DurationInSeconds: -1.`,
 * `SpotRebalanceRecommendation Advisory: .` and `IMDS query failed, exit code: 28`. Any other text is of an
 * event whose time is not known: a notice fails open. Sources: azure-docs "Node Problem Detector (NPD) in
 * AKS nodes", node-problem-detector's custom plugin monitor.
 */
export function readAksMessage(message: string): AksMessage {
  const [lead = "", type = "", state = ""] =
    /^\s*(?:(\w+)\s+)?(Scheduled|Started|Advisory)\b/i.exec(message) ?? [];
  if (lead === "" && isFault.test(message)) return { kind: "Fault" };
  const isAdvice = state.toLowerCase() === "advisory";
  const hasBegun = state.toLowerCase() === "started";
  const told = isAdvice || hasBegun ? undefined : dateIn(message);
  return {
    kind: "Event",
    cause: isAdvice ? "RebalanceRecommendation" : causes[type.toLowerCase()],
    hasBegun,
    namedAt: parseHttpDate(told ?? ""),
    eventId: /EventId: ([0-9A-Za-z-]{8,80})/i.exec(message)?.[1],
    gist: isAdvice ? "advisory" : (told ?? (hasBegun ? "started" : "")),
  };
}

const isFault = /\b(?:query failed|timed? ?out|exit code)\b/i;

function dateIn(message: string): string | undefined {
  const date = /[A-Z][a-z]{2},\s+\d{1,2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} (?:GMT|UTC)/;
  return date.exec(message)?.[0].replace(/\s+/g, " ").replace("UTC", "GMT");
}
