import { describe, expect, it } from "vitest";
import { formatInstant, hours, minutes, plus } from "../../src/core/time/time.ts";
import { LastcallError } from "../../src/errors.ts";
import { KubeGateSource } from "../../src/kube/gate-source.ts";
import { dawn, ModelWorld, spotPolicy } from "../support/model-world.ts";

const alerts = { url: "http://alertmanager:9093", matchers: ['severity="critical"'] };

interface Scene {
  readonly world: ModelWorld;
  /** The firing alerts, or the error of the request to Alertmanager. */
  alertmanager: readonly string[] | LastcallError;
  readonly asked: (typeof alerts)[];
  readonly troubles: unknown[];
  end(): Promise<void>;
}

/** Two nodes that leave at 01:45 and 03:30, the deadline of both, under a policy with gates. */
function scene(gates: object, nodes = ["n0", "n1"]): Scene {
  const world = new ModelWorld();
  for (const [index, name] of nodes.entries()) world.addNode(name, "abc"[index % 3] as string);
  const spacing = { mode: "Even" };
  spotPolicy(world, { lifetime: { min: "10m", max: "4h", reserve: "30m" }, spacing, gates });
  const stop = new AbortController();
  const asked: (typeof alerts)[] = [];
  const troubles: unknown[] = [];
  const one: Scene = {
    ...{ world, alertmanager: [], asked, troubles },
    end: async () => {
      stop.abort();
      await running;
    },
  };
  const source = new KubeGateSource({
    ...{ api: world.api, clock: world.clock },
    firingAlerts: async (question) => {
      asked.push(question as typeof alerts);
      if (one.alertmanager instanceof LastcallError) throw one.alertmanager;
      return one.alertmanager;
    },
    onError: (error) => troubles.push(error),
  });
  const running = world.startController(stop.signal, { gates: source });
  return one;
}

interface PodInput {
  readonly node: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly spec?: object;
}

function addPod({ world }: Scene, { node, labels = {}, annotations = {}, spec }: PodInput): void {
  world.create("/api/v1/namespaces/default/pods", {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: `on-${node}`, namespace: "default", labels, annotations },
    spec: { ...spec, nodeName: node, containers: [{ name: "main", image: "main:1" }] },
  });
}

const cordons = ({ world }: Scene) => world.steps.filter((step) => step.startsWith("cordon"));

describe("a departure that is due", () => {
  it("is held while alerts fire, and starts once they stop", async () => {
    const told = scene({ alerts });
    told.alertmanager = ["ClusterDown", "QueueLong"];
    await told.world.pass(minutes(8));
    expect(told.asked, "before a departure is near").toEqual([]);
    await told.world.pass(hours(2.8));
    expect(cordons(told)).toEqual([]);
    const first = ["n0", "n1"].find((name) => told.world.statusOf(name).phase === "Held") ?? "";
    expect(told.world.statusOf(first)).toMatchObject({
      reason: "AlertsFiring",
      message: expect.stringContaining("ClusterDown, QueueLong"),
    });
    expect(told.asked[0]).toEqual(alerts);

    told.alertmanager = [];
    await told.world.pass(minutes(2));
    expect(cordons(told)).toEqual([`cordon ${first}`]);
    await told.end();
  });

  it("is held until its deadline, but not longer, if Alertmanager cannot be reached", async () => {
    const told = scene({ alerts });
    told.alertmanager = new LastcallError("API_UNREACHABLE", "Cannot ask Alertmanager: gone");
    await told.world.pass(hours(3.4));
    expect(cordons(told)).toEqual([]);
    expect(told.troubles).toContain(told.alertmanager);

    await told.world.pass(hours(0.2));
    expect(cordons(told)).not.toEqual([]);
    const started = told.world.events.find(({ reason }) => reason === "DepartureStarted");
    expect(started?.message).toMatch(
      /^n[01] leaves now, because its deadline 2026-11-20T03:30:00.000Z allows no later start\.$/,
    );
    await told.end();
  });

  it("is held only on the node of a blocking pod, until that pod is gone", async () => {
    const told = scene({ blockingPods: [{ matchLabels: { job: "batch" } }] });
    addPod(told, { node: "n0", labels: { job: "batch" } });
    addPod(told, { node: "n1", labels: { job: "other" } });
    await told.world.pass(hours(3.4));
    expect(told.world.statusOf("n0")).toMatchObject({
      reason: "BlockingPod",
      message: "n0 waits for the blocking pod default/on-n0.",
    });
    expect(cordons(told)).not.toContain("cordon n0");

    told.world.api.handle({ method: "DELETE", path: "/api/v1/namespaces/default/pods/on-n0" });
    await told.world.pass(minutes(3));
    expect(cordons(told)).toContain("cordon n0");
    await told.end();
  });

  it("is held on the nodes of a workload that runs on both, even at their deadlines", async () => {
    const told = scene({});
    for (const node of ["n0", "n1"])
      addPod(told, { node, labels: { "jobset.sigs.k8s.io/jobset-name": "train" } });
    await told.world.pass(hours(3.6));
    expect(cordons(told)).toEqual([]);
    expect(told.world.statusOf("n0")).toMatchObject({
      reason: "GangWorkload",
      message:
        "n0 does not leave on its own, because that would end a workload on several nodes: JobSet default/train on n0, n1.",
    });

    // Once the workload has ended on the other node, this one has all of it.
    told.world.api.handle({ method: "DELETE", path: "/api/v1/namespaces/default/pods/on-n1" });
    await told.world.pass(minutes(3));
    expect(cordons(told)).not.toEqual([]);
    await told.end();
  });

  it.each<[string, Omit<PodInput, "node">]>([
    ["an annotation", { annotations: { "scheduling.k8s.io/group-name": "train" } }],
    ["its spec", { spec: { schedulingGroup: { podGroupName: "train" } } }],
  ])("is held on the nodes of a workload that only %s shows", async (_, pod) => {
    const told = scene({});
    for (const node of ["n0", "n1"]) addPod(told, { node, ...pod });
    await told.world.pass(hours(3.6));
    expect(cordons(told)).toEqual([]);
    expect(told.world.statusOf("n1")).toMatchObject({
      reason: "GangWorkload",
      message: expect.stringContaining("pod group default/train on n0, n1"),
    });
    await told.end();
  });

  it("is not held by a workload on several nodes if the policy allows its end", async () => {
    const told = scene({ gangWorkloads: "Allow" });
    for (const node of ["n0", "n1"])
      addPod(told, { node, labels: { "jobset.sigs.k8s.io/jobset-name": "train" } });
    await told.world.pass(hours(3.6));
    expect(cordons(told)).toHaveLength(2);
    await told.end();
  });

  it("is held for pods that match label expressions, and for no others", async () => {
    const blockingPods = [
      {
        matchExpressions: [
          { key: "tier", operator: "In", values: ["db", "queue"] },
          { key: "spare", operator: "DoesNotExist" },
        ],
      },
    ];
    const told = scene({ blockingPods });
    addPod(told, { node: "n0", labels: { tier: "db" } });
    addPod(told, { node: "n1", labels: { tier: "db", spare: "yes" } });
    await told.world.pass(hours(3.4));
    expect(cordons(told)).not.toContain("cordon n0");
    await told.world.pass(hours(0.2));
    expect(cordons(told)).toContain("cordon n1");
    await told.end();
  });

  it("is held until freezeUntil", async () => {
    const told = scene({ freezeUntil: formatInstant(plus(dawn, hours(3))) }, ["n0"]);
    await told.world.pass(hours(2.9));
    expect(cordons(told)).toEqual([]);
    await told.world.pass(hours(0.7));
    expect(cordons(told)).toEqual(["cordon n0"]);
    await told.end();
  });

  it("says in its Departure when the freeze ends, also when that changes", async () => {
    const gates = (freezeUntil: string) => ({ gates: { freezeUntil } });
    const told = scene(gates("2026-11-20T03:00:00Z").gates);
    await told.world.pass(hours(2));
    const first = ["n0", "n1"].find((name) => told.world.statusOf(name).phase === "Held") ?? "";
    const message = () => (told.world.statusOf(first) as { message?: string }).message;
    expect(message()).toBe(`${first} waits until the freeze ends at 2026-11-20T03:00:00.000Z.`);
    told.world.patchPolicy({ spec: gates("2026-11-20T02:30:00Z") });
    await told.world.pass(minutes(1));
    expect(message()).toBe(`${first} waits until the freeze ends at 2026-11-20T02:30:00.000Z.`);
    expect(told.world.statusOf(first).phase).toBe("Held");
    await told.end();
  });
});
