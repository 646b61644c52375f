import type { Clock } from "../contracts/clock.ts";
import type { LaunchTimeReading, LaunchTimes } from "../contracts/cloud.ts";
import type { Telemetry } from "../contracts/telemetry.ts";
import type { NodeFacts } from "../core/cluster/node.ts";
import { lifetimeLimit, type Policy, selectPolicy } from "../core/policy/policy.ts";
import { type Instant, type Millis, millis, minutes, seconds } from "../core/time/time.ts";
import type { LastcallError } from "../errors.ts";

export interface LaunchTimeCacheOptions {
  readonly launchTimes: LaunchTimes;
  readonly clock: Clock;
  readonly telemetry: Pick<Telemetry, "log" | "metrics">;
  /** Called when a response arrives that no pass is waiting for. */
  readonly onNews: () => void;
}

/** The shortest interval between requests to the cloud, however many machines appear one by one. */
const paceMs: Millis = seconds(5);
/** How long the plan waits for the launch time of a new machine. */
const patienceMs: Millis = seconds(8);
/** When to retry a machine whose launch time the cloud did not return. */
const recheckMs: Millis = minutes(10);
/** The first pause after an error; it doubles up to `recheckMs`. */
const firstPauseMs: Millis = seconds(30);

/** What is known about one machine in one boot. */
interface CachedLaunchTime {
  readonly bornAt: Instant | undefined;
  /** Monotonic; infinite once the launch time is known. */
  readonly askAgainAt: number;
}

/**
 * The launch times of the machines behind the nodes, as reported by the cloud. Each machine is
 * looked up once per boot. If the cloud returns no launch time, the age of the Node object is
 * used instead, and the plan says so. Only planned departures wait for a response, and not for
 * long.
 */
export class LaunchTimeCache {
  readonly #options: LaunchTimeCacheOptions;
  #entries = new Map<string, CachedLaunchTime>();
  #asking: Promise<void> | undefined;
  #askedAt = Number.NEGATIVE_INFINITY;
  #failures = 0;
  #waiting = 0;

  constructor(options: LaunchTimeCacheOptions) {
    this.#options = options;
  }

  /** Looks up machines that are new, and waits a while for the response. */
  async learn(
    view: { readonly nodes: readonly NodeFacts[]; readonly policies: readonly Policy[] },
    signal: AbortSignal,
  ): Promise<void> {
    const planned = view.nodes.filter((node) => isPlanned(node, view.policies));
    this.#forgetOthers(planned);
    this.#askAbout(planned, signal);
    if (planned.some((node) => this.#isNew(node))) await this.#waitFor(planned, signal);
  }

  /** The nodes, each with its machine's launch time if known. */
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

  /** Sends one request at a time, which continues whether or not anybody waits for it. */
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

  /** Waits up to `patienceMs`. A machine that appears during a request is in the next one. */
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
      ? Math.min(recheckMs, firstPauseMs * 2 ** (this.#failures - 1))
      : recheckMs;
    for (const node of nodes) {
      const told = bornAt.get(node.providerID ?? "");
      const askAgainAt = told === undefined ? now + pauseMs : Number.POSITIVE_INFINITY;
      this.#entries.set(keyOf(node), { bornAt: told, askAgainAt });
    }
    this.#complain(faults);
  }

  /** Counts every error, and logs only the first of consecutive failures. */
  #complain(faults: readonly LastcallError[]): void {
    const { log, metrics } = this.#options.telemetry;
    for (const { code } of faults) metrics.count("lastcall_errors_total", { code });
    const first = faults[0];
    if (first === undefined || this.#failures > 1) return;
    const instead = "the age of the Node object is used instead";
    log.warn("launch-times-unknown", { code: first.code, error: first.message, instead });
  }

  #forgetOthers(nodes: readonly NodeFacts[]): void {
    if (this.#entries.size <= nodes.length) return;
    const present = new Set(nodes.map(keyOf));
    for (const key of this.#entries.keys()) if (!present.has(key)) this.#entries.delete(key);
  }
}

/**
 * Identifies a machine by its providerID and boot: another machine may take over a providerID, and
 * a stop and start changes the launch time.
 */
function keyOf({ providerID, bootID }: NodeFacts): string {
  return `${providerID} ${bootID}`;
}

function isPlanned(node: NodeFacts, policies: readonly Policy[]): boolean {
  if (node.providerID === undefined) return false;
  const policy = selectPolicy(node, policies)?.policy;
  return policy !== undefined && lifetimeLimit(node, policy) !== undefined;
}
