/**
 * What the board's pages receive about a cluster: tests that pass on the model and on a real API
 * server. The fleet behind it is `KubeFleet`, as in the command.
 */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { BoardFeed } from "../../src/board/board-feed.ts";
import {
  type BoardPicture,
  type BoardRow,
  noRights,
  type StreamMessage,
  withChange,
} from "../../src/board/stream.ts";
import { readClusterPolicy } from "../../src/config/policy/parse-policy-object.ts";
import type { KubeApi, KubeObject, KubeRequest } from "../../src/contracts/kube-api.ts";
import { seededRng } from "../../src/core/chance/chance.ts";
import { cronProblem } from "../../src/core/limits/windows.ts";
import { inEnglish } from "../../src/core/reason/english.ts";
import { KubeFleet } from "../../src/kube/fleet.ts";
import { PermittedApi } from "../../src/kube/watch/collection.ts";
import { realClock } from "../../src/runtime/real-clock.ts";
import { waitUntil } from "../support/wait-until.ts";

export interface BoardTarget {
  readonly api: KubeApi;
  readonly close: () => Promise<void>;
}

const nodes = "/api/v1/nodes";
const policies = "/apis/lastcall.dev/v1alpha1/departurepolicies";

/** The state that a browser has after these messages. */
class Page {
  picture: BoardPicture | undefined;
  lastId: string | undefined;
  pictures = 0;
  changes = 0;

  readonly hear = (message: StreamMessage): void => {
    if (message.kind === "Clock") return;
    if (message.kind === "Picture") {
      this.pictures += 1;
      this.picture = message.picture;
    } else if (this.picture !== undefined) {
      expect(message.after).toBe(this.lastId);
      this.changes += 1;
      this.picture = withChange(this.picture, message.change);
    }
    this.lastId = message.id;
  };

  row(node: string): BoardRow | undefined {
    return this.picture?.rows.find((row) => row.node === node);
  }
}

class BoardWorld {
  readonly #target: BoardTarget;
  readonly #over = new AbortController();
  readonly feed: BoardFeed;
  readonly missing: () => readonly string[];

  constructor(target: BoardTarget) {
    this.#target = target;
    const clock = realClock;
    const api = new PermittedApi({ api: target.api, clock, onMissing: () => {} });
    this.missing = () => api.missing();
    const fleet = new KubeFleet({
      ...{ api, clock, rng: seededRng(1), onError: () => {} },
      readPolicy: (object) => readClusterPolicy(object, { cronProblem }),
    });
    this.feed = new BoardFeed({
      ...{ fleet, clock, run: "test", hasReleaser: () => true },
      cluster: { now: () => clock.now(), rate: () => 1 },
      state: () => ({
        ...{ cluster: "test", isDemo: false, missing: [], rights: noRights, isCounted: false },
        connection: { kind: "Live" },
      }),
    });
    const { signal } = this.#over;
    void fleet.run(signal);
    void this.feed.run(signal);
  }

  async ask(request: KubeRequest): Promise<KubeObject> {
    const answer = await this.#target.api.send(request);
    if (answer.status >= 300) throw new Error(JSON.stringify(answer.body));
    return answer.body as KubeObject;
  }

  async addNode(name: string): Promise<KubeObject> {
    const labels = {
      "cloud.google.com/gke-spot": "true",
      "topology.kubernetes.io/zone": "europe-west1-b",
      "cloud.google.com/gke-nodepool": "spot-b",
    };
    const body = {
      ...{ apiVersion: "v1", kind: "Node", metadata: { name, labels } },
      spec: { providerID: `gce://demo/europe-west1-b/${name}` },
    };
    return this.ask({ method: "POST", path: nodes, body });
  }

  async patch(path: string, body: unknown): Promise<KubeObject> {
    return this.ask({ method: "PATCH", path, patchType: "application/merge-patch+json", body });
  }

  until(what: string, holds: () => boolean): Promise<true> {
    return waitUntil(async () => holds() || undefined, {
      what,
      timeoutMs: 20_000,
    }) as Promise<true>;
  }

  async close(): Promise<void> {
    this.#over.abort();
    await this.#target.close();
  }
}

/** Runs the suite; the target is created once and closed at the end. */
export function boardContract(name: string, makeTarget: () => Promise<BoardTarget>): void {
  describe(`the board of ${name}`, () => {
    let made: BoardWorld | undefined;
    const page = new Page();
    const world = (): BoardWorld => made as BoardWorld;
    beforeAll(async () => {
      made = new BoardWorld(await makeTarget());
      world().feed.subscribe(page.hear);
    }, 120_000);
    afterAll(() => made?.close());

    it("starts with a full picture, and reports nothing as missing", async () => {
      await world().addNode("n1");
      await world().addNode("n2");
      await world().until("both nodes are there", () => page.picture?.rows.length === 2);
      expect(page.pictures).toBe(1);
      expect(page.row("n1")).toMatchObject({ zone: "europe-west1-b", pool: "spot-b" });
      expect(page.row("n1")).toMatchObject({ state: "Stays", reason: "NoPolicy" });
      expect(world().missing()).toEqual([]);
    });

    it("shows each node's planned instant as soon as there is a policy", async () => {
      const spec = { lifetime: { max: "24h", reserve: "30m" }, spacing: { min: "15m" } };
      const body = {
        ...{ apiVersion: "lastcall.dev/v1alpha1", kind: "DeparturePolicy", spec },
        metadata: { name: "spot" },
      };
      await world().ask({ method: "POST", path: policies, body });
      await world().until("they are planned", () => page.row("n2")?.state === "Scheduled");
      const instants = ["n1", "n2"].map((node) => page.row(node)?.departAt ?? 0);
      // Spacing mode Late: at least 15 minutes apart, and the last one at its deadline.
      expect(Math.abs((instants[0] as number) - (instants[1] as number))).toBeGreaterThanOrEqual(
        15 * 60_000,
      );
      expect(Math.max(...instants)).toBe(
        Math.max(...["n1", "n2"].map((node) => page.row(node)?.deadlineAt ?? 0)),
      );
      expect(inEnglish(page.row("n1")?.explain ?? "")).toMatch(
        /^n1 leaves at .* by the spacing of policy spot/,
      );
      expect(page.picture?.policies[0]).toMatchObject({ name: "spot", matched: 2, problem: null });
    });

    it("shows a user's hold, sent as a change instead of a new picture", async () => {
      const before = page.changes;
      await world().patch(`${nodes}/n1`, {
        metadata: { annotations: { "lastcall.dev/hold": "true" } },
      });
      await world().until("it is on hold", () => page.row("n1")?.state === "Stays");
      expect(page.row("n1")).toMatchObject({ reason: "OnHold", hold: { isOurs: true } });
      expect(page.changes).toBeGreaterThan(before);
      expect(page.pictures).toBe(1);
    });

    it("sends a returning page what it missed, once and in order", async () => {
      const other = new Page();
      world().feed.subscribe(other.hear)();
      await world().patch(`${nodes}/n1`, {
        metadata: { annotations: { "lastcall.dev/hold": null } },
      });
      await world().addNode("n3");
      await world().until("n3 is planned", () => page.row("n3")?.state === "Scheduled");
      expect(other.row("n3")).toBeUndefined();
      world().feed.subscribe(other.hear, other.lastId)();
      expect(other.pictures).toBe(1);
      expect(other.picture).toEqual(page.picture);
      const fresh = new Page();
      world().feed.subscribe(fresh.hear)();
      const byId = (a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1);
      expect(other.picture?.rows.toSorted(byId)).toEqual(fresh.picture?.rows.toSorted(byId));
    });

    it("sends a full picture to a page that missed more than is remembered", async () => {
      const other = new Page();
      world().feed.subscribe(other.hear)();
      // Each node leaves at least one item to remember, however many of them one picture covers.
      for (let change = 0; change < 4; change += 1) {
        for (let node = 0; node < 200; node += 1) await world().addNode(`many-${change}-${node}`);
        await world().until("they are shown", () => page.row(`many-${change}-199`) !== undefined);
        for (let node = 0; node < 200; node += 1) {
          await world().ask({ method: "DELETE", path: `${nodes}/many-${change}-${node}` });
        }
        await world().until("they are gone", () => page.row(`many-${change}-199`) === undefined);
      }
      world().feed.subscribe(other.hear, other.lastId)();
      expect(other.pictures).toBe(2);
      expect(other.picture?.rows.length).toBe(page.picture?.rows.length);
    });

    it("sends a full picture to a page that names another run of the server, or none", () => {
      for (const after of ["other.1", "test.999999", "nonsense", undefined]) {
        const other = new Page();
        world().feed.subscribe(other.hear, after)();
        expect(other.pictures).toBe(1);
      }
    });

    it("removes the row of a deleted node", async () => {
      await world().ask({ method: "DELETE", path: `${nodes}/n3` });
      await world().until("it is gone", () => page.row("n3") === undefined);
      expect(page.picture?.rows).toHaveLength(2);
    });
  });
}
