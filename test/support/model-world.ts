import { readClusterPolicy } from "../../src/config/policy/parse-policy-object.ts";
import { crdOf } from "../../src/config/schema/crd.ts";
import { resourceDefinitions } from "../../src/config/schema/resource-definition.ts";
import type { ActionPorts } from "../../src/contracts/action-runner.ts";
import type { Clock } from "../../src/contracts/clock.ts";
import type {
  InstanceReleaser,
  LaunchTimes,
  LifecycleHooks,
  NoticeFeed,
  ReleaserChoice,
} from "../../src/contracts/cloud.ts";
import type { GateSource, NodePods } from "../../src/contracts/cluster.ts";
import type { KubeAnswer, KubeApi, KubeObject, KubeRequest } from "../../src/contracts/kube-api.ts";
import type { Leadership } from "../../src/contracts/leadership.ts";
import type { ClusterEvent, Log } from "../../src/contracts/telemetry.ts";
import { AlwaysLeading, Controller } from "../../src/controller/controller.ts";
import { seededRng } from "../../src/core/chance/chance.ts";
import { cronProblem } from "../../src/core/limits/windows.ts";
import {
  formatInstant,
  type Instant,
  instant,
  type Millis,
  plus,
  seconds,
} from "../../src/core/time/time.ts";
import {
  KubeClusterCapacity,
  KubePlaceholders,
  KubeVolumeAttachments,
} from "../../src/kube/cluster-capacity.ts";
import { KubeDepartureStore } from "../../src/kube/departure-store.ts";
import { KubeFleet } from "../../src/kube/fleet.ts";
import { KubeNodeMarks } from "../../src/kube/node/node-marks.ts";
import { KubeNodePods } from "../../src/kube/node/node-pods.ts";
import { KubePolicyStatus } from "../../src/kube/policy-status.ts";
import { onServerTime } from "../../src/kube/server-clock.ts";
import { eventLoopTurn } from "../../src/runtime/real-clock.ts";
import { ModelApi } from "../../src/sim/api/model-api.ts";
import { startControllers } from "../../src/sim/model-cluster.ts";
import { VirtualClock } from "../../src/sim/time/virtual-clock.ts";
import { type KnownMachine, machineReleaser } from "./machine-releaser.ts";
import { openGates } from "./open-gates.ts";
import { RecordedMetrics } from "./recorded-metrics.ts";

export { spotPolicy } from "./spot-policy.ts";
export { webWorkload } from "./web-workload.ts";

export const dawn = instant(Date.UTC(2026, 10, 20));
export const departures = "/apis/lastcall.dev/v1alpha1/departures";
export const policies = "/apis/lastcall.dev/v1alpha1/departurepolicies";
export const nodes = "/api/v1/nodes";

/** The controller's own namespace, and the image of its placeholders. */
const placeholderPlace = { namespace: "lastcall", image: "registry.k8s.io/pause:3.10" };

/** The body of a status is built when it is sent; building it earlier does no harm. */
function shown(request: KubeRequest): KubeRequest {
  const isStatus = request.method === "PATCH" && request.path.endsWith("/status");
  return isStatus ? { ...request, body: request.bodyAtTurn?.() ?? request.body } : request;
}

/** Built once: that takes as long as everything else that a world needs. */
const definitions = resourceDefinitions.map((one) => crdOf(one) as KubeObject);

/** A model cluster on a virtual clock with the real controller, for tests. */
export class ModelWorld {
  readonly clock = new VirtualClock({ startAt: dawn, settle: eventLoopTurn });
  readonly api: ModelApi;
  readonly kubelet: ReturnType<typeof startControllers>["kubelet"];
  readonly events: ClusterEvent[] = [];
  readonly logged: string[] = [];
  readonly #metrics = new RecordedMetrics();
  readonly counted = this.#metrics.counted;
  readonly observed = this.#metrics.observed;
  readonly gauges = this.#metrics.gauges;
  /** What the controller did, in order: `cordon n1`, `evict n1`, `release n1`, `remove n1`. */
  readonly steps: string[] = [];
  /** Every request of the controller that may change something. */
  readonly writes: string[] = [];
  readonly released: string[] = [];
  /** The ids of released machines, in order; each machine has its own. */
  readonly releaseIds: string[] = [];
  /** The uids of the initial nodes. */
  readonly firstUids: string[] = [];
  /** By providerID; a test deletes one that the cloud takes without a word. */
  readonly machines = new Map<string, KnownMachine>();
  readonly #seed: number;
  #boots = 0;

  constructor(seed = 1) {
    this.#seed = seed;
    this.api = new ModelApi({ clock: this.clock, rng: seededRng(seed) });
    this.kubelet = startControllers(this.api.context).kubelet;
    for (const definition of definitions) {
      this.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition);
    }
  }

  /** The health of the controller that was started last. */
  health: Controller["health"] | undefined;

  create(path: string, body: KubeObject): KubeObject {
    const answer = this.api.handle({ method: "POST", path, body });
    if (answer.status >= 300) throw new Error(JSON.stringify(answer.body));
    return answer.body as KubeObject;
  }

  get(path: string): KubeObject | undefined {
    const answer = this.api.handle({ method: "GET", path });
    return answer.status === 200 ? (answer.body as KubeObject) : undefined;
  }

  list(path: string): readonly KubeObject[] {
    return ((this.get(path) as { items?: KubeObject[] } | undefined)?.items ?? []) as KubeObject[];
  }

  /** `providerID` is another machine's than its own, if the kubelet registers it as that. */
  addNode(
    name: string,
    zone: string,
    labels: Readonly<Record<string, string>> = {},
    providerID = `gce://demo/${zone}/${name}`,
  ): void {
    this.#launch(name, zone);
    const node = this.create("/api/v1/nodes", {
      apiVersion: "v1",
      kind: "Node",
      metadata: {
        name,
        labels: {
          "cloud.google.com/gke-spot": "true",
          "topology.kubernetes.io/zone": zone,
          ...labels,
        },
        // Every kubelet sets it: a real node always has annotations.
        annotations: { "volumes.kubernetes.io/controller-managed-attach-detach": "true" },
      },
      spec: { providerID },
      status: {
        nodeInfo: { bootID: `boot-${this.#boots}` },
        allocatable: { cpu: "4", memory: "16Gi", pods: "110" },
        capacity: { cpu: "4", memory: "16Gi", pods: "110" },
        conditions: [{ type: "Ready", status: "True" }],
      },
    } as KubeObject);
    if (this.clock.now() === dawn) this.firstUids.push(node.metadata?.uid ?? "");
  }

  /** Releases by deleting only the machine: removing the Node is up to the controller. */
  readonly releaser: InstanceReleaser = machineReleaser(this.machines, (providerID, machineId) => {
    const [zone, name] = providerID.split("/").slice(-2) as [string, string];
    this.releaseIds.push(machineId);
    this.onRelease(name);
    void this.#bearAnew(name, zone);
    this.released.push(providerID);
    this.steps.push(`release ${name}`);
  });

  /** Called with each machine just before its release. */
  onRelease: (machine: string) => void = () => {};

  /** How long a group takes to create a new machine. */
  bornAfterMs = seconds(30);
  /** And how long until the new machine's kubelet reports to the cluster. */
  bootsAfterMs = seconds(0);

  #launch(name: string, zone: string): void {
    const id = `machine-${++this.#boots}`;
    this.machines.set(`gce://demo/${zone}/${name}`, { id, bornAt: this.clock.now() });
  }

  /** The group's new machine, with the old name: its kubelet takes an old Node over. */
  async #bearAnew(name: string, zone: string): Promise<void> {
    await this.clock.sleep(this.bornAfterMs);
    this.#launch(name, zone);
    await this.clock.sleep(this.bootsAfterMs);
    if (this.get(`${nodes}/${name}`) === undefined) return this.addNode(name, zone);
    const nodeInfo = { bootID: `boot-${this.#boots}` };
    this.#patch(`${nodes}/${name}/status`, { status: { nodeInfo } });
  }

  /** The API as the controller sees it: the model's, with every write recorded. */
  readonly watched: KubeApi = {
    send: (request) => this.#sendWatched(request),
    watch: (request) => this.api.watch(request),
  };

  /** Called before each write of the controller; a test may end the controller there. */
  beforeWrite: (request: KubeRequest) => void = () => {};

  #sendWatched(request: KubeRequest): Promise<KubeAnswer> {
    const sent = shown(request);
    if (request.method !== "GET") {
      this.beforeWrite(sent);
      this.writes.push(`${request.method} ${request.path}`);
      const step = this.#stepOf(request);
      if (step !== undefined) this.steps.push(step);
    }
    const answering = this.api.send(request);
    const at = this.clock.now();
    // Lost requests are the sender's concern.
    const tell = ({ status }: KubeAnswer) => this.afterRequest(sent, { at, status });
    void answering.then(tell, () => undefined);
    return answering;
  }

  /** Called for each response to the controller, like an API server's audit log. */
  afterRequest: (request: KubeRequest, answer: { at: Instant; status: number }) => void = () => {};

  /** Called each time that a drain reads its node's pods. */
  onLookAtPods: (node: string) => void = () => {};

  #nodePods(tools: ConstructorParameters<typeof KubeNodePods>[0]): NodePods {
    const pods = new KubeNodePods(tools);
    const { follow } = KubeNodePods.prototype;
    pods.follow = (node, signal) => {
      const followed = follow.call(pods, node, signal);
      const look = () => {
        this.onLookAtPods(node);
        return followed.pods();
      };
      return { ...followed, pods: look };
    };
    return pods;
  }

  #stepOf({ method, path, body }: KubeRequest): string | undefined {
    const node = /^\/api\/v1\/nodes\/([^/]+)$/.exec(path)?.[1];
    if (node !== undefined && method === "DELETE") return `remove ${node}`;
    if (node !== undefined && method === "PATCH") {
      const cordons = JSON.stringify(body).includes('"value":true');
      return `${cordons ? "cordon" : "uncordon"} ${node}`;
    }
    if (!path.endsWith("/eviction")) return undefined;
    const pod = this.get(path.slice(0, -"/eviction".length));
    return pod === undefined ? undefined : `evict ${(pod.spec as { nodeName: string }).nodeName}`;
  }

  stepsOf(node: string): readonly string[] {
    return this.steps.flatMap((step) =>
      step.endsWith(` ${node}`) ? (step.split(" ")[0] ?? []) : [],
    );
  }

  /**
   * The first departure of a node that has started, otherwise one that has ended, otherwise the
   * first.
   */
  departureOf(node: string): KubeObject | undefined {
    const ofNode = (one: KubeObject) => (one.spec as { node: { name: string } }).node.name === node;
    const all = this.list(departures).filter(ofNode);
    const has = (field: string) => (one: KubeObject) =>
      (one.status as Record<string, unknown> | undefined)?.[field] !== undefined;
    return all.find(has("startedAt")) ?? all.find(has("endedAt")) ?? all[0];
  }

  statusOf(node: string): { readonly phase?: string; readonly outcome?: string } {
    return (this.departureOf(node)?.status as { phase?: string; outcome?: string }) ?? {};
  }

  podsOn(node: string): readonly KubeObject[] {
    const onNode = (one: KubeObject) => (one.spec as { nodeName?: string }).nodeName === node;
    return this.list("/api/v1/pods").filter(onNode);
  }

  /** Every mark of Lastcall, or a cordon, on a node. */
  marksOf(name: string): readonly string[] {
    const node = this.get(`${nodes}/${name}`);
    const spec = node?.spec as { unschedulable?: boolean; taints?: { key: string }[] } | undefined;
    return [
      ...(spec?.unschedulable ? ["unschedulable"] : []),
      ...(spec?.taints ?? []).map((taint) => taint.key),
      ...Object.keys(node?.metadata?.annotations ?? {}).filter((key) =>
        key.startsWith("lastcall.dev/dep"),
      ),
      ...Object.keys(node?.metadata?.labels ?? {}).filter((key) => key.includes("exclude")),
    ];
  }

  patchNode(name: string, body: object): void {
    this.#patch(`${nodes}/${name}`, body);
  }

  patchPolicy(body: object): void {
    this.#patch(`${policies}/spot`, body);
  }

  patchBudget(name: string, body: object): void {
    this.#patch(`/apis/policy/v1/namespaces/default/poddisruptionbudgets/${name}`, body);
  }

  #patch(path: string, body: object): void {
    const patchType = "application/merge-patch+json";
    const answer = this.api.handle({ method: "PATCH", path, patchType, body });
    if (answer.status >= 300) throw new Error(JSON.stringify(answer.body));
  }

  /** The cloud's notice, as an agent would write it. */
  notice(name: string, lead: Millis): void {
    const node = this.get(`${nodes}/${name}`);
    const uid = node?.metadata?.uid ?? "";
    const status = node?.status as { nodeInfo?: { bootID?: string } } | undefined;
    const bootID = status?.nodeInfo?.bootID ?? "";
    const now = this.clock.now();
    this.create(departures, {
      apiVersion: "lastcall.dev/v1alpha1",
      kind: "Departure",
      metadata: { name: `${name}-${uid.slice(0, 8)}-notice` },
      spec: {
        node: { name, uid, bootID },
        cause: "SpotInterruption",
        noticedAt: formatInstant(now),
        deadlineAt: formatInstant(plus(now, lead)),
        source: "test",
      },
    });
  }

  async pass(span: Millis): Promise<void> {
    await this.clock.runUntil(plus(this.clock.now(), span));
  }

  /** Lets time pass in steps of a second until the condition holds; fails after `limit`. */
  async passUntil(holds: () => boolean, limit: Millis): Promise<void> {
    const until = plus(this.clock.now(), limit);
    while (!holds()) {
      if (this.clock.now() >= until) throw new Error(`still not so after ${limit} ms`);
      await this.pass(seconds(1));
    }
  }

  startController(
    signal: AbortSignal,
    options: {
      dryRun?: boolean;
      feeds?: readonly NoticeFeed[];
      launchTimes?: LaunchTimes;
      hooks?: LifecycleHooks;
      joinWithinMs?: Millis;
      departingSoonMs?: Millis;
      actionPorts?: ActionPorts | undefined;
      gates?: GateSource;
      releaserFor?: ReleaserChoice;
      leadership?: Leadership;
      /** Of the machine on which the controller runs. Default: the right time. */
      clock?: Clock;
    } = {},
  ): Promise<void> {
    const { api, clock } = onServerTime(
      { send: (sent) => this.watched.send(sent), watch: (asked) => this.watched.watch(asked) },
      options.clock ?? this.clock,
    );
    const rng = seededRng(6 + this.#seed);
    const log = (event: string, fields: object = {}): void => {
      this.logged.push(`${formatInstant(clock.now())} ${event} ${JSON.stringify(fields)}`);
    };
    const controller = new Controller({
      fleet: new KubeFleet({
        api,
        clock,
        rng,
        readPolicy: (object) => readClusterPolicy(object, { cronProblem }),
        onError: (error) => log("trouble", { error: error.message }),
      }),
      gates: options.gates ?? openGates,
      api,
      portsFor: (api) => ({
        marks: new KubeNodeMarks({ api, clock, writesCordonTaint: true }),
        pods: this.#nodePods({ api, clock, rng }),
        store: new KubeDepartureStore(api),
        placeholders: new KubePlaceholders({ api, clock, rng, ...placeholderPlace }),
        capacity: new KubeClusterCapacity(api),
        attachments: new KubeVolumeAttachments({ api, clock, rng }),
        releaserFor: options.releaserFor ?? (() => this.releaser),
        hooks: options.hooks,
        actionPorts: options.actionPorts,
        policyStatus: new KubePolicyStatus(api, clock),
      }),
      telemetry: {
        log: { debug: log, info: log, warn: log, error: log } satisfies Log,
        metrics: this.#metrics,
        events: { emit: (event) => this.events.push(event) },
      },
      leadership: options.leadership ?? new AlwaysLeading(),
      clock,
      rng,
      feeds: options.feeds,
      joinWithinMs: options.joinWithinMs,
      departingSoonMs: options.departingSoonMs,
      launchTimes: options.launchTimes,
      dryRun: options.dryRun ?? false,
    });
    this.health = controller.health;
    return controller.run(signal);
  }
}
