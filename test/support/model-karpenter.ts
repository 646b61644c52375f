import type { Clock } from "../../src/contracts/clock.ts";
import type { KubeAnswer, KubeObject, KubeSender } from "../../src/contracts/kube-api.ts";
import { millis } from "../../src/core/time/time.ts";

const claimsPath = "/apis/karpenter.sh/v1/nodeclaims";
const finalizer = "karpenter.sh/termination";
const anything = { type: "object", "x-kubernetes-preserve-unknown-fields": true };

export const nodePoolLabel = "karpenter.sh/nodepool";

/** NodeClaim as Karpenter serves it, except for the schema, which accepts anything. */
export const nodeClaimDefinition = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "nodeclaims.karpenter.sh" },
  spec: {
    group: "karpenter.sh",
    scope: "Cluster",
    names: { kind: "NodeClaim", plural: "nodeclaims", listKind: "NodeClaimList" },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: { ...anything, properties: { spec: anything, status: anything } },
        },
        subresources: { status: {} },
      },
    ],
  },
} as const;

/**
 * Only what Karpenter does with a NodeClaim that is deleted: it deletes the Node, then the
 * instance, and finally the NodeClaim itself. It does not drain, because Lastcall has already done
 * so.
 */
export class ModelKarpenter {
  readonly #api: KubeSender;
  readonly #clock: Clock;

  constructor(api: KubeSender, clock: Clock) {
    this.#api = api;
    this.#clock = clock;
  }

  /** Creates the NodeClaim of an existing Node. */
  async claim(node: { readonly name: string; readonly providerID: string }): Promise<void> {
    const { name, providerID } = node;
    const body = {
      apiVersion: "karpenter.sh/v1",
      kind: "NodeClaim",
      metadata: { name: `claim-of-${name}`, finalizers: [finalizer] },
      spec: {},
    };
    this.#expect(await this.#api.send({ method: "POST", path: claimsPath, body }));
    const status = await this.#api.send({
      method: "PATCH",
      path: `${claimsPath}/claim-of-${name}/status`,
      patchType: "application/merge-patch+json",
      body: { status: { providerID, nodeName: name } },
    });
    this.#expect(status);
  }

  async claims(): Promise<readonly KubeObject[]> {
    const answer = this.#expect(await this.#api.send({ method: "GET", path: claimsPath }));
    return (answer.body as { readonly items: readonly KubeObject[] }).items;
  }

  /** Runs until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      for (const claim of await this.claims()) {
        if (claim.metadata?.deletionTimestamp !== undefined) await this.#take(claim);
      }
      await this.#clock.sleep(millis(500), signal).catch(() => undefined);
    }
  }

  async #take({ metadata, status }: KubeObject): Promise<void> {
    const { nodeName = "" } = status as { readonly nodeName?: string };
    await this.#api.send({ method: "DELETE", path: `/api/v1/nodes/${nodeName}` });
    await this.#api.send({
      method: "PATCH",
      path: `${claimsPath}/${metadata?.name}`,
      patchType: "application/merge-patch+json",
      body: { metadata: { finalizers: null } },
    });
  }

  #expect(answer: KubeAnswer): KubeAnswer {
    if (answer.status < 300) return answer;
    throw new Error(`Cannot continue: ${answer.status} ${JSON.stringify(answer.body)}`);
  }
}
