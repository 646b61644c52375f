import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type AuditEntry, type AuditLog, createAuditLog } from "../support/audit-log.ts";
import { type ControlPlane, startControlPlane } from "../support/control-plane.ts";
import { writeKubeconfig } from "../support/control-plane-files.ts";
import { type Fault, type FaultCall, startFaultProxy } from "../support/fault-proxy.ts";
import { freePort } from "../support/free-port.ts";
import { createNodes } from "../support/kwok-fleet.ts";
import { type LastcallProcess, startAsPod } from "../support/lastcall-process.ts";
import { startTunnel } from "../support/tunnel.ts";
import { controllerUser } from "./fleet-world.ts";
import { isReady, nameOf } from "./history.ts";
import { mustRun } from "./must-run.ts";
import { makeDeparture, noticeOf } from "./raw-departure.ts";
import { untilAlive } from "./until-alive.ts";
import { spreadWorkload } from "./workload.ts";

const deploy = join(import.meta.dirname, "..", "..", "deploy");
const departuresPath = "/apis/lastcall.dev/v1alpha1/departures";
const podsPath = "/api/v1/namespaces/default/pods";
const podsPerNode = 2;
const noticeSeconds = 30;

/**
 * `Http`: a proxy that reads requests and speaks plain HTTP/1.1 to the controller. `Tls`: bytes are
 * forwarded unchanged, so the controller speaks TLS, and HTTP/2 if it wants, to the API server.
 */
export type Way = "Http" | "Tls";

/** Times since the Departure was sent to the API server, from the API server's audit log. */
export interface Reaction {
  readonly cordonMs: number;
  readonly firstEvictionMs: number;
}

interface Line {
  readonly blackHole: () => void;
  readonly close: () => Promise<void>;
  readonly kubeconfig: string;
}

/** Spot nodes with pods that may all leave, and a controller behind a proxy that injects faults. */
export class FaultWorld {
  readonly plane: ControlPlane;
  readonly #audit: AuditLog;
  readonly #folder = mkdtempSync(join(tmpdir(), "lastcall-fault-"));
  readonly #spare: string[];
  readonly #rows: string[] = [];
  #line: Line | undefined;
  #controller: LastcallProcess | undefined;
  #faultFor: (call: FaultCall) => Fault | undefined = () => undefined;
  #metricsAddress = "";
  #healthAddress = "";

  private constructor(plane: ControlPlane, audit: AuditLog, nodes: readonly string[]) {
    this.plane = plane;
    this.#audit = audit;
    this.#spare = [...nodes];
  }

  /** Resolves when the pods of that many nodes are ready; no controller runs yet. */
  static async start(nodeCount: number): Promise<FaultWorld> {
    const audit = createAuditLog();
    const plane = await startControlPlane({ apiServerFlags: audit.flags });
    await mustRun(plane, ["apply", "-k", join(deploy, "crds")]);
    for (const file of ["namespace.yaml", "rbac.yaml"]) {
      await mustRun(plane, ["apply", "-f", join(deploy, "base", file)]);
    }
    const nodes = Array.from({ length: nodeCount }, (_, place) => `spot-${place + 1}`);
    const plain = ["plain-1", "plain-2", "plain-3"];
    await createNodes(plane, [
      ...plain.map((name) => ({ name, provisioning: "standard" as const, cpu: "64" })),
      ...nodes.map((name) => ({ name, provisioning: "spot" as const })),
    ]);
    const world = new FaultWorld(plane, audit, nodes);
    await mustRun(
      plane,
      ["apply", "-f", "-"],
      spreadWorkload((nodeCount + plain.length) * podsPerNode, "100%"),
    );
    await world.until("the policy is there and departures can be listed", async () => {
      const applied = await plane.kubectl(["apply", "-f", "-"], { input: JSON.stringify(policy) });
      const { status } = await plane.request({ path: departuresPath });
      return applied.code === 0 && status === 200;
    });
    await world.until("every pod is ready", () => world.#arePodsReady());
    return world;
  }

  /** Starts a controller that reaches the API server this way, and waits until it leads. */
  async startController(way: Way): Promise<void> {
    this.#line = way === "Http" ? await this.#httpLine() : await this.#tlsLine();
    const [health, metrics] = [await freePort(), await freePort()];
    this.#healthAddress = `127.0.0.1:${health}`;
    this.#metricsAddress = `127.0.0.1:${metrics}`;
    this.#controller = startAsPod(
      [
        ...["run", "--kubeconfig", this.#line.kubeconfig],
        ...["--health-address", this.#healthAddress, "--metrics-address", this.#metricsAddress],
      ],
      { folder: this.#folder },
    );
    await this.until("the controller leads", async () =>
      this.#controller?.log().includes('"holder":'),
    );
  }

  async stopController(): Promise<void> {
    await this.#controller?.stop();
    await this.#line?.close();
    this.#controller = undefined;
    this.#line = undefined;
  }

  /** Injects faults from now on; undefined: none. Only for `Http`. */
  injectFaults(faultFor: (call: FaultCall) => Fault | undefined): void {
    this.#faultFor = faultFor;
  }

  blackHole(): void {
    this.#line?.blackHole();
  }

  /** The next node without a notice; throws if there is none. */
  takeNode(): string {
    const node = this.#spare.shift();
    if (node === undefined)
      throw new Error("Cannot take a node: all of them have had their notice");
    return node;
  }

  /**
   * Sends a notice and waits for the node's cordon and the first eviction of one of its pods.
   * `what` names the fault in the table of `npm run faults`.
   */
  async reactionOf(name: string, what: string): Promise<Reaction> {
    const path = `/api/v1/pods?fieldSelector=spec.nodeName%3D${name}`;
    const { items } = (await this.plane.request({ path })).body;
    const pods = new Set((items as { metadata: object }[]).map(nameOf));
    const { atMs: noticedAtMs } = await makeDeparture(this.plane, name, {
      spec: noticeOf(noticeSeconds),
    });
    const isCordon = (one: AuditEntry) =>
      one.verb === "patch" && one.resource === "nodes" && one.name === name && one.code === 200;
    const isEviction = (one: AuditEntry) =>
      one.subresource === "eviction" && pods.has(one.name) && one.code === 201;
    const reaction = await this.until(`${name} is cordoned and its first pod evicted`, async () => {
      const own = this.#audit.read().filter(({ user }) => user === controllerUser);
      const [cordon, eviction] = [own.find(isCordon), own.find(isEviction)];
      if (cordon === undefined || eviction === undefined) return undefined;
      return {
        cordonMs: Math.round(cordon.answeredAtUs / 1000 - noticedAtMs),
        firstEvictionMs: Math.round(eviction.answeredAtUs / 1000 - noticedAtMs),
      };
    });
    const inSeconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;
    const { cordonMs, firstEvictionMs } = reaction;
    this.#rows.push(`| ${what} | ${inSeconds(cordonMs)} | ${inSeconds(firstEvictionMs)} |`);
    return reaction;
  }

  /** The response of `/readyz`. */
  async readiness(): Promise<{ readonly status: number; readonly text: string }> {
    const answer = await fetch(`http://${this.#healthAddress}/readyz`);
    return { status: answer.status, text: await answer.text() };
  }

  async metrics(): Promise<string> {
    return (await fetch(`http://${this.#metricsAddress}/metrics`)).text();
  }

  until<T>(what: string, condition: () => Promise<T | false | undefined>): Promise<T> {
    const processes = this.#controller === undefined ? [] : [this.#controller];
    const living = { plane: this.plane, processes };
    return untilAlive(condition, { what, timeoutMs: 60_000 }, living);
  }

  async stop(): Promise<void> {
    if (process.env.E2E_TABLE !== undefined) console.log(this.#rows.join("\n"));
    await this.stopController();
    await this.plane.stop();
    this.#audit.remove();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #httpLine(): Promise<Line> {
    const { url, caFile } = this.plane;
    const proxy = await startFaultProxy({
      target: url,
      ca: () => readFileSync(caFile, "utf8"),
      faultFor: (call) => this.#faultFor(call),
    });
    const kubeconfig = await this.#kubeconfig(proxy.url);
    return { blackHole: () => proxy.blackHole(), close: () => proxy.close(), kubeconfig };
  }

  async #tlsLine(): Promise<Line> {
    const tunnel = await startTunnel(Number(new URL(this.plane.url).port));
    const kubeconfig = await this.#kubeconfig(`https://127.0.0.1:${tunnel.port}`);
    return { blackHole: () => tunnel.blackHole(), close: () => tunnel.close(), kubeconfig };
  }

  async #kubeconfig(url: string): Promise<string> {
    const file = join(this.#folder, `${new URL(url).port}.kubeconfig`);
    const token = await this.plane.tokenFor("lastcall", "lastcall");
    const authority = url.startsWith("https:") ? { caFile: this.plane.caFile } : {};
    writeKubeconfig({ file, url, ...authority, token, user: "lastcall" });
    return file;
  }

  async #arePodsReady(): Promise<boolean> {
    const { items } = (await this.plane.request({ path: podsPath })).body;
    return items.length > 0 && items.every(isReady);
  }
}

const policy = {
  apiVersion: "lastcall.dev/v1alpha1",
  kind: "DeparturePolicy",
  metadata: { name: "spot" },
  // Nodes leave only at notices.
  spec: { lifetime: {} },
};
