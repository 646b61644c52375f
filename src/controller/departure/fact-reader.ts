import { backoffMs } from "../../core/chance/chance.ts";
import type { AttachedVolume, PodFacts } from "../../core/cluster/pod.ts";
import { cloudDeadline, type Departure } from "../../core/departure/departure.ts";
import { returningPods } from "../../core/drain/placeholder-plan.ts";
import type { Memory } from "../../core/next/memory.ts";
import { providerOf } from "../../core/next/provider-id.ts";
import { longestPause } from "../../core/next/retry-pause.ts";
import type {
  DepartureScene,
  FactName,
  FactTypes,
  Need,
  SceneFact,
  SceneFacts,
} from "../../core/next/scene.ts";
import type { ReleaseMode } from "../../core/policy/policy.ts";
import { releaseModeOf } from "../../core/policy/release-answer.ts";
import { type Millis, millis, seconds } from "../../core/time/time.ts";
import { LastcallError } from "../../errors.ts";
import { findUnplacedPods } from "../capacity-search.ts";
import { releaserOf } from "../release-checks.ts";
import type { DepartureOptions } from "./departure-options.ts";
import { failingSince, faultOf } from "./refusals.ts";

/** What the facts are about, as it is when one is read. */
export interface ReadSubject {
  readonly scene: () => DepartureScene;
  readonly memory: () => Memory;
  /** A fact has changed. Those that change often may be evaluated together. */
  readonly onFact: (name: FactName) => void;
  readonly onFault: (name: FactName, error: unknown) => void;
}

interface Reader {
  readonly stop: AbortController;
  number: number;
  isReading: boolean;
  faults: number;
  /** When it last failed, and how long it then rests (monotonic). */
  failed: { readonly atMs: number; readonly restMs: Millis } | undefined;
  /** When it is looked at again for that. */
  wakesAtMs: number | undefined;
}

type FollowedName = "pods" | "volumes" | "placeholders";
type ReadName = Exclude<FactName, FollowedName>;

function isFollowed(name: FactName): name is FollowedName {
  return name === "pods" || name === "volumes" || name === "placeholders";
}

/** How often it is asked whether the API server refuses to list the pods. */
const refusalEveryMs: Millis = seconds(1);

/**
 * Knows what a departure needs to know: reads it, or follows it, for as long as it is needed. What
 * is no longer needed is no longer known, so that nothing is decided on what may have changed
 * since.
 */
export class FactReader {
  readonly #options: DepartureOptions;
  readonly #subject: ReadSubject;
  readonly #readers = new Map<FactName, Reader>();
  #facts: SceneFacts = {};

  constructor(options: DepartureOptions, subject: ReadSubject) {
    this.#options = options;
    this.#subject = subject;
  }

  get facts(): SceneFacts {
    return this.#facts;
  }

  /** Starts, repeats and ends reads, so that these are known; `number` is the evaluation's. */
  want(needs: readonly Need[], number: number): void {
    const since = new Map<FactName, number>();
    for (const need of needs) {
      since.set(need.name, Math.max(need.since, since.get(need.name) ?? need.since));
    }
    for (const [name, reader] of this.#readers) {
      if (since.has(name)) continue;
      reader.stop.abort("no longer needed");
      this.#readers.delete(name);
      this.#set(name, undefined);
    }
    for (const [name, least] of since) this.#read(name, { since: least, number });
  }

  close(): void {
    for (const { stop } of this.#readers.values()) stop.abort("closed");
    this.#readers.clear();
  }

  #read(name: FactName, about: { readonly since: number; readonly number: number }): void {
    const fact = this.#facts[name];
    const reader = this.#readers.get(name) ?? newReader();
    this.#readers.set(name, reader);
    if (reader.isReading) return;
    const restMs = this.#restOf(reader);
    if (restMs > 0) {
      this.#wakeAfter(millis(restMs), { name, reader });
      return;
    }
    const isKnown = fact?.kind === "Known" && (isFollowed(name) || fact.number >= about.since);
    if (isKnown) return;
    reader.isReading = true;
    reader.number = about.number;
    const isCurrent = () => this.#readers.get(name) === reader;
    const tell = (value: FactTypes[FactName]) => {
      if (!isCurrent()) return;
      [reader.isReading, reader.faults, reader.failed] = [false, 0, undefined];
      this.#set(name, { kind: "Known", value, number: reader.number });
      this.#subject.onFact(name);
    };
    const reading = isFollowed(name)
      ? this.#follow(name, reader, tell)
      : this.#readOnce(name, reader.stop.signal).then(tell);
    reading.catch((error: unknown) => {
      if (isCurrent()) this.#failed(name, reader, error);
    });
  }

  #failed(name: FactName, reader: Reader, error: unknown): void {
    const { clock, rng } = this.#options;
    const { departure } = this.#subject.scene();
    const before = this.#facts[name];
    reader.isReading = false;
    reader.faults += 1;
    const restMs = backoffMs(reader.faults - 1, rng, {
      mostMs: longestPause(departure, clock.now()),
    });
    reader.failed = { atMs: clock.monotonic(), restMs };
    const fault = faultOf(error);
    const former = before?.kind === "Failed" ? before : undefined;
    const sinceMs = failingSince(fault, { before: former, nowMs: clock.monotonic() });
    this.#set(name, { kind: "Failed", fault, sinceMs });
    this.#subject.onFault(name, error);
    this.#subject.onFact(name);
  }

  /** How long it rests on: a notice that has arrived since shortens that. */
  #restOf({ failed }: Reader): number {
    if (failed === undefined) return 0;
    const { departure } = this.#subject.scene();
    const { clock } = this.#options;
    const restMs = Math.min(failed.restMs, longestPause(departure, clock.now()));
    return failed.atMs + restMs - clock.monotonic();
  }

  /** The next evaluation reads again. */
  #wakeAfter(
    span: Millis,
    { name, reader }: { readonly name: FactName; readonly reader: Reader },
  ): void {
    const { clock } = this.#options;
    const atMs = clock.monotonic() + span;
    if (reader.wakesAtMs !== undefined && reader.wakesAtMs <= atMs) return;
    reader.wakesAtMs = atMs;
    clock.sleep(span, reader.stop.signal).then(
      () => {
        if (reader.wakesAtMs === atMs) reader.wakesAtMs = undefined;
        this.#subject.onFact(name);
      },
      () => undefined,
    );
  }

  #set(name: FactName, fact: SceneFact<unknown> | undefined): void {
    this.#facts = { ...this.#facts, [name]: fact };
  }

  async #readOnce(name: ReadName, signal: AbortSignal): Promise<FactTypes[FactName]> {
    const { pods, capacity, writer, readNode, gates, askAboutRelease, view } = this.#options;
    const { departure, policy, node, ...scene } = this.#subject.scene();
    const { target, outlook } = this.#subject.memory();
    const known = (one: "pods" | "podsNow"): readonly PodFacts[] => {
      const fact = this.#facts[one];
      return fact?.kind === "Known" ? fact.value : [];
    };
    switch (name) {
      case "nodeNow":
        return { node: await readNode(departure.node.name) };
      case "isLive":
        return writer.isLive(departure);
      case "podsNow":
        return pods.list(departure.node.name);
      case "budgets":
        return pods.budgets();
      case "placements": {
        const placed = await capacity.withVolumes(known("pods"));
        return new Map(placed.map(({ uid, placement }) => [uid, placement]));
      }
      case "unplaced": {
        const leaving = returningPods(outlook?.pods ?? [], known("podsNow"));
        const fleet = { ...view(), node: departure.node.name };
        return findUnplacedPods(leaving, { scene: fleet, capacity }, signal);
      }
      case "machine": {
        const mode =
          departure.status.machine?.mode ?? releaseModeOf(labelsOf(node), policy.instance);
        const asked = this.#machineOf(departure, mode);
        return releaserOf(asked, this.#options.releaserFor).describe(asked.providerID, signal);
      }
      case "machineBehind": {
        const mode = releaseModeOf({ labels: {} }, policy.instance);
        // A cloud that must not release the machine may be asked about it.
        const asked = this.#machineOf(departure, mode === "None" ? "Recreate" : mode);
        const releaser = this.#options.releaserFor(asked);
        return releaser?.describe(asked.providerID, signal) ?? "NobodyToAsk";
      }
      case "releasable": {
        if (target === undefined) throw unidentified(departure);
        return askAboutRelease(
          { node: target, mode: releaseModeOf(target, policy.instance) },
          signal,
        );
      }
      case "gates": {
        const newest = scene.newestPolicy();
        const answers = await gates.ask([{ policy: newest, nodes: [departure.node.name] }], signal);
        return { answer: answers[newest.name] };
      }
    }
  }

  #machineOf(departure: Departure, mode: ReleaseMode) {
    const subject = { scene: this.#subject.scene(), memory: this.#subject.memory() };
    const providerID = providerOf(subject);
    if (providerID === undefined) throw unidentified(departure);
    return { providerID, mode };
  }

  /** Resolves once it is known, and tells each later value until the reader stops. */
  async #follow(
    name: FollowedName,
    reader: Reader,
    tell: (value: FactTypes[FactName]) => void,
  ): Promise<void> {
    const { pods, placeholders, attachments, clock } = this.#options;
    const { departure } = this.#subject.scene();
    const { signal } = reader.stop;
    switch (name) {
      case "pods": {
        const dueAt = cloudDeadline(departure);
        const longestPauseMs = longestPause(departure, clock.now());
        const found = pods.follow(departure.node.name, { dueAt, longestPauseMs, signal });
        const listed = new AbortController();
        void this.#tellRefusals(found, AbortSignal.any([signal, listed.signal]));
        // What is said of a list that has failed for good would replace what the next one shows.
        await found.synced().finally(() => listed.abort());
        found.onChange(() => tell(found.pods()));
        tell(found.pods());
        return;
      }
      case "placeholders": {
        const found = placeholders.follow(departure.uid, signal);
        await found.synced();
        found.onChange(() => tell(found.placeholders()));
        tell(found.placeholders());
        return;
      }
      case "volumes": {
        const found = attachments.follow(departure.node.name, signal);
        const claims = new Map<string, string | undefined>();
        await found.synced();
        let changes = 0;
        // Claims are looked up meanwhile: a lookup that a change has overtaken tells nothing.
        const tellNewest = async (): Promise<void> => {
          for (let before = -1; before !== changes; ) {
            before = changes;
            const named = await this.#withClaims(found.volumes(), claims);
            if (before === changes) tell(named);
          }
        };
        found.onChange(() => {
          changes += 1;
          void tellNewest().catch(() => undefined);
        });
        await tellNewest();
      }
    }
  }

  /** While the list of pods is refused, the refusal is what is known of them. */
  async #tellRefusals(
    found: { refusal(): string | undefined },
    signal: AbortSignal,
  ): Promise<void> {
    const { clock } = this.#options;
    let sinceMs: number | undefined;
    while (!signal.aborted) {
      await clock.sleep(refusalEveryMs, signal).catch(() => undefined);
      if (signal.aborted) return;
      const refusal = found.refusal();
      sinceMs = refusal === undefined ? undefined : (sinceMs ?? clock.monotonic());
      const fault = { code: "API_ANSWER_INVALID", message: refusal ?? "", retryable: true };
      this.#set("pods", sinceMs === undefined ? undefined : { kind: "Failed", fault, sinceMs });
      this.#subject.onFact("pods");
    }
  }

  /** Looks up each volume's claim once, because a volume is never bound to another claim. */
  async #withClaims(
    volumes: readonly AttachedVolume[],
    claims: Map<string, string | undefined>,
  ): Promise<readonly AttachedVolume[]> {
    const { attachments } = this.#options;
    return Promise.all(
      volumes.map(async (one) => {
        if (one.volume === undefined) return one;
        if (!claims.has(one.volume)) {
          claims.set(one.volume, await attachments.claimOf(one.volume));
        }
        return { ...one, claim: claims.get(one.volume) };
      }),
    );
  }
}

function newReader(): Reader {
  const stop = new AbortController();
  return { stop, number: 0, isReading: false, faults: 0, failed: undefined, wakesAtMs: undefined };
}

function labelsOf(node: DepartureScene["node"]) {
  return { labels: node?.labels ?? {} };
}

function unidentified({ name, node }: Departure): LastcallError {
  const problem = `Cannot look up the machine of ${node.name}: the Departure ${name} has no providerID`;
  return new LastcallError("NOT_FOUND", problem);
}
