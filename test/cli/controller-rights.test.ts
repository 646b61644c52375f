/**
 * Checks the controller's RBAC both ways: the manifests grant every request that the controller
 * sends, and each granted verb is used in one of these scenarios.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it, vi } from "vitest";
import { parseAllDocuments } from "yaml";
import { assembleController } from "../../src/cli/assemble/assemble-controller.ts";
import { ClusterAuditor } from "../../src/cli/cluster/cluster-auditor.ts";
import type { NoticeFeed } from "../../src/contracts/cloud.ts";
import { seededRng } from "../../src/core/chance/chance.ts";
import { hours, type Millis, minutes, seconds } from "../../src/core/time/time.ts";
import { LeaderLease } from "../../src/kube/lease/leader-lease.ts";
import {
  capacityStory,
  close,
  depart,
  hasEnded,
  noticeOf,
  open,
  requestsOf,
  workload,
} from "../controller/capacity-story.ts";
import { ModelKarpenter, nodeClaimDefinition, nodePoolLabel } from "../support/model-karpenter.ts";
import { ModelWorld, nodes, spotPolicy } from "../support/model-world.ts";

const deploy = join(import.meta.dirname, "../../deploy");

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

/** The rights that a file's roles grant: `patch nodes/status`, `get leases.coordination.k8s.io`. */
function grantedBy(file: string): readonly string[] {
  const documents = parseAllDocuments(readFileSync(join(deploy, file), "utf8"));
  return documents
    .map((one) => one.toJS() as { readonly rules?: readonly Rule[] })
    .flatMap(({ rules = [] }) => rules)
    .flatMap(({ apiGroups, resources, verbs }) =>
      apiGroups.flatMap((group) =>
        resources.flatMap((resource) => verbs.map((verb) => `${verb} ${full(resource, group)}`)),
      ),
    );
}

function full(resource: string, group: string): string {
  const [plural, sub] = resource.split("/");
  return `${plural}${group === "" ? "" : `.${group}`}${sub === undefined ? "" : `/${sub}`}`;
}

/** The right that a request needs: `GET /api/v1/pods?limit=500` needs `list pods`. */
function rightOf(request: string): string | undefined {
  const [method = "", target = ""] = request.split(" ");
  const parts = (target.split("?")[0] ?? "").split("/").filter((part) => part !== "");
  const group = parts[0] === "apis" ? (parts[1] ?? "") : "";
  const below = parts.slice(group === "" ? 2 : 3);
  const [resource, name, sub] =
    below[0] === "namespaces" && below.length > 2 ? below.slice(2) : below;
  if (resource === undefined) return undefined;
  const verbs: Readonly<Record<string, string>> = {
    GET: name === undefined ? "list" : "get",
    ...{ WATCH: "watch", POST: "create", PATCH: "patch", PUT: "update", DELETE: "delete" },
  };
  return `${verbs[method]} ${full(sub === undefined ? resource : `${resource}/${sub}`, group)}`;
}

const used = new Set<string>();

/** Runs the controller as `lastcall run` assembles it, with its Lease, in a prepared world. */
async function tell(
  world: ModelWorld,
  story: () => Promise<void>,
  feeds: readonly NoticeFeed[] = [],
): Promise<void> {
  const requests = requestsOf(world);
  const { api, clock } = world;
  const rng = seededRng(1);
  const stop = new AbortController();
  const log = () => {};
  const { controller } = assembleController({
    ...{ api, clock, rng, namespace: "lastcall", identity: "c-1", dryRun: false },
    log: { debug: log, info: log, warn: log, error: log },
    metrics: { count: log, set: log, observe: log },
    leadership: new LeaderLease({
      ...{ api, clock, rng, namespace: "lastcall", name: "lastcall", identity: "c-1" },
    }),
    releaserFor: () => world.releaser,
    feedsFor: () => feeds,
    actions: { allowed: [], env: {} },
    audit: { auditor: new ClusterAuditor(api, async () => {}), everyMs: hours(6) },
  });
  const running = controller.run(stop.signal);
  try {
    await story();
  } finally {
    stop.abort();
    await world.pass(minutes(1));
    await running;
  }
  for (const request of requests) {
    const right = rightOf(request);
    if (right !== undefined) used.add(right);
  }
}

/** Reserves capacity, moves a single replica, waits for a volume and releases the machine. */
async function reserveCapacity(): Promise<void> {
  const drain = { timeout: "2m", onTimeout: "Proceed", onSingleReplica: "RestartOwner" };
  const world = capacityStory({ drain });
  close(world, ["n1", "n2"]);
  workload(world, "db", { replicas: 1, cpu: "1", maxUnavailable: 0 });
  workload(world, "files", { replicas: 1, cpu: "1", claim: "data" });
  world.create("/api/v1/namespaces/default/persistentvolumeclaims", {
    ...{ apiVersion: "v1", kind: "PersistentVolumeClaim" },
    metadata: { name: "data", namespace: "default" },
    spec: { volumeName: "pv-data" },
  });
  world.create("/api/v1/persistentvolumes", {
    ...{ apiVersion: "v1", kind: "PersistentVolume", metadata: { name: "pv-data" } },
    spec: { claimRef: { namespace: "default", name: "data" } },
  });
  world.create("/apis/storage.k8s.io/v1/volumeattachments", {
    ...{ apiVersion: "storage.k8s.io/v1", kind: "VolumeAttachment", metadata: { name: "csi" } },
    spec: { nodeName: "n0", attacher: "csi", source: { persistentVolumeName: "pv-data" } },
  });
  await world.pass(seconds(30));
  open(world, ["n1", "n2"]);
  depart(world, "n0");
  await tell(world, () => world.passUntil(hasEnded(world, "n0"), minutes(30)));
}

/**
 * A notice forces a pod past its budget, which is reported twice; three days later its record is
 * deleted.
 */
async function force(): Promise<void> {
  const world = capacityStory({ replacement: { when: "None" } });
  close(world, ["n1", "n2"]);
  workload(world, "held", { replicas: 2, cpu: "1", maxUnavailable: 0 });
  await world.pass(seconds(30));
  depart(world, "n0");
  await tell(world, async () => {
    await world.pass(seconds(30));
    noticeOf(world, "n0", seconds(30));
    await world.passUntil(hasEnded(world, "n0"), minutes(30));
    await world.pass(hours(73));
  });
}

/** A plan that changes, on a cluster with an Azure node and an action that reads a Secret. */
async function plan(): Promise<void> {
  const world = new ModelWorld();
  const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name: "lastcall" } };
  world.create("/api/v1/namespaces", namespace);
  world.addNode("n0", "a");
  world.create(nodes, {
    ...{ apiVersion: "v1", kind: "Node" },
    metadata: { name: "aks-1", labels: { "kubernetes.azure.com/scalesetpriority": "spot" } },
    spec: {
      providerID:
        "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/aks-1",
    },
  });
  const secretRef = { name: "lastcall-actions", key: "slack" };
  const actions = [{ name: "tell", at: "AtEnd", slack: { secretRef } }];
  spotPolicy(world, { lifetime: { max: "24h", reserve: "30m" }, actions });
  const wait: Millis = minutes(5);
  const requests = requestsOf(world);
  await tell(world, async () => {
    await world.pass(wait);
    // Loading code on first use takes real time, whatever the model's clock says.
    const hasSignedIn = async () => {
      await world.pass(seconds(1));
      expect(requests.some((request) => request.includes("/secrets/"))).toBe(true);
    };
    await vi.waitFor(hasSignedIn, { timeout: 20_000 });
    world.patchPolicy({ spec: { lifetime: { max: "12h" } } });
    await world.pass(wait);
  });
}

/** A Karpenter node leaves, and its machine is released without a cloud API. */
async function releaseByNodeClaim(): Promise<void> {
  const world = new ModelWorld();
  const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name: "lastcall" } };
  world.create("/api/v1/namespaces", namespace);
  world.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", nodeClaimDefinition);
  world.create(nodes, {
    ...{ apiVersion: "v1", kind: "Node" },
    metadata: {
      name: "k1",
      labels: { "karpenter.sh/capacity-type": "spot", [nodePoolLabel]: "spot" },
    },
    spec: { providerID: "kwok://k1" },
    status: { conditions: [{ type: "Ready", status: "True" }] },
  });
  spotPolicy(world, { lifetime: { max: "1h", reserve: "10m" }, replacement: { when: "None" } });
  // Bypasses the recording of the controller's requests.
  const send = world.api.send.bind(world.api);
  const karpenter = new ModelKarpenter({ send }, world.clock);
  await karpenter.claim({ name: "k1", providerID: "kwok://k1" });
  const stop = new AbortController();
  const taking = karpenter.run(stop.signal);
  await tell(world, () => world.passUntil(hasEnded(world, "k1"), hours(1)));
  stop.abort();
  await taking;
  expect(await karpenter.claims()).toEqual([]);
  expect(world.released).toEqual([]);
}

/** A node is due with a pod of each kind of workload of which only an object says enough. */
async function holdGang(): Promise<void> {
  const world = new ModelWorld();
  const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name: "lastcall" } };
  world.create("/api/v1/namespaces", namespace);
  const marks = [
    { labels: { "volcano.sh/job-name": "train" } },
    { labels: { "leaderworkerset.sigs.k8s.io/name": "serve" } },
    { labels: { "scheduling.x-k8s.io/pod-group": "group" } },
    { annotations: { "scheduling.k8s.io/group-name": "batch" } },
  ];
  for (const nodeName of ["n0", "n1"]) {
    world.addNode(nodeName, "a");
    for (const [at, mark] of marks.entries()) {
      world.create("/api/v1/namespaces/default/pods", {
        ...{ apiVersion: "v1", kind: "Pod", metadata: { name: `p${at}-on-${nodeName}`, ...mark } },
        spec: { nodeName, containers: [{ name: "main", image: "m" }] },
      });
    }
  }
  spotPolicy(world, { lifetime: { max: "1h", reserve: "10m" }, replacement: { when: "None" } });
  await tell(world, () => world.pass(hours(1)));
  expect(world.statusOf("n0")).toMatchObject({ reason: "GangWorkload" });
}

beforeAll(async () => {
  await reserveCapacity();
  await force();
  await plan();
  await releaseByNodeClaim();
  await holdGang();
}, 120_000);

describe("the rights of the controller", () => {
  const base = grantedBy("base/rbac.yaml");
  const restarts = grantedBy("restart-owner/rbac.yaml");

  it("cover every request that it sends", () => {
    // The role system:basic-user lets every user review their own rights.
    const everybody = ["create selfsubjectaccessreviews.authorization.k8s.io"];
    const granted = [...base, ...restarts, ...everybody];
    const missing = [...used].filter((right) => !granted.includes(right));
    expect(missing).toEqual([]);
  });

  it("are all used", () => {
    // A StatefulSet is restarted in the same way as a Deployment.
    const alike = new Map([["patch statefulsets.apps", "patch deployments.apps"]]);
    // Used after a lost response and for a repeated Event, which these scenarios do not cover.
    const rare = ["get leases.coordination.k8s.io", "patch events"];
    const asked = new Set([...used, ...rare]);
    const unused = [...base, ...restarts].filter((right) => !asked.has(alike.get(right) ?? right));
    expect([...new Set(unused)]).toEqual([]);
  });

  it("to restart owners are not granted by the base manifests", () => {
    expect(restarts.filter((right) => base.includes(right))).toEqual([]);
  });
});
