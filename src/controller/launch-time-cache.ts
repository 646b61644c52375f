import type { Clock } from "../contracts/clock.ts";
import type { LaunchTimeReading, LaunchTimes } from "../contracts/cloud/instances.ts";
import type { Telemetry } from "../contracts/telemetry.ts";
import type { NodeFacts } from "../core/cluster/node.ts";
import { type Policy, selectPolicy } from "../core/policy/policy.ts";
import { type Instant, type Millis, millis, minutes, seconds } from "../core/time/time.ts";
import type { LastcallError } from "../errors.ts";

export interface LaunchTimeCacheOptions {
  readonly launchTimes: LaunchTimes;
  readonly clock: Clock;
  readonly telemetry: Pick<Telemetry, "log" | "metrics">;
  /** Called when an answer came that nobody had waited for. */
  readonly onNews: () => void;
}

/** The cloud is asked no more often than this, however many machines come one after another. */
const paceMs: Millis = seconds(5);
/** So long the plan waits for the launch time of a machine that it sees for the first time. */
const patienceMs: Millis = seconds(8);
/** A machine whose launch time the cloud did not tell is asked for again after this. */
const untoldMs: Millis = minutes(10);
/** After a fault: half a minute, doubling up to as long. */
const firstPauseMs: Millis = seconds(30);

/** What is known of one machine in one boot. */
interface Entry {
  readonly bornAt: Instant | undefined;
  /** On the monotonic clock; infinite for what is known. */
  readonly askAgainAt: number;
}

/**
 * The launch times of the machines behind the nodes, as the cloud tells them. Each machine is asked
 * for once in each of its boots. Where the cloud does not tell, the Node's own age counts, and the
 * plan says so. Only the planned side waits for an answer, and not for long.
 */
export class LaunchTimeCache {
  readonly #options: LaunchTimeCacheOptions;
  #entries = new Map<string, Entry>();
  #asking: Promise<void> | undefined;
  #askedAt = Number.NEGATIVE_INFINITY;
  #failures = 0;
  #waiting = 0;

  constructor(options: LaunchTimeCacheOptions) {
    this.#options = options;
  }

  /** Asks about the machines that are seen for the first time, and waits a while for the answer. */
  async learn(
    view: { readonly nodes: readonly NodeFacts[]; readonly policies: readonly Policy[] },
    signal: AbortSignal,
  ): Promise<void> {
    const planned = view.nodes.filter((node) => isPlanned(node, view.policies));
    this.#forgetOthers(planned);
    this.#askAbout(planned, signal);
    if (planned.some((node) => this.#isNew(node))) await this.#waitFor(planned, signal);
  }

  /** The nodes, each with its machine's launch time where it is known. */
  withKnownLaunchTimes(nodes: readonly NodeFacts[]): readonly NodeFacts[] {
    return nodes.map((node) => this.#withLaunchTime(node));
  }

  #withLaunchTime(node: NodeFacts): NodeFacts {
    const bornAt = this.#entries.get(keyOf(node))?.bornAt;
    return bornAt === undefined ? node : { ...node, instanceBornAt: bornAt };
  }

  #isNew(node: NodeFacts): boolean {
    return !this.#entries.has(keyOf(node));
  }

  #isDue(node: NodeFacts): boolean {
    const entry = this.#entries.get(keyOf(node));
    return entry === undefined || entry.askAgainAt <= this.#options.clock.monotonic();
  }

  /** One question at a time; it goes on whether or not anybody waits. */
  #askAbout(nodes: readonly NodeFacts[], signal: AbortSignal): void {
    if (this.#asking !== undefined) return;
    const due = nodes.filter((node) => this.#isDue(node));
    if (due.length === 0) return;
    this.#asking = this.#ask(due, signal)
      .catch(() => undefined)
      .finally(() => {
        this.#asking = undefined;
        if (this.#waiting === 0 && !signal.aborted) this.#options.onNews();
      });
  }

  /** A machine that came while a question was under way is in the next one. */
  async #waitFor(nodes: readonly NodeFacts[], signal: AbortSignal): Promise<void> {
    const enough = new AbortController();
    const { clock } = this.#options;
    const limit = clock.sleep(patienceMs, AbortSignal.any([signal, enough.signal]));
    let isOver = false;
    const over = limit
      .catch(() => undefined)
      .then(() => {
        isOver = true;
      });
    this.#waiting += 1;
    try {
      while (!isOver && nodes.some((node) => this.#isNew(node))) {
        this.#askAbout(nodes, signal);
        await Promise.race([this.#asking, over]);
      }
    } finally {
      this.#waiting -= 1;
      enough.abort();
    }
    signal.throwIfAborted();
  }

  async #ask(nodes: readonly NodeFacts[], signal: AbortSignal): Promise<void> {
    const { launchTimes, clock } = this.#options;
    const pauseMs = this.#askedAt + paceMs - clock.monotonic();
    if (pauseMs > 0) await clock.sleep(millis(pauseMs), signal);
    this.#askedAt = clock.monotonic();
    const providerIDs = nodes.flatMap(({ providerID }) => providerID ?? []);
    this.#note(nodes, await launchTimes.launchTimesOf(providerIDs, signal));
  }

  #note(nodes: readonly NodeFacts[], { bornAt, faults }: LaunchTimeReading): void {
    const now = this.#options.clock.monotonic();
    const failed = faults.length > 0;
    this.#failures = failed ? this.#failures + 1 : 0;
    const pauseMs = failed
      ? Math.min(untoldMs, firstPauseMs * 2 ** (this.#failures - 1))
      : untoldMs;
    for (const node of nodes) {
      const told = bornAt.get(node.providerID ?? "");
      const askAgainAt = told === undefined ? now + pauseMs : Number.POSITIVE_INFINITY;
      this.#entries.set(keyOf(node), { bornAt: told, askAgainAt });
    }
    this.#complain(faults);
  }

  /** Every fault is counted; of a row of them only the first is said. */
  #complain(faults: readonly LastcallError[]): void {
    const { log, metrics } = this.#options.telemetry;
    for (const { code } of faults) metrics.count("lastcall_errors_total", { code });
    const first = faults[0];
    if (first === undefined || this.#failures > 1) return;
    const instead = "the age of the Node object counts instead";
    log.warn("launch-times-unknown", { code: first.code, error: first.message, instead });
  }

  #forgetOthers(nodes: readonly NodeFacts[]): void {
    if (this.#entries.size <= nodes.length) return;
    const present = new Set(nodes.map(keyOf));
    for (const key of this.#entries.keys()) if (!present.has(key)) this.#entries.delete(key);
  }
}

/**
 * A machine is told by its place and its boot: a place is taken over, and a stop and a start count.
 */
function keyOf({ providerID, bootID }: NodeFacts): string {
  return `${providerID} ${bootID}`;
}

function isPlanned(node: NodeFacts, policies: readonly Policy[]): boolean {
  if (node.providerID === undefined) return false;
  return selectPolicy(node, policies)?.policy.lifetime.maxMs !== undefined;
}
