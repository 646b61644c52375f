import { expect, it } from "vitest";
import type { KubeObject, KubeRequest } from "../../src/contracts/kube-api.ts";
import { hours, minutes } from "../../src/core/time/time.ts";
import { podBehaviour } from "../../src/sim/cluster-controllers/kubelet.ts";
import type { Change, History, MachineEnd, Release, WatchedKind } from "../e2e/history.ts";
import { type Charge, judge, zonesAlternate } from "../e2e/judge.ts";
import { podCount, workload } from "../e2e/workload.ts";
import type { AuditEntry } from "../support/audit-log.ts";
import { departures, ModelWorld, nodes, spotPolicy } from "../support/model-world.ts";

const user = "controller";
const budgets = "/apis/policy/v1/poddisruptionbudgets";
type Kind = Exclude<WatchedKind, "NodeClaim">;
const paths: Readonly<Record<Kind, string>> = {
  Node: nodes,
  Pod: "/api/v1/pods",
  Budget: budgets,
  Departure: departures,
};

/** The collection of each kind in the workload that both clusters run. */
const collections: Readonly<Record<string, string>> = {
  Deployment: "/apis/apps/v1/namespaces/default/deployments",
  DaemonSet: "/apis/apps/v1/namespaces/default/daemonsets",
  PodDisruptionBudget: "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
};

/** The observer of the model, with the same changes, audit and cloud as on a real control plane. */
class ModelOnlooker {
  readonly #world: ModelWorld;
  readonly #changes: Change[] = [];
  readonly #audit: AuditEntry[] = [];
  readonly #releases: Release[] = [];
  readonly #machineEnds: MachineEnd[] = [];

  constructor(world: ModelWorld, signal: AbortSignal) {
    this.#world = world;
    for (const kind of Object.keys(paths) as Kind[]) void this.#watch(kind, signal);
    world.afterRequest = (request, answer) => this.#note(request, answer);
    world.onRelease = (machine) => {
      const at = world.clock.now();
      const podsThen = world.podsOn(machine) as Release["podsThen"];
      this.#releases.push({ machine, at, podsThen });
      this.#machineEnds.push({ machine, at });
    };
  }

  history(): History {
    return {
      changes: this.#changes.toSorted((a, b) => a.order - b.order),
      audit: this.#audit,
      releases: this.#releases,
      machineEnds: this.#machineEnds,
    };
  }

  /** A server ends a watch after a while; the next one starts from the last change. */
  async #watch(kind: Kind, signal: AbortSignal): Promise<void> {
    let last: string | undefined;
    while (!signal.aborted) {
      const query = last === undefined ? {} : { resourceVersion: last };
      for await (const event of this.#world.api.watch({ path: paths[kind], query, signal })) {
        const { type, object } = event;
        last = object.metadata?.resourceVersion;
        const seen = {
          kind,
          order: Number(last),
          type: type === "DELETED" ? "Gone" : "Set",
          object,
        };
        this.#changes.push(seen as unknown as Change);
      }
    }
  }

  #note(request: KubeRequest, answer: { readonly at: number; readonly status: number }): void {
    if (request.method === "GET") return;
    const match = /\/(nodes|pods)\/([^/]+)(?:\/([^/]+))?$/.exec(request.path);
    if (match === null) return;
    const [, resource = "", name = "", subresource = ""] = match;
    const namespace = /\/namespaces\/([^/]+)\//.exec(request.path)?.[1] ?? "";
    const verb = { POST: "create", PUT: "update", PATCH: "patch", DELETE: "delete" }[
      request.method
    ];
    const atUs = answer.at * 1000;
    this.#audit.push({
      ...{ verb, resource, subresource, namespace, name, user },
      ...{ code: answer.status, receivedAtUs: atUs, answeredAtUs: atUs },
    });
  }
}

/**
 * Translates the delays of the shared workload's pods to the annotations of the model's kubelet.
 */
function inModelTerms(object: KubeObject): KubeObject {
  const text = JSON.stringify(object)
    .replaceAll(/"e2e\.lastcall\.dev\/exit-after":"(\d+)s"/g, `"${podBehaviour.exitSeconds}":"$1"`)
    .replaceAll(
      /"e2e\.lastcall\.dev\/ready-after":"(\d+)s"/g,
      `"${podBehaviour.startSeconds}":"$1"`,
    );
  return JSON.parse(text) as KubeObject;
}

it("nine nodes with sixty pods are rotated, and the real control plane's judge finds no fault", async () => {
  const world = new ModelWorld();
  for (let place = 0; place < 9; place += 1) {
    world.addNode(`spot-${place + 1}`, "bcd"[place % 3] as string, { generation: "1" });
  }
  const items = (workload() as { items: KubeObject[] }).items;
  for (const item of items) {
    const path = collections[item.kind ?? ""] ?? "";
    world.create(path, {
      ...inModelTerms(item),
      metadata: { ...item.metadata, namespace: "default" },
    });
  }
  await world.pass(minutes(2));
  expect(world.list(paths.Pod)).toHaveLength(podCount + 9);

  const stop = new AbortController();
  const onlooker = new ModelOnlooker(world, stop.signal);
  const first = { key: "generation", operator: "In", values: ["1"] };
  spotPolicy(world, {
    nodeSelector: { nodeSelectorTerms: [{ matchExpressions: [first] }] },
    lifetime: { max: "1h", reserve: "1s" },
    spacing: { mode: "Late", min: "3m" },
    budgets: [{ nodes: 1 }],
    drain: { timeout: "2m", onTimeout: "Wait" },
  });
  const running = world.startController(stop.signal);
  await world.pass(hours(1.1));
  stop.abort();
  await running;

  const charge: Charge = { rotated: world.firstUids, user, atOnce: 1 };
  expect(judge(onlooker.history(), charge)).toEqual([]);
  expect(zonesAlternate(onlooker.history(), charge)).toEqual([]);
});
