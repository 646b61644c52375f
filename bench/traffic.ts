/**
 * Requests through a load balancer of instances while one of four nodes gets a Spot notice, with
 * the action deregisterTargets and without it: how many fail. The controller is a separate process
 * on a model cluster, and the AWS SDK talks to our own Elastic Load Balancing server. Nothing but
 * the action changes the target group, as if an Auto Scaling group had registered the instances.
 * The machine is terminated at EC2's deadline, 120 s after the notice. All cases run at the same
 * time under one load.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { KubeObject } from "../src/contracts/kube-api.ts";
import { formatInstant, type Instant, millis, plus, seconds } from "../src/core/time/time.ts";
import { realClock } from "../src/runtime/real-clock.ts";
import type { ModelApi } from "../src/sim/api/model-api.ts";
import { serveModel } from "../src/sim/http/serve-model.ts";
import { startControllers } from "../src/sim/model-cluster.ts";
import { freePort } from "../test/support/free-port.ts";
import { startLastcall } from "../test/support/lastcall-process.ts";
import { LoadBalancerServer, type ServedGroup } from "../test/support/load-balancer-server.ts";
import { modelClusterApi } from "../test/support/model-cluster-api.ts";
import { NetworkServer } from "../test/support/network-server.ts";
import { HttpLoadBalancer, load, type NodePort, startNodePort } from "../test/support/traffic.ts";
import { waitUntil } from "../test/support/wait-until.ts";
import { webWorkload } from "../test/support/web-workload.ts";
import { type Figure, writeResult } from "./result-file.ts";

const setting = {
  nodes: 4,
  pods: 8,
  requestsPerSecond: 40,
  noticeSeconds: 120,
  afterwardsSeconds: 45,
  healthCheckSeconds: 10,
  healthCheckFailures: 2,
} as const;

type Policy = "Cluster" | "Local";

interface Case {
  readonly traffic: Policy;
  readonly actions: "with" | "without";
}

const cases: readonly Case[] = (["Cluster", "Local"] as const).flatMap((traffic) => [
  { traffic, actions: "without" },
  { traffic, actions: "with" },
]);

interface Model {
  readonly api: ModelApi;
  readonly nodes: readonly { readonly name: string; readonly instanceId: string }[];
}

async function startModel(): Promise<Model> {
  const api = await modelClusterApi(realClock);
  startControllers(api.context);
  const create = (path: string, body: KubeObject): KubeObject => {
    const answer = api.handle({ method: "POST", path, body });
    if (answer.status >= 300) throw new Error(JSON.stringify(answer.body));
    return answer.body as KubeObject;
  };
  const nodes = Array.from({ length: setting.nodes }, (_, place) => ({
    name: `ip-10-0-0-${place + 1}.eu-west-1.compute.internal`,
    instanceId: `i-${(place + 1).toString(16).padStart(17, "0")}`,
  }));
  for (const { name, instanceId } of nodes) {
    create("/api/v1/nodes", {
      apiVersion: "v1",
      kind: "Node",
      metadata: { name, labels: { "eks.amazonaws.com/capacityType": "SPOT" } },
      spec: { providerID: `aws:///eu-west-1a/${instanceId}` },
      status: {
        nodeInfo: { bootID: name },
        allocatable: { cpu: "4", memory: "16Gi", pods: "110" },
        capacity: { cpu: "4", memory: "16Gi", pods: "110" },
        conditions: [{ type: "Ready", status: "True" }],
      },
    } as KubeObject);
  }
  webWorkload({ create }, { replicas: setting.pods, maxUnavailable: 4 });
  return { api, nodes };
}

/** The nodes with running pods, once per pod: kube-proxy chooses from these. */
function runningOn({ api }: Model): readonly string[] {
  const { body } = api.handle({ method: "GET", path: "/api/v1/pods" });
  const { items = [] } = body as { items?: readonly KubeObject[] };
  return items.flatMap((pod) => {
    const { phase } = pod.status as { phase?: string };
    const { nodeName } = pod.spec as { nodeName?: string };
    return phase === "Running" && nodeName !== undefined ? [nodeName] : [];
  });
}

async function startNodes(model: Model, traffic: Policy): Promise<readonly NodePort[]> {
  return Promise.all(
    model.nodes.map(({ name }) =>
      startNodePort(() => {
        const running = runningOn(model);
        return traffic === "Cluster" ? running.length > 0 : running.includes(name);
      }),
    ),
  );
}

function policyOf({ actions }: Case): KubeObject {
  const out = { name: "targets", at: "AtNotice", deregisterTargets: { wait: true } };
  return {
    apiVersion: "lastcall.dev/v1alpha1",
    kind: "DeparturePolicy",
    metadata: { name: "spot" },
    spec: { lifetime: {}, ...(actions === "with" && { actions: [out] }) },
  };
}

function notice({ api, nodes }: Model, noticedAt: Instant): void {
  const name = nodes[0]?.name ?? "";
  const { body } = api.handle({ method: "GET", path: `/api/v1/nodes/${name}` });
  const { uid = "" } = (body as KubeObject).metadata ?? {};
  const answer = api.handle({
    method: "POST",
    path: "/apis/lastcall.dev/v1alpha1/departures",
    body: {
      apiVersion: "lastcall.dev/v1alpha1",
      kind: "Departure",
      metadata: { name: `${name}-${uid.slice(0, 8)}` },
      spec: {
        ...{ node: { name, uid }, cause: "SpotInterruption", source: "agent/aws/spot" },
        noticedAt: formatInstant(noticedAt),
        deadlineAt: formatInstant(plus(noticedAt, seconds(setting.noticeSeconds))),
      },
    } as KubeObject,
  });
  if (answer.status !== 201) throw new Error(JSON.stringify(answer.body));
}

async function measure(one: Case): Promise<Figure> {
  const folder = mkdtempSync(join(tmpdir(), "lastcall-traffic-"));
  const model = await startModel();
  const server = await serveModel({ api: model.api });
  const [balancers, ec2] = [
    await new LoadBalancerServer().start(),
    await new NetworkServer().start(),
  ];
  const ports = await startNodes(model, one.traffic);
  const targets = model.nodes.map(({ instanceId: id }) => ({ id, port: 30_080 }));
  const group = balancers.addGroup("web", { drainMs: 20_000, targets });
  const balancer = await balancerOf({ balancers, group, model, ports });
  model.api.handle({
    method: "POST",
    path: "/apis/lastcall.dev/v1alpha1/departurepolicies",
    body: policyOf(one),
  });
  writeFileSync(join(folder, "kubeconfig"), server.kubeconfig);
  const health = `127.0.0.1:${await freePort()}`;
  const controller = startLastcall(
    [
      ...["run", "--kubeconfig", join(folder, "kubeconfig"), "--leader-elect=false"],
      ...["--health-address", health, "--metrics-address", `127.0.0.1:${await freePort()}`],
    ],
    {
      folder,
      env: {
        ...{ AWS_REGION: "eu-west-1", AWS_ACCESS_KEY_ID: "test", AWS_SECRET_ACCESS_KEY: "test" },
        ...{ AWS_ENDPOINT_URL: balancers.url, AWS_ENDPOINT_URL_EC2: ec2.url },
      },
    },
  );
  const wait = { timeoutMs: 60_000, signal: controller.death };
  const isReady = async () =>
    (await fetch(`http://${health}/readyz`).catch(() => undefined))?.ok === true &&
    runningOn(model).length === setting.pods;
  await waitUntil(isReady, { what: "the controller and all pods are ready", ...wait });
  await realClock.sleep(seconds(5));
  const spanMs = (setting.noticeSeconds + setting.afterwardsSeconds) * 1000;
  const loading = load(balancer.url, { perSecond: setting.requestsPerSecond, spanMs });
  await realClock.sleep(seconds(5));
  const noticedAt = realClock.now();
  notice(model, noticedAt);
  await realClock.sleep(millis(noticedAt + setting.noticeSeconds * 1000 - realClock.now()));
  // EC2 terminates the machine, whatever still uses it.
  await ports[0]?.kill();
  model.api.handle({ method: "DELETE", path: `/api/v1/nodes/${model.nodes[0]?.name}` });
  const { sent, failed } = await loading;
  await controller.stop();
  await Promise.all([balancer.close(), server.close(), balancers.stop(), ec2.stop()]);
  await Promise.all(ports.map((port) => port.kill()));
  rmSync(folder, { recursive: true, force: true });
  const name = `failed of ${sent} requests, externalTrafficPolicy ${one.traffic}, ${one.actions} deregisterTargets`;
  const goal = one.actions === "with" ? { goal: 0 } : {};
  return { name, value: failed, unit: "requests", ...goal };
}

function balancerOf(parts: {
  readonly balancers: LoadBalancerServer;
  readonly group: ServedGroup;
  readonly model: Model;
  readonly ports: readonly NodePort[];
}): Promise<HttpLoadBalancer> {
  const { balancers, group, model, ports } = parts;
  const { healthCheckSeconds, healthCheckFailures } = setting;
  return HttpLoadBalancer.start({
    ...{ healthCheckMs: healthCheckSeconds * 1000, unhealthyAfter: healthCheckFailures },
    targets: () => {
      const serving = balancers.serving(group);
      return model.nodes.flatMap(({ instanceId }, place) => {
        const isServing = serving.some((target) => target.startsWith(`${instanceId}:`));
        return isServing ? [ports[place]?.url ?? ""] : [];
      });
    },
  });
}

const figures = await Promise.all(cases.map(measure));
writeResult({ bench: "traffic", setting, figures });
process.exit();
