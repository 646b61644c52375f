import type { KubeApi } from "../../contracts/kube-api.ts";
import type { Departure, DepartureStatus } from "../../core/departure/departure.ts";
import { controllerLine } from "../../core/plan/headline.ts";
import { counted } from "../../core/reason/counted.ts";
import { inEnglish } from "../../core/reason/english.ts";
import { formatDuration, type Millis, millis } from "../../core/time/time.ts";
import { departuresPath } from "../../kube/object/api-call.ts";
import { translateDeparture } from "../../kube/object/translate-departure.ts";
import { Reflector } from "../../kube/watch/reflector.ts";
import { ClusterClock } from "../cluster/connect.ts";
import { readOperation } from "../cluster/operation-watch.ts";
import type { CommandIo } from "../command-line/command.ts";

/** A departure whose end is awaited. */
export interface Awaited {
  readonly node: string;
  readonly name: string;
  readonly uid: string;
}

export interface WaitSource {
  readonly api: KubeApi;
  /** Where to look for the controller if the caller may not list all namespaces. */
  readonly namespace: string;
  readonly io: CommandIo;
  readonly quiet: boolean;
  readonly timeout: Millis | undefined;
}

export interface WaitEnd {
  readonly exitCode: number;
  /** What is known of each departure, by its uid. */
  readonly departures: ReadonlyMap<string, Departure>;
}

/** Why waiting ended. */
type Stop = "AllEnded" | "Interrupted" | "TimedOut";

/** Follows the departures until all have ended; they continue whatever becomes of this process. */
export async function waitForEnd(
  awaited: readonly Awaited[],
  source: WaitSource,
): Promise<WaitEnd> {
  const watched = watchDepartures(source);
  const told = new Map<string, string>();
  const tell = () => {
    for (const one of awaited) {
      const text = progressOf(one, watched.current(one));
      if (told.get(one.uid) === text) continue;
      told.set(one.uid, text);
      if (!source.quiet) source.io.err(`lastcall: ${text}\n`);
    }
  };
  try {
    await tellWhoLeads(source);
    await watched.synced;
    const stop = await watched.until(() => {
      tell();
      return awaited.every((one) => hasEnded(watched.current(one)));
    });
    if (stop !== "AllEnded") tellWhatContinues(stop, { awaited, watched, source });
    return { exitCode: exitCodeOf(stop, awaited.map(watched.current)), departures: watched.seen };
  } catch (error) {
    if (!source.io.signal.aborted) throw error;
    tellWhatContinues("Interrupted", { awaited, watched, source });
    return { exitCode: 130, departures: watched.seen };
  } finally {
    await watched.close();
  }
}

type WatchedDepartures = ReturnType<typeof watchDepartures>;

/** A live view of the Departures; undefined for one that was deleted without an outcome. */
function watchDepartures({ api, io, timeout }: WaitSource) {
  const over = new AbortController();
  const seen = new Map<string, Departure>();
  let isLate = false;
  let changed = Promise.withResolvers<void>();
  const wake = () => {
    changed.resolve();
    changed = Promise.withResolvers();
  };
  const reflector = new Reflector({
    ...{ api, clock: io.clock, rng: io.rng, path: departuresPath },
    translate: translateDeparture,
    onChange: (change) => {
      if (change.kind === "Set" && change.item !== undefined) seen.set(change.key, change.item);
      wake();
    },
  });
  const signal = AbortSignal.any([io.signal, over.signal]);
  const running = reflector.run(signal);
  // Awaited later; until then its rejection must not count as unhandled.
  running.catch(() => undefined);
  const late = async () => {
    if (timeout === undefined) return;
    await io.clock.sleep(timeout, signal).catch(() => undefined);
    isLate = !signal.aborted;
    wake();
  };
  const waiting = late();
  io.signal.addEventListener("abort", wake);
  return {
    seen,
    synced: reflector.synced,
    current: ({ uid }: Awaited): Departure | undefined => {
      const last = seen.get(uid);
      // A deleted one keeps its outcome: the controller removes its finalizer last.
      return last?.status.phase === "Ended" ? last : reflector.items().get(uid);
    },
    until: async (isDone: () => boolean): Promise<Stop> => {
      for (;;) {
        const next = changed.promise;
        if (isDone()) return "AllEnded";
        if (io.signal.aborted) return "Interrupted";
        if (isLate) return "TimedOut";
        await Promise.race([next, running]);
      }
    },
    close: async () => {
      io.signal.removeEventListener("abort", wake);
      over.abort();
      await Promise.allSettled([running, waiting]);
    },
  };
}

/** Without a controller nobody carries the departure out, and this would wait in vain. */
async function tellWhoLeads({ api, io, namespace, quiet }: WaitSource): Promise<void> {
  const clock = new ClusterClock(api, io.clock);
  await clock.find(io.signal);
  const { operation } = await readOperation({ api, namespace }, { at: clock.now() });
  const { kind } = operation.controller;
  if (quiet || kind === "Leads" || kind === "Unreadable") return;
  io.err(`lastcall: ${inEnglish(controllerLine(operation).says)}\n`);
}

/** Deleted counts: whoever did that has withdrawn the request before it began. */
function hasEnded(departure: Departure | undefined): boolean {
  return departure === undefined || departure.status.phase === "Ended";
}

function progressOf({ node, name }: Awaited, departure: Departure | undefined): string {
  if (departure === undefined) return `${node}: departure ${name} was deleted`;
  const { phase, outcome, message } = departure.status;
  const standing =
    phase === "Ended" ? `Ended, ${outcome}` : `${phase}${podsLeft(departure.status)}`;
  return `${node} ${standing}${message === undefined ? "" : `: ${message}`}`;
}

function podsLeft({ phase, drain }: DepartureStatus): string {
  if (phase !== "Draining" || drain === undefined) return "";
  return `, ${drain.left} of ${counted(drain.total, "pod")} still there`;
}

/** So that nobody takes Ctrl-C for a way to keep the node. */
function tellWhatContinues(stop: Exclude<Stop, "AllEnded">, about: DepartWait): void {
  const { awaited, watched, source } = about;
  const open = awaited.filter((one) => !hasEnded(watched.current(one)));
  const { timeout = millis(0) } = source;
  const why =
    stop === "Interrupted" ? "interrupted" : `--timeout ${formatDuration(timeout)} is over`;
  const verb = open.length === 1 ? "is still to leave" : "are still to leave";
  const nodes = open.length > namedNodes ? `${open.length} nodes` : open.map(nodeOf).join(", ");
  const names = open.length > namedNodes ? "NAME" : open.map(({ name }) => name).join(" ");
  source.io.err(
    `lastcall: no longer waiting, ${why}: ${nodes} ${verb}, follow with kubectl get departures -w, withdraw with kubectl delete departure ${names}\n`,
  );
}

interface DepartWait {
  readonly awaited: readonly Awaited[];
  readonly watched: WatchedDepartures;
  readonly source: WaitSource;
}

/** Of more nodes only their number is said. */
const namedNodes = 5;

function nodeOf({ node }: Awaited): string {
  return node;
}

/** As scripts need it: 0 only if every node left as it should. */
function exitCodeOf(stop: Stop, departures: readonly (Departure | undefined)[]): number {
  if (stop === "Interrupted") return 130;
  const outcomes = departures.map((one) => one?.status.outcome);
  if (stop === "TimedOut" || outcomes.includes("Failed")) return 1;
  return outcomes.every((outcome) => outcome === "Planned") ? 0 : 3;
}
