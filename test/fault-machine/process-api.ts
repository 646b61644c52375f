import type {
  KubeAnswer,
  KubeApi,
  KubeObject,
  KubeRequest,
  KubeWatchEvent,
  KubeWatchRequest,
} from "../../src/contracts/kube-api.ts";
import { seededRng } from "../../src/core/chance/chance.ts";
import { millis, seconds } from "../../src/core/time/time.ts";
import { LastcallError } from "../../src/errors.ts";
import { hashOf } from "../../src/sim/cloud/model-machine.ts";
import type { ProcessClock } from "./process-clock.ts";
import type { ApiEffect, Surroundings } from "./surroundings.ts";

/** So many requests of one process at one instant are a loop without a pause. */
const busyLoop = 3000;

/** How long a caller waits for an answer unless it says otherwise, as `HttpKubeApi` does. */
const usualTimeoutMs = seconds(30);
/** A constant abort reason: the default one captures a stack trace each time. */
const answered = "answered";

interface ProcessApiOptions {
  readonly stage: Surroundings;
  readonly process: string;
  readonly clock: ProcessClock;
  /** Called before and after each write; a fault may kill the process there. */
  readonly onWrite: (when: "Before" | "After", path: string) => void;
  readonly onBusyLoop: () => void;
}

/** The API server as one process reaches it, through whatever the faults make of the network. */
export class ProcessApi implements KubeApi {
  readonly #options: ProcessApiOptions;
  readonly #rng: () => number;
  #instant = 0;
  #sentAtInstant = 0;

  constructor(options: ProcessApiOptions) {
    this.#options = options;
    this.#rng = seededRng(hashOf(`${options.stage.world.seed}|${options.process}|network`));
  }

  async send(request: KubeRequest): Promise<KubeAnswer> {
    const { clock, onWrite } = this.#options;
    await clock.awake();
    request.signal?.throwIfAborted();
    this.#countInstant();
    const { bodyAtTurn, ...asked } = request;
    const sent = bodyAtTurn === undefined ? asked : { ...asked, body: bodyAtTurn() };
    const writes = request.method !== "GET";
    if (writes) onWrite("Before", request.path);
    await clock.awake();
    const { method, path, body } = sent;
    const effect = this.#options.stage.apiEffect({
      process: this.#options.process,
      method,
      path,
      body,
    });
    const carried = this.#carry(sent, effect);
    const isLate = effect?.kind === "DelayBefore" || effect?.kind === "DelayAfter";
    const answer = await (isLate ? this.#awaited(sent, carried) : carried);
    if (writes) onWrite("After", request.path);
    await clock.awake();
    return answer;
  }

  /**
   * As `HttpKubeApi`: a caller gives up after a while, or when it is told to. What it has sent is
   * carried out all the same, beside whatever it sends next.
   */
  async #awaited(request: KubeRequest, carried: Promise<KubeAnswer>): Promise<KubeAnswer> {
    const { method, path, signal, timeoutMs = usualTimeoutMs } = request;
    const over = new AbortController();
    const giveUp = (): void => over.abort(signal?.reason);
    signal?.addEventListener("abort", giveUp, { once: true });
    const expired = this.#options.stage.clock.sleep(timeoutMs, over.signal).then(() => {
      throw connectionLost(method, path);
    });
    try {
      return await Promise.race([carried, expired]);
    } finally {
      signal?.removeEventListener("abort", giveUp);
      carried.catch(() => {});
      expired.catch(() => {});
      over.abort(answered);
    }
  }

  async #carry(request: KubeRequest, effect: ApiEffect | undefined): Promise<KubeAnswer> {
    const { stage, process } = this.#options;
    const { method, path, body, signal } = request;
    const { latencyMs = 0 } = stage.world;
    // A request that has left its process is not stopped any more.
    if (latencyMs > 0) await stage.clock.sleep(millis(Math.ceil(this.#rng() * latencyMs)));
    const sentAt = stage.clock.now();
    const told = { process, sentAt, method, path, body };
    const pause = async (ms: number): Promise<void> => {
      await stage.clock.sleep(seconds(ms / 1000), signal);
    };
    if (effect?.kind === "LostBefore") {
      stage.tell({ kind: "Request", ...told, status: 0, answer: "Lost" });
      await pause(1000);
      throw connectionLost(method, path);
    }
    if (effect?.kind === "DelayBefore") {
      // A caller that gives up does not stop what is already on its way.
      await stage.clock.sleep(seconds(effect.ms / 1000));
    }
    if (effect?.kind === "Answer") {
      const { status, message } = effect;
      stage.tell({ kind: "Request", ...told, status, answer: "Injected" });
      return { status, body: statusBody(status, message), serverAt: stage.serverTime() };
    }
    const own = { ...stage.cluster.api.handle(request), serverAt: stage.serverTime() };
    const answer = effect?.kind === "Alters" ? effect.alter(own) : own;
    const isLost = effect?.kind === "LostAfter";
    const { status } = answer;
    stage.tell({ kind: "Request", ...told, status, answer: isLost ? "Lost" : "Arrived" });
    if (isLost) {
      await pause(1000);
      throw connectionLost(method, path);
    }
    if (effect?.kind === "DelayAfter") await pause(effect.ms);
    if (latencyMs > 0) await pause(Math.ceil(this.#rng() * latencyMs));
    if (signal?.aborted) throw signal.reason;
    return answer;
  }

  async *watch(request: KubeWatchRequest): AsyncIterable<KubeWatchEvent> {
    const { stage, process, clock } = this.#options;
    const { path } = request;
    await clock.awake();
    const opening = stage.watchEffect({ process, path, event: undefined });
    if (opening?.kind === "Broken") {
      await clock.sleep(seconds(1), request.signal);
      throw connectionLost("WATCH", path);
    }
    if (opening?.kind === "Held") {
      await untilAborted(opening.until, request.signal);
      return;
    }
    if (opening?.kind === "Expired") {
      yield { type: "ERROR", object: statusBody(410, "too old resource version") as KubeObject };
      return;
    }
    for await (const event of stage.cluster.api.watch(request)) {
      const effect = stage.watchEffect({ process, path, event });
      if (effect?.kind === "Late")
        await stage.clock.sleep(seconds(effect.ms / 1000), request.signal);
      if (effect?.kind === "Held") await untilAborted(effect.until, request.signal);
      if (effect?.kind === "Broken" || effect?.kind === "Expired") return;
      await clock.awake();
      if (request.signal.aborted) return;
      if (event.type !== "BOOKMARK") {
        const { kind = "", metadata } = event.object;
        const what = `${event.type} ${kind} ${metadata?.name} ${metadata?.resourceVersion}`;
        stage.tell({ kind: "Delivery", process, what });
      }
      yield event;
    }
  }

  #countInstant(): void {
    const at = this.#options.stage.clock.now();
    this.#sentAtInstant = at === this.#instant ? this.#sentAtInstant + 1 : 0;
    this.#instant = at;
    if (this.#sentAtInstant >= busyLoop) this.#options.onBusyLoop();
  }
}

function connectionLost(method: string, path: string): LastcallError {
  return new LastcallError(
    "API_UNREACHABLE",
    `Cannot ${method} ${path}: the connection was lost, expected a response`,
  );
}

const reasons: Readonly<Record<number, string>> = {
  403: "Forbidden",
  404: "NotFound",
  409: "Conflict",
  410: "Expired",
  422: "Invalid",
  429: "TooManyRequests",
  500: "InternalError",
  503: "ServiceUnavailable",
};

function statusBody(code: number, message: string): unknown {
  // A proxy in between answers in its own words.
  if (code === 404) return "404 page not found\n";
  const status = { kind: "Status", apiVersion: "v1", status: "Failure", metadata: {} };
  return { ...status, code, reason: reasons[code] ?? "Unknown", message };
}

function untilAborted(work: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
    void work.then(resolve);
  });
}
