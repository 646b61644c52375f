import { departureName } from "../../src/core/departure/departure.ts";
import { agentPodsOf, agentTokenOn } from "../support/agent-token.ts";
import type { ApiAnswer } from "../support/api-request.ts";
import { type ControlPlane, startControlPlane } from "../support/control-plane.ts";
import { createNodes } from "../support/kwok-fleet.ts";
import { waitUntil } from "../support/wait-until.ts";
import { mustRun } from "./must-run.ts";

export const deploy = new URL("../../deploy", import.meta.url).pathname;
export const departures = "/apis/lastcall.dev/v1alpha1/departures";

/** Two names, one a prefix of the other, and a name with dots. */
export const own = "spot-a";
export const other = "spot-a-1";
export const dotted = "ip-10-0-0-1.eu-west-1.compute.internal";
/** A name of the maximum length for a Node. */
export const long = [..."abc"].map((letter) => `${letter.repeat(63)}.`).join("") + "d".repeat(61);

/** How a Departure differs from the one that an agent would create. */
export interface Change {
  readonly name?: string;
  readonly metadata?: object;
  readonly spec?: object;
}

/** A control plane with an agent on each of four nodes, whose tokens a test can try. */
export class AgentWorld {
  readonly plane: ControlPlane;
  readonly uids = new Map<string, string>();
  readonly #tokens = new Map<string, string>();

  private constructor(plane: ControlPlane) {
    this.plane = plane;
  }

  static async start(): Promise<AgentWorld> {
    const world = new AgentWorld(await startControlPlane());
    try {
      await world.#setUp();
    } catch (error) {
      await world.plane.stop();
      throw error;
    }
    return world;
  }

  async #setUp(): Promise<void> {
    const { plane } = this;
    const nodes = await createNodes(plane, [
      ...[own, other, dotted].map((name) => ({ name, provisioning: "spot" as const })),
      // A label has at most 63 characters.
      { name: long, provisioning: "spot", labels: { "kubernetes.io/hostname": "long" } },
    ]);
    for (const { metadata } of nodes) this.uids.set(metadata?.name ?? "", metadata?.uid ?? "");
    await mustRun(plane, ["apply", "-k", `${deploy}/base`]);
    await mustRun(plane, ["apply", "-k", `${deploy}/agent`]);
    const wait = { timeoutMs: 60_000, signal: plane.signal };
    const placed = async () => (await agentPodsOf(plane)).length === nodes.length;
    await waitUntil(placed, { what: "an agent is on each node", ...wait });
    for (const name of this.uids.keys()) await this.takeToken(name);
    const isInForce = async () => (await this.create(own, this.departure(other))).status === 403;
    await waitUntil(isInForce, { what: "the admission policy is in force", ...wait });
  }

  /** Requests the token as the kubelet does; it is bound to the current pod of the agent. */
  async takeToken(node: string): Promise<void> {
    this.#tokens.set(node, await agentTokenOn(this.plane, node));
  }

  tokenOf(node: string): string {
    return this.#tokens.get(node) ?? "";
  }

  identity(node: string): { readonly name: string; readonly uid: string } {
    return { name: node, uid: this.uids.get(node) ?? "" };
  }

  /** A Departure as the node's agent would create it, except for the change. */
  departure(node: string, change: Change = {}): object {
    return {
      apiVersion: "lastcall.dev/v1alpha1",
      kind: "Departure",
      metadata: {
        name: change.name ?? departureName(this.identity(node), 2),
        ...change.metadata,
      },
      spec: {
        node: this.identity(node),
        cause: "SpotInterruption",
        noticedAt: "2026-11-20T00:00:00Z",
        source: "agent/aws/spot-instance-action",
        ...change.spec,
      },
    };
  }

  /** Creates it with a node's token, as a dry run, which admission checks like a real request. */
  create(as: string, body: object): Promise<ApiAnswer> {
    const path = `${departures}?dryRun=All`;
    return this.plane.request({ method: "POST", path, body, token: this.tokenOf(as) });
  }

  /** Creates it as the administrator. */
  async make(path: string, body: object): Promise<ApiAnswer> {
    const answer = await this.plane.request({ method: "POST", path, body });
    if (answer.status === 201) return answer;
    throw new Error(`Cannot make ${path}: ${answer.status} ${answer.body.message}`);
  }
}
