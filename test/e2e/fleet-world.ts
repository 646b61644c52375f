import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Node } from "kubernetes-types/core/v1.js";
import { type AuditLog, createAuditLog } from "../support/audit-log.ts";
import { type ControlPlane, startControlPlane } from "../support/control-plane.ts";
import { writeKubeconfig } from "../support/control-plane-files.ts";
import { freePort } from "../support/free-port.ts";
import { createNodes } from "../support/kwok-fleet.ts";
import { type LastcallProcess, startAsPod } from "../support/lastcall-process.ts";
import { waitUntil } from "../support/wait-until.ts";
import { Cloud, type CloudOptions, generationLabel } from "./cloud.ts";
import type { FleetCloud, GrowingCloud } from "./fleet-cloud.ts";
import { type History, isReady, keyOf, nameOf, type RawDeparture } from "./history.ts";
import type { Charge } from "./judge.ts";
import { mustRun } from "./must-run.ts";
import { brokenRules, type Observed } from "./observed-trace.ts";
import { Onlooker } from "./onlooker.ts";
import { untilAlive } from "./until-alive.ts";
import { podCount, workload } from "./workload.ts";

const zones = ["europe-west1-b", "europe-west1-c", "europe-west1-d"];
const deploy = join(import.meta.dirname, "..", "..", "deploy");
const departuresPath = "/apis/lastcall.dev/v1alpha1/departures";
const settleMs = 120_000;

export const controllerUser = "system:serviceaccount:lastcall:lastcall";

/** Nodes of the first generation are rotated; their replacements are not. */
const firstGeneration = {
  nodeSelectorTerms: [
    { matchExpressions: [{ key: generationLabel, operator: "In", values: ["1"] }] },
  ],
};

/** The defaults of the fields that rules ask for; docs/reference/departure-policy.md. */
const defaultPolicy: Observed["policy"] = {
  drain: { onTimeout: "RollBack" },
  instance: { release: "Recreate" },
};

type Fields = Readonly<Record<string, unknown>>;

/** A policy's spec, of which the rules read two fields. */
interface PolicyFields {
  readonly drain?: Partial<Observed["policy"]["drain"]> & Fields;
  readonly instance?: Partial<Observed["policy"]["instance"]> & Fields;
  readonly [field: string]: unknown;
}

export interface FleetOptions extends CloudOptions {
  /** A cloud other than Compute Engine. */
  readonly elsewhere?: (plane: ControlPlane) => Promise<FleetCloud>;
  /** A cloud that creates the nodes itself. */
  readonly growing?: (plane: ControlPlane) => Promise<GrowingCloud>;
  /** Nothing of Lastcall is installed: the test does that, and then starts the onlooker. */
  readonly bare?: boolean;
}

/**
 * A control plane with nine nodes in three zones, sixty pods with budgets, a cloud and an onlooker.
 */
export class FleetWorld {
  readonly plane: ControlPlane;
  readonly cloud: Cloud;
  readonly onlooker: Onlooker;
  readonly nodes: readonly Node[];
  readonly #elsewhere: FleetCloud | undefined;
  readonly #growing: GrowingCloud | undefined;
  readonly #audit: AuditLog;
  readonly #folder: string;
  readonly #processes = new Set<LastcallProcess>();
  #policy: Observed["policy"] = defaultPolicy;

  private constructor(parts: {
    readonly plane: ControlPlane;
    readonly cloud: Cloud;
    readonly elsewhere: FleetCloud | undefined;
    readonly growing: GrowingCloud | undefined;
    readonly audit: AuditLog;
    readonly nodes: readonly Node[];
  }) {
    this.#elsewhere = parts.elsewhere;
    this.#growing = parts.growing;
    this.plane = parts.plane;
    this.cloud = parts.cloud;
    this.nodes = parts.nodes;
    this.#audit = parts.audit;
    this.onlooker = new Onlooker(parts.plane, parts.growing?.watched);
    this.#folder = mkdtempSync(join(tmpdir(), "lastcall-world-"));
  }

  /** Resolves when all of it runs, the RBAC of `deploy/` is applied, and every pod is ready. */
  static async start(cloudOptions: FleetOptions = {}): Promise<FleetWorld> {
    const audit = createAuditLog();
    const plane = await startControlPlane({ apiServerFlags: audit.flags });
    const cloud = await Cloud.start(plane, cloudOptions);
    if (cloudOptions.bare !== true) await install(plane);
    const elsewhere = await cloudOptions.elsewhere?.(plane);
    const growing = await cloudOptions.growing?.(plane);
    const nodes = (await growing?.grow()) ?? (await registerFleet(plane, elsewhere));
    if (elsewhere !== undefined) await elsewhere.open();
    else cloud.adopt(nodes.map((node) => ({ name: nameOf(node), zone: zoneOf(node) })));
    if (growing === undefined) await mustRun(plane, ["apply", "-f", "-"], workload());
    const world = new FleetWorld({ plane, cloud, elsewhere, growing, audit, nodes });
    if (cloudOptions.bare !== true) {
      await world.until("departures can be listed", () => world.#areDeparturesServed());
    }
    await world.until("every pod is ready and every budget knows it", () => world.#isCalm());
    if (cloudOptions.bare !== true) await world.onlooker.start();
    return world;
  }

  get charge(): Charge {
    const heirs = this.#elsewhere && { heirs: /^(new-|aks-spot-)/ };
    return { rotated: this.nodes.map(keyOf), user: controllerUser, atOnce: 1, ...heirs };
  }

  /** A kubeconfig of the controller's own ServiceAccount. */
  async controllerKubeconfig(server?: string): Promise<string> {
    const token = await this.plane.tokenFor("lastcall", "lastcall");
    if (server === undefined) return this.plane.kubeconfigFor("lastcall", token);
    return this.#writeKubeconfig(server, token);
  }

  /** Starts `lastcall run` in a process of its own. */
  async startController(
    kubeconfig: string,
    more: readonly string[] = [],
  ): Promise<LastcallProcess> {
    const address = async () => `127.0.0.1:${await freePort()}`;
    const process = startAsPod(
      [
        ...["run", "--kubeconfig", kubeconfig, "--gcp-endpoint", this.cloud.endpoint],
        ...["--health-address", await address(), "--metrics-address", await address()],
        ...(this.#elsewhere?.flags ?? []),
        ...more,
      ],
      { folder: this.#folder, env: this.#elsewhere?.environment ?? {} },
    );
    this.#processes.add(process);
    void process.ended.then(() => this.#processes.delete(process));
    return process;
  }

  /** Applies a policy for the first generation of nodes, as a person would. */
  async applyPolicy(spec: PolicyFields): Promise<void> {
    const { drain, instance } = spec;
    this.#policy = {
      drain: { ...defaultPolicy.drain, ...drain },
      instance: { ...defaultPolicy.instance, ...instance },
    };
    await mustRun(this.plane, ["apply", "-f", "-"], {
      apiVersion: "lastcall.dev/v1alpha1",
      kind: "DeparturePolicy",
      metadata: { name: "spot" },
      spec: { nodeSelector: firstGeneration, budgets: [{ nodes: 1 }], ...spec },
    });
  }

  async departures(): Promise<readonly RawDeparture[]> {
    return (await this.plane.request({ path: departuresPath })).body.items;
  }

  /** All nodes have departed, the fleet is complete again and every pod is ready. */
  async isRotated(): Promise<boolean> {
    const departures = await this.departures();
    const ended = departures.filter(({ status }) => status?.phase === "Ended");
    if (ended.length < this.nodes.length || ended.length < departures.length) return false;
    const { body } = await this.plane.request({ path: "/api/v1/nodes" });
    const nodes: readonly Node[] = body.items;
    const whole = nodes.length === this.nodes.length && nodes.every(isReady);
    return whole && (await this.#isCalm());
  }

  /** Every departure has ended, the fleet is complete again and every pod is ready. */
  async isAtRest(): Promise<boolean> {
    const departures = await this.departures();
    if (departures.some(({ status }) => status?.phase !== "Ended")) return false;
    const { body } = await this.plane.request({ path: "/api/v1/nodes" });
    const nodes: readonly Node[] = body.items;
    const fit = nodes.filter((node) => isReady(node) && node.spec?.unschedulable !== true);
    return fit.length === this.nodes.length && (await this.#isCalm());
  }

  async history(): Promise<History> {
    const seen = { changes: this.onlooker.changes(), audit: this.#audit.read() };
    const machines = this.#growing?.machinesOf(seen) ?? this.#elsewhere?.witness ?? this.cloud;
    const { releases, machineEnds } = machines;
    const isOwn = machines === this.cloud;
    const starts = isOwn ? { machineStarts: this.cloud.machineStarts } : {};
    return { ...seen, releases, machineEnds, ...starts };
  }

  /** What the fault machine's rules say of the history. */
  async brokenRules(): Promise<readonly string[]> {
    const observed = { user: controllerUser, policy: this.#policy };
    return brokenRules(await this.history(), observed);
  }

  /** Waits for a condition, unless the control plane or a controller dies meanwhile. */
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
    await this.#elsewhere?.stop();
    await this.cloud.stop();
    await this.plane.stop();
    this.#audit.remove();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** Just after a CRD is created, a list may get 429: storage is initializing. */
  async #areDeparturesServed(): Promise<boolean> {
    return (await this.plane.request({ path: departuresPath })).status === 200;
  }

  async #isCalm(): Promise<boolean> {
    const budgetsPath = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    const [pods, budgets] = await Promise.all([
      this.plane.request({ path: "/api/v1/namespaces/default/pods" }),
      this.plane.request({ path: budgetsPath }),
    ]);
    const wanted = podCount + this.nodes.length;
    const ready = pods.body.items.length === wanted && pods.body.items.every(isReady);
    return ready && budgets.body.items.every(hasCapacity);
  }

  #writeKubeconfig(url: string, token: string): string {
    const file = join(this.#folder, `${new URL(url).port}.kubeconfig`);
    writeKubeconfig({ file, url, token, user: "lastcall" });
    return file;
  }
}

async function install(plane: ControlPlane): Promise<void> {
  await mustRun(plane, ["apply", "-k", join(deploy, "crds")]);
  for (const file of ["namespace", "rbac", "admission", "placeholder-priority"]) {
    await mustRun(plane, ["apply", "-f", join(deploy, "base", `${file}.yaml`)]);
  }
}

/**
 * Nine nodes, with zones in turn. All are created within one second: a creationTimestamp is in
 * whole seconds, and nodes of the same age allow a plan that alternates the zones.
 */
async function registerFleet(
  plane: ControlPlane,
  cloud: Pick<FleetCloud, "machineFor"> | undefined,
): Promise<readonly Node[]> {
  const places = Array.from({ length: 9 }, async (_, place) => {
    const name = `spot-${place + 1}`;
    const machine = await cloud?.machineFor(name);
    const labels = { [generationLabel]: "1", ...machine?.labels };
    return { ...machine, name, zone: zones[place % zones.length] as string, labels };
  });
  const wanted = await Promise.all(places);
  await waitUntil(async () => Date.now() % 1000 < 150, {
    what: "a second begins",
    timeoutMs: 2_000,
    intervalMs: 10,
  });
  return createNodes(plane, wanted);
}

function zoneOf(node: Node): string {
  return node.metadata?.labels?.["topology.kubernetes.io/zone"] ?? "";
}

function hasCapacity({ status }: { status?: { disruptionsAllowed?: number } }): boolean {
  return (status?.disruptionsAllowed ?? 0) > 0;
}
