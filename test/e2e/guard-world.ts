/** An API server with two nodes, and the requests that its admission policies judge. */
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { NodeIdentity } from "../../src/core/cluster/node.ts";
import { departureName } from "../../src/core/departure/departure.ts";
import type { ApiAnswer } from "../support/api-request.ts";
import { type ControlPlane, startControlPlane } from "../support/control-plane.ts";
import { waitUntil } from "../support/wait-until.ts";
import type { Account, Installed } from "./installed-guards.ts";
import { mustRun } from "./must-run.ts";

const strategic = "application/strategic-merge-patch+json";
const containers = [{ name: "main", image: "registry.example/main:1" }];

function pod(name: string, spec: object): object {
  return { apiVersion: "v1", kind: "Pod", metadata: { name }, spec: { containers, ...spec } };
}

export const privileged = pod("evil", {
  containers: [{ ...containers[0], securityContext: { privileged: true } }],
});
export const otherImage = { spec: { containers: [{ name: "main", image: "evil:1" }] } };

export type Requests = ReturnType<GuardWorld["requestsWith"]>;

export class GuardWorld {
  readonly plane: ControlPlane;
  /** A folder for files, which is removed with the world. */
  readonly home: string;
  readonly #nodes = new Map<string, NodeIdentity>();
  /** Of the pods `on-n1` and `on-n2`, by their node. */
  readonly #podUids = new Map<string, string>();

  private constructor(plane: ControlPlane) {
    this.plane = plane;
    this.home = mkdtempSync(join(tmpdir(), "lastcall-guards-"));
  }

  /** The nodes `n1` and `n2` with a pod each, and a Deployment. */
  static async start(): Promise<GuardWorld> {
    const none = { withControllerManager: false, withScheduler: false, withKwok: false };
    const world = new GuardWorld(await startControlPlane(none));
    await mustRun(world.plane, ["create", "serviceaccount", "default"]);
    for (const name of ["n1", "n2"]) {
      const object = { apiVersion: "v1", kind: "Node", metadata: { name } };
      const { body } = await world.#create("/api/v1/nodes", object);
      world.#nodes.set(name, { name, uid: body.metadata.uid });
      const itsPod = pod(`on-${name}`, { nodeName: name });
      const made = await world.#create("/api/v1/namespaces/default/pods", itsPod);
      world.#podUids.set(name, made.body.metadata.uid);
    }
    const labels = { app: "web" };
    await world.#create("/apis/apps/v1/namespaces/default/deployments", {
      ...{ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "web" } },
      spec: {
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers } },
      },
    });
    return world;
  }

  async stop(): Promise<void> {
    await this.plane.stop();
    rmSync(this.home, { recursive: true, force: true });
  }

  node(name: string): NodeIdentity {
    return this.#nodes.get(name) as NodeIdentity;
  }

  /** A token as the kubelet of `n1` gets it for a pod of this account. */
  async tokenOnNode({ namespace, name }: Account): Promise<string> {
    const account = { serviceAccountName: name, nodeName: "n1" };
    const path = `/api/v1/namespaces/${namespace}`;
    const stolen = await this.#create(`${path}/pods`, pod(`stolen-${randomUUID()}`, account));
    const { metadata } = stolen.body;
    const { body } = await this.#create(`${path}/serviceaccounts/${name}/token`, {
      ...{ apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest" },
      spec: {
        boundObjectRef: { apiVersion: "v1", kind: "Pod", name: metadata.name, uid: metadata.uid },
      },
    });
    return String(body.status.token);
  }

  /** A token that is bound to nothing. */
  tokenOf({ namespace, name }: Account): Promise<string> {
    return this.plane.tokenFor(namespace, name);
  }

  async administratorsToken(): Promise<string> {
    await this.plane.kubectl(["create", "serviceaccount", "gitops"]);
    await this.plane.kubectl([
      ...["create", "clusterrolebinding", "gitops", "--clusterrole=cluster-admin"],
      "--serviceaccount=default:gitops",
    ]);
    return this.plane.tokenFor("default", "gitops");
  }

  /** As dry runs, which are judged like any other request. */
  requestsWith(token: string | undefined) {
    const send = (method: string, path: string, body?: object) =>
      this.plane.request({
        ...{ method, path: `${path}?dryRun=All` },
        ...(body && { body }),
        ...(method === "PATCH" && { contentType: strategic }),
        ...(token !== undefined && { token }),
      });
    const pods = "/api/v1/namespaces/default/pods";
    const label = { metadata: { labels: { a: "b" } } };
    return {
      depart: (name: string) =>
        send("POST", "/apis/lastcall.dev/v1alpha1/departures", this.#departure(name)),
      label: (name: string) => send("PATCH", `/api/v1/nodes/${name}`, label),
      mark: (name: string) => send("PATCH", `/api/v1/nodes/${name}`, this.#marked(name)),
      remove: (name: string) => send("DELETE", `${pods}/on-${name}`),
      evict: (name: string) =>
        send("POST", `${pods}/on-${name}/eviction`, {
          ...{ apiVersion: "policy/v1", kind: "Eviction", metadata: { name: `on-${name}` } },
          deleteOptions: { preconditions: { uid: this.#podUids.get(name) } },
        }),
      run: (namespace: string, body: object) =>
        send("POST", `/api/v1/namespaces/${namespace}/pods`, body),
      change: (template: object) =>
        send("PATCH", "/apis/apps/v1/namespaces/default/deployments/web", { spec: { template } }),
    };
  }

  #departure(name: string): object {
    const node = this.node(name);
    return {
      ...{ apiVersion: "lastcall.dev/v1alpha1", kind: "Departure" },
      metadata: { name: departureName(node) },
      spec: {
        ...{ node, cause: "SpotInterruption", noticedAt: "2026-11-20T00:00:00Z" },
        source: "agent/aws/spot-instance-action",
      },
    };
  }

  #marked(name: string): object {
    const annotations = { "lastcall.dev/departure": departureName(this.node(name)) };
    return { metadata: { annotations }, spec: { unschedulable: true } };
  }

  /** Permissions and policies reach the API server's watches one by one. */
  async untilInForce({ agent, controller }: Installed, agentToken: string): Promise<void> {
    const stolen = this.requestsWith(agentToken);
    const own = this.requestsWith(await this.tokenOf(controller));
    for (const refusal of [
      () => stolen.depart("n2"),
      () => stolen.label("n1"),
      () => stolen.remove("n2"),
      () => stolen.evict("n2"),
      () => own.run(agent.namespace, privileged),
      () => own.change(otherImage),
    ]) {
      const isJudged = async () =>
        String((await refusal()).body.message).includes("ValidatingAdmissionPolicy");
      const what = `a policy judges ${refusal}`;
      await waitUntil(isJudged, { what, timeoutMs: 60_000, signal: this.plane.signal });
    }
  }

  async #create(path: string, body: object): Promise<ApiAnswer> {
    const answer = await this.plane.request({ method: "POST", path, body });
    if (answer.status === 201) return answer;
    throw new Error(`Cannot create ${path}: ${answer.status} ${answer.body.message}`);
  }
}
