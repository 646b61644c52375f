import { readFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import type { ControlPlane } from "../support/control-plane.ts";
import { waitUntil } from "../support/wait-until.ts";
import { type Change, keyOf, type WatchedKind } from "./history.ts";

const paths: Readonly<Record<WatchedKind, string>> = {
  Node: "/api/v1/nodes",
  Pod: "/api/v1/pods",
  Budget: "/apis/policy/v1/poddisruptionbudgets",
  Departure: "/apis/lastcall.dev/v1alpha1/departures",
  NodeClaim: "/apis/karpenter.sh/v1/nodeclaims",
};

const ofEveryCluster: readonly WatchedKind[] = ["Node", "Pod", "Budget", "Departure"];

/** How long the API server may be down. */
const outageMs = 120_000;

/**
 * Watches the cluster as the administrator, with a few lines of code and none of Lastcall's. It
 * continues after an outage: changes in the meantime are derived from a new list.
 */
export class Onlooker {
  readonly #plane: ControlPlane;
  readonly #kinds: readonly WatchedKind[];
  readonly #stop = new AbortController();
  readonly #changes: Change[] = [];
  readonly #running: Promise<void>[] = [];
  #fault: unknown;

  constructor(plane: ControlPlane, more: readonly WatchedKind[] = []) {
    this.#plane = plane;
    this.#kinds = [...ofEveryCluster, ...more];
  }

  /** Resolves after the first lists. */
  async start(): Promise<void> {
    await Promise.all(
      this.#kinds.map(async (kind) => {
        const follower = new Follower(kind, this.#plane, (change) => this.#changes.push(change));
        await follower.list();
        const run = follower.run(this.#stop.signal).catch((error: unknown) => {
          if (!this.#stop.signal.aborted) this.#fault = error;
        });
        this.#running.push(run);
      }),
    );
  }

  /** All changes so far, in the cluster's own order. */
  changes(): readonly Change[] {
    if (this.#fault !== undefined) throw this.#fault;
    return this.#changes.toSorted((a, b) => a.order - b.order);
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#running);
  }
}

type Tell = (change: Change) => void;

class Follower {
  readonly #kind: WatchedKind;
  readonly #plane: ControlPlane;
  readonly #tell: Tell;
  readonly #known = new Map<string, Change["object"]>();
  #version = 0;

  constructor(kind: WatchedKind, plane: ControlPlane, tell: Tell) {
    this.#kind = kind;
    this.#plane = plane;
    this.#tell = tell;
  }

  async list(): Promise<void> {
    const { status, body } = await this.#plane.request({ path: paths[this.#kind] });
    if (status !== 200)
      throw new Error(`Cannot list ${this.#kind}: status ${status}, expected 200`);
    this.#version = Number(body.metadata.resourceVersion);
    const items: readonly Change["object"][] = body.items;
    const there = new Set(items.map(keyOf));
    for (const item of items) {
      if (orderOf(this.#known.get(keyOf(item))) !== orderOf(item)) this.#note("Set", item);
    }
    for (const [key, gone] of this.#known) {
      if (!there.has(key)) this.#note("Gone", gone, this.#version);
    }
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const end = await this.#watch(signal).catch(() => "Broken" as const);
      if (signal.aborted) return;
      if (end === "Ended") continue;
      await waitUntil(() => this.list().then(() => true), {
        what: `${this.#kind} can be listed again`,
        timeoutMs: outageMs,
        signal,
      });
    }
  }

  async #watch(signal: AbortSignal): Promise<"Ended" | "TooOld"> {
    const query = `watch=1&allowWatchBookmarks=true&resourceVersion=${this.#version}`;
    for await (const line of this.#lines(`${paths[this.#kind]}?${query}`, signal)) {
      const { type, object } = JSON.parse(line);
      if (type === "ERROR") return "TooOld";
      this.#version = orderOf(object);
      if (type !== "BOOKMARK") this.#note(type === "DELETED" ? "Gone" : "Set", object);
    }
    return "Ended";
  }

  async *#lines(path: string, signal: AbortSignal): AsyncIterable<string> {
    const { url, caFile, adminToken } = this.#plane;
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const asked = request(
      new URL(path, url),
      { ca: readFileSync(caFile), headers: { authorization: `Bearer ${adminToken}` }, signal },
      (answer) => {
        if (answer.statusCode === 200) return resolve(answer);
        reject(new Error(`Cannot watch ${path}: status ${answer.statusCode}, expected 200`));
      },
    );
    asked.on("error", reject);
    asked.end();
    const answer = await promise;
    answer.setEncoding("utf8");
    let rest = "";
    for await (const chunk of answer) {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop() ?? "";
      yield* lines;
    }
  }

  #note(type: Change["type"], object: Change["object"], order = orderOf(object)): void {
    if (type === "Set") this.#known.set(keyOf(object), object);
    else this.#known.delete(keyOf(object));
    this.#tell({ kind: this.#kind, type, object, order, atMs: Date.now() } as Change);
  }
}

function orderOf(object: Change["object"] | undefined): number {
  return Number(object?.metadata?.resourceVersion ?? 0);
}
