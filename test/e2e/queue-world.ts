import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Node, Pod } from "kubernetes-types/core/v1.js";
import { type AuditLog, createAuditLog } from "../support/audit-log.ts";
import { AutoScalingServer } from "../support/auto-scaling-server.ts";
import { type ControlPlane, startControlPlane } from "../support/control-plane.ts";
import { writeKubeconfig } from "../support/control-plane-files.ts";
import { freePort } from "../support/free-port.ts";
import { createNodes, deleteNode } from "../support/kwok-fleet.ts";
import { type LastcallProcess, startAsPod } from "../support/lastcall-process.ts";
import { Moto } from "../support/moto.ts";
import { controllerUser } from "./fleet-world.ts";
import { type History, isReady, nameOf, type RawDeparture } from "./history.ts";
import { mustRun } from "./must-run.ts";
import { Onlooker } from "./onlooker.ts";
import { untilAlive } from "./until-alive.ts";
import { spreadWorkload } from "./workload.ts";

const deploy = join(import.meta.dirname, "..", "..", "deploy");
const departuresPath = "/apis/lastcall.dev/v1alpha1/departures";
const settleMs = 90_000;
const podsPerSpotNode = 3;

export interface QueueNode {
  readonly name: string;
  readonly instanceId: string;
}

/**
 * A control plane with Spot nodes labeled as in EKS, capacity for their pods on other nodes, moto's
 * queue, and an onlooker.
 */
export class QueueWorld {
  readonly plane: ControlPlane;
  readonly moto: Moto;
  readonly autoScaling: AutoScalingServer;
  readonly onlooker: Onlooker;
  readonly nodes: readonly QueueNode[];
  readonly #audit: AuditLog;
  readonly #folder = mkdtempSync(join(tmpdir(), "lastcall-queue-"));
  readonly #processes = new Set<LastcallProcess>();
  metricsUrl = "";
  /** The URL at which a controller reaches the API server, if not its own. */
  server: string | undefined;
  /** Additional environment variables of a controller. */
  environment: Readonly<Record<string, string>> = {};

  private constructor(parts: {
    readonly plane: ControlPlane;
    readonly moto: Moto;
    readonly autoScaling: AutoScalingServer;
    readonly audit: AuditLog;
    readonly nodes: readonly QueueNode[];
  }) {
    this.plane = parts.plane;
    this.moto = parts.moto;
    this.autoScaling = parts.autoScaling;
    this.nodes = parts.nodes;
    this.#audit = parts.audit;
    this.onlooker = new Onlooker(parts.plane);
  }

  /** `bootID` is that of this machine, for agents that run on it: their notices must match. */
  static async start(
    spotNodes: number,
    machines: { readonly bootID?: string } = {},
  ): Promise<QueueWorld> {
    const audit = createAuditLog();
    const [plane, moto, autoScaling] = await Promise.all([
      startControlPlane({ apiServerFlags: audit.flags }),
      Moto.start(),
      new AutoScalingServer().start(),
    ]);
    for (const file of ["crds", "base/namespace.yaml", "base/rbac.yaml"]) {
      await mustRun(plane, ["apply", file === "crds" ? "-k" : "-f", join(deploy, file)]);
    }
    const nodes = await registerFleet(plane, spotNodes, machines);
    const replicas = spotNodes * podsPerSpotNode;
    await mustRun(plane, ["apply", "-f", "-"], spreadWorkload(replicas, "50%"));
    const world = new QueueWorld({ plane, moto, autoScaling, audit, nodes });
    await world.until("departures can be listed", async () => {
      return (await plane.request({ path: departuresPath })).status === 200;
    });
    await world.until("every pod is ready", () => world.arePodsReady(replicas));
    await mustRun(plane, ["apply", "-f", "-"], {
      apiVersion: "lastcall.dev/v1alpha1",
      kind: "DeparturePolicy",
      metadata: { name: "spot" },
      spec: { lifetime: {} },
    });
    await world.onlooker.start();
    return world;
  }

  /** Starts `lastcall run` with the queue; messages sent before it leads wait there. */
  async startController(...more: readonly string[]): Promise<LastcallProcess> {
    const token = await this.plane.tokenFor("lastcall", "lastcall");
    const kubeconfig = this.#kubeconfig(token);
    const [health, metrics] = [await freePort(), await freePort()];
    const process = startAsPod(
      [
        ...["run", "--kubeconfig", kubeconfig, "--sqs-queue-url", this.moto.queueUrl, ...more],
        ...["--health-address", `127.0.0.1:${health}`, "--metrics-address", `127.0.0.1:${metrics}`],
      ],
      {
        folder: this.#folder,
        env: {
          ...this.moto.environment,
          AWS_ENDPOINT_URL_AUTO_SCALING: this.autoScaling.url,
          ...this.environment,
        },
      },
    );
    this.#processes.add(process);
    void process.ended.then(() => this.#processes.delete(process));
    this.metricsUrl = `http://127.0.0.1:${metrics}/metrics`;
    return process;
  }

  #kubeconfig(token: string): string {
    if (this.server === undefined) return this.plane.kubeconfigFor("lastcall", token);
    const file = join(this.#folder, "relay.kubeconfig");
    writeKubeconfig({ file, url: this.server, token, user: "lastcall" });
    return file;
  }

  /**
   * The value of the controller's metric with that name and those labels; 0 if it is absent.
   */
  async counted(series: string): Promise<number> {
    const text = await (await fetch(this.metricsUrl)).text();
    const line = text.split("\n").find((one) => one.startsWith(`${series} `));
    return Number(line?.split(" ").at(-1) ?? 0);
  }

  async departures(): Promise<readonly RawDeparture[]> {
    return (await this.plane.request({ path: departuresPath })).body.items;
  }

  async cordoned(): Promise<readonly string[]> {
    const { body } = await this.plane.request({ path: "/api/v1/nodes" });
    return (body.items as Node[]).filter((one) => one.spec?.unschedulable === true).map(nameOf);
  }

  async podsOn(node: QueueNode): Promise<readonly Pod[]> {
    const path = `/api/v1/pods?fieldSelector=spec.nodeName%3D${node.name}`;
    return (await this.plane.request({ path })).body.items;
  }

  /** Removes the Node, as the cloud provider does when the machine is gone. */
  async take(node: QueueNode): Promise<void> {
    await deleteNode(this.plane, node.name);
  }

  async arePodsReady(count: number): Promise<boolean> {
    const { body } = await this.plane.request({ path: "/api/v1/namespaces/default/pods" });
    return body.items.length === count && body.items.every(isReady);
  }

  history(): History {
    const audit = this.#audit.read().filter(({ user }) => user === controllerUser);
    return { changes: this.onlooker.changes(), audit, releases: [], machineEnds: [] };
  }

  until<T>(
    what: string,
    condition: () => Promise<T | false | undefined>,
    timeoutMs = settleMs,
  ): Promise<T> {
    const living = { plane: this.plane, processes: this.#processes };
    return untilAlive(condition, { what, timeoutMs }, living);
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#processes].map((one) => one.kill()));
    await this.onlooker.stop();
    await this.moto.stop();
    await this.autoScaling.stop();
    await this.plane.stop();
    this.#audit.remove();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** Spot nodes with the label of EKS, and three other nodes without an owner. */
async function registerFleet(
  plane: ControlPlane,
  count: number,
  machines: { readonly bootID?: string },
): Promise<readonly QueueNode[]> {
  const fleet = Array.from({ length: count }, (_, place) => ({
    name: `ip-10-0-0-${place + 1}.eu-west-1.compute.internal`,
    instanceId: `i-0${String(place + 1).padStart(16, "0")}`,
  }));
  const zone = "eu-west-1a";
  const plain = ["plain-1", "plain-2", "plain-3"];
  await createNodes(plane, [
    ...plain.map((name) => ({ name, zone, provisioning: "standard" as const })),
    ...fleet.map(({ name, instanceId }) => ({
      ...{ name, zone, provisioning: "standard" as const },
      providerID: `aws:///${zone}/${instanceId}`,
      labels: { "eks.amazonaws.com/capacityType": "SPOT" },
      ...machines,
    })),
  ]);
  return fleet;
}
