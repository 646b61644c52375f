import type { KubeSender } from "../../src/contracts/kube-api.ts";
import { realClock } from "../../src/runtime/real-clock.ts";
import type { ControlPlane } from "../support/control-plane.ts";
import { ModelKarpenter, nodeClaimDefinition, nodePoolLabel } from "../support/model-karpenter.ts";
import { waitUntil } from "../support/wait-until.ts";
import { type FleetCloud, MachineWitness } from "./fleet-cloud.ts";

/**
 * Karpenter as a model of ours on the real API server: NodeClaims with its finalizer, in no cloud.
 */
export class KarpenterFleet implements FleetCloud {
  readonly flags: readonly string[] = [];
  readonly environment = {};
  readonly witness: MachineWitness;
  readonly #karpenter: ModelKarpenter;
  readonly #closed = new AbortController();
  #running: Promise<void> | undefined;

  static async start(plane: ControlPlane): Promise<KarpenterFleet> {
    const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    await plane.request({ method: "POST", path, body: nodeClaimDefinition });
    const api = senderOf(plane);
    const served = async () =>
      (await api.send({ method: "GET", path: "/apis/karpenter.sh/v1/nodeclaims" })).status === 200;
    await waitUntil(served, { what: "NodeClaims are served", timeoutMs: 30_000 });
    return new KarpenterFleet(api, new MachineWitness(plane));
  }

  private constructor(api: KubeSender, witness: MachineWitness) {
    this.witness = witness;
    this.#karpenter = new ModelKarpenter(api, realClock);
    this.#karpenter.onTaken = async (node) => {
      await witness.seeRelease(node);
      witness.seeEnd(node);
      void this.#bearAnother().catch(() => {});
    };
  }

  async machineFor(name: string) {
    const providerID = `kwok://${name}`;
    await this.#karpenter.claim({ name, providerID });
    return { providerID, labels: { [nodePoolLabel]: "spot" } };
  }

  async open(): Promise<void> {
    this.#running = this.#karpenter.run(this.#closed.signal);
  }

  async stop(): Promise<void> {
    this.#closed.abort();
    this.witness.close();
    await this.#running?.catch(() => undefined);
  }

  async #bearAnother(): Promise<void> {
    const name = this.witness.nextName();
    const machine = await this.machineFor(name);
    await this.witness.register({ name, ...machine });
  }
}

function senderOf(plane: ControlPlane): KubeSender {
  return {
    send: async ({ method, path, body, patchType }) => {
      const contentType = patchType === undefined ? {} : { contentType: patchType };
      return plane.request({ method, path, body, ...contentType });
    },
  };
}
