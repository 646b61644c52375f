import { type Checker, newsMs } from "../checker.ts";
import type { At, TraceEvent } from "../trace.ts";
import {
  type DepartureObject,
  type MachineView,
  marks,
  type NodeObject,
  type View,
} from "../view.ts";

interface Ending {
  readonly departure: DepartureObject;
  readonly machine: MachineView | undefined;
}

export const endedWithEvidence: Checker = {
  name: "ended-with-evidence",
  rule: "released, preempted and withdrawn are said only of machines of which they are true",
  start: () => {
    const machineOf = new Map<string, string>();
    const announced = new Map<string, At>();
    const withdrawn = new Map<string, At>();
    /** The uids of nodes that somebody opened, held, deleted, or whose Departure they did. */
    const touched = new Set<string>();
    return (event, view) => {
      if (event.kind === "Change") for (const uid of touchedBy(event)) touched.add(uid);
      if (event.kind === "Notice") {
        if (event.endsInMs !== undefined) announced.set(event.node, event.at);
        else if (announced.delete(event.node)) withdrawn.set(event.node, event.at);
      }
      if (event.kind === "Machine" && event.what === "Gone") announced.delete(event.name);
      if (event.kind !== "Change" || !event.storage.startsWith("departures.")) return undefined;
      const departure = event.object as DepartureObject;
      const { uid } = departure.metadata;
      const { name } = departure.spec.node;
      if (event.type === "ADDED") machineOf.set(uid, view.machines.get(name)?.id ?? "");
      const { outcome, reason } = departure.status ?? {};
      const before = (event.previous as DepartureObject | undefined)?.status?.outcome;
      if (outcome === undefined || before !== undefined || event.type === "DELETED")
        return undefined;
      const id = departure.status?.machine?.id ?? machineOf.get(uid) ?? "";
      const machine = view.machinesById.get(id);
      if (reason === "CancelledByPerson" && !touched.has(departure.spec.node.uid))
        return `the departure of ${name} counts as cancelled by a person, and nobody did anything`;
      return unproven(
        { departure, machine },
        {
          view,
          announcedAt: announced.get(name),
          unheardAt: unheard(withdrawn.get(name), view),
          outcome,
          reason,
        },
      );
    };
  },
};

/** So long after its start, an agent withdraws what the one before it has reported. */
const withdrawnLateMs = 60_000;

/** A withdrawal of which no agent could tell yet: the machine was rebooting, or its agent dead. */
function unheard(at: At | undefined, view: View): At | undefined {
  if (at === undefined || view.now - at > withdrawnLateMs) return undefined;
  const isAway = (name: string): boolean => name === "reboot" || name === "agent-dead";
  return view.troubledMs({ from: at - 120_000, to: view.now }, isAway) > 0 ? at : undefined;
}

/** Whose departure a change may cancel: by uncordon, by a hold, or by a deletion. */
function touchedBy({ storage, type, object }: TraceEvent & { kind: "Change" }): readonly string[] {
  const { annotations, deletionTimestamp, uid } = object.metadata;
  const isGoing = type === "DELETED" || deletionTimestamp !== undefined;
  if (storage === "nodes") {
    const isOpened =
      annotations?.[marks.departure] !== undefined &&
      (object as NodeObject).spec.unschedulable !== true;
    return isGoing || isOpened || annotations?.[marks.hold] !== undefined ? [uid] : [];
  }
  if (!storage.startsWith("departures.")) return [];
  const { spec } = object as DepartureObject;
  return isGoing || spec.hold === true ? [spec.node.uid] : [];
}

/** A Node is Ready for so long after its machine has gone: the grace period of its kubelet. */
const readyAfterMs = 50_000;

function unproven(
  { departure, machine }: Ending,
  said: {
    readonly view: View;
    readonly announcedAt: At | undefined;
    readonly unheardAt: At | undefined;
    readonly outcome: string;
    readonly reason: string | undefined;
  },
): string | undefined {
  const { name } = departure.spec.node;
  const runs = machine?.state === "Registered" || machine?.state === "Launched";
  const isReleasing = departure.status?.timeline?.some(({ step }) => step === "Releasing") ?? false;
  const releases = said.view.policyUnderWay().instance.release !== "None";
  if (said.outcome === "Planned" && releases && runs)
    return `${name} ended as Planned, and its machine runs`;
  const isTaken = machine !== undefined && !runs && machine.because !== "Released";
  if (said.outcome === "Planned" && isTaken && !isReleasing)
    return `${name} ended as Planned before its release, and others took its machine`;
  // A Node that goes after its machine's end was announced is taken for that end.
  const wasAnnounced = said.announcedAt !== undefined || said.unheardAt !== undefined;
  if (said.outcome === "Preempted" && runs && !wasAnnounced)
    return `${name} ended as Preempted, and its machine runs`;
  const goneMs = runs || machine === undefined ? undefined : said.view.now - machine.since;
  const isGoneNow = (withinMs: number): boolean => goneMs !== undefined && goneMs < withinMs;
  if (said.reason === "NoticeOutlived" && !runs && !isGoneNow(readyAfterMs))
    return `the notice for ${name} counts as outlived, and its machine does not run`;
  if (said.reason !== "NoticeWithdrawn") return undefined;
  // It may have been stopped while its agent told that.
  if (!runs && !isGoneNow(newsMs))
    return `the notice for ${name} counts as withdrawn, and its machine does not run`;
  // Another notice may come while the withdrawal of the one before is written.
  const stands = said.announcedAt !== undefined && said.announcedAt <= said.view.now - newsMs;
  if (stands) return `the notice for ${name} counts as withdrawn, and still stands`;
  return undefined;
}
