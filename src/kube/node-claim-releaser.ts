import { type ReleaseLoopOptions, releaseByLooking } from "../cloud/release/release-loop.ts";
import type {
  InstanceReleaser,
  Releasability,
  ReleaseQuestion,
  ReleaseRequest,
  ReleaseResult,
} from "../contracts/cloud.ts";
import type { KubeObject, KubeRequest, KubeSender } from "../contracts/kube-api.ts";
import type { MachineState } from "../core/cluster/machine.ts";
import type { MachineNames } from "../core/cluster/machine-name.ts";
import { fieldsOf, instantOf, textOf, trimmedTextOf } from "../core/json/json-field.ts";
import type { Instant } from "../core/time/time.ts";
import { LastcallError } from "../errors.ts";
import {
  apiError,
  isConflict,
  isGone,
  nodeClaimPath,
  nodeClaimsPath,
  objectError,
  reviewsPath,
} from "./object/api-call.ts";
import { conditionOf } from "./object/translate-node.ts";
import { listPages } from "./watch/collection.ts";

export interface NodeClaimReleaserOptions extends ReleaseLoopOptions {
  readonly api: KubeSender;
}

interface NodeClaim {
  readonly name: string;
  readonly uid: string;
  readonly createdAt: Instant | undefined;
  /** The Node that Karpenter has found to be this machine's. */
  readonly nodeName: string | undefined;
  /** Whether anybody has deleted it: Karpenter's finalizer then terminates its machine. */
  readonly isDeleted: boolean;
  /** Deleted, or selected by Karpenter's own disruption, which Karpenter may still cancel. */
  readonly isLeaving: boolean;
}

/**
 * Releases machines of Karpenter by deleting their NodeClaims, with the uid as a precondition.
 * Karpenter then terminates the instance and deletes its Node and, last, the NodeClaim. It launches
 * another machine if pods need one. Source: Karpenter, controllers/nodeclaim/lifecycle and
 * controllers/node/termination.
 */
export class NodeClaimReleaser implements InstanceReleaser {
  readonly #options: NodeClaimReleaserOptions;
  /**
   * NodeClaim names by providerID. The API cannot select NodeClaims by it, so each is searched for
   * in the list once.
   */
  readonly #names = new Map<string, string>();

  constructor(options: NodeClaimReleaserOptions) {
    this.#options = options;
  }

  async describe(providerID: string, signal: AbortSignal): Promise<MachineState> {
    const claim = await this.#look(providerID, signal);
    if (claim === undefined) return { kind: "Absent" };
    const { uid: id, createdAt: bornAt, isLeaving } = claim;
    return { kind: "Present", id, bornAt, running: !isLeaving, names: namesOf(claim) };
  }

  async check({ providerID }: ReleaseQuestion, signal: AbortSignal): Promise<Releasability> {
    const claim = await this.#look(providerID, signal);
    if (claim === undefined) {
      const problem = `no NodeClaim has the providerID ${providerID}, set instance.release to what the owner of the machine allows`;
      return { kind: "Impossible", problem };
    }
    const names = namesOf(claim);
    if (claim.isDeleted) return { kind: "Possible", permission: "Unknown", names };
    if (await this.#mayDelete(signal)) return { kind: "Possible", permission: "Granted", names };
    const problem =
      "the permission delete on nodeclaims.karpenter.sh is missing, grant it (docs/cloud/karpenter.md#permissions)";
    return { kind: "Impossible", problem };
  }

  async release(request: ReleaseRequest, signal: AbortSignal): Promise<ReleaseResult> {
    const { providerID, machineId, lastLook } = request;
    const machine = {
      look: (until: AbortSignal) => this.#look(providerID, until),
      standing: ({ uid, isLeaving }: NodeClaim) => {
        if (uid !== machineId) return "Replaced";
        return isLeaving ? "Leaving" : "Staying";
      },
      act: (claim: NodeClaim) => this.#delete(claim, signal),
      stillThere,
    } as const;
    const result = await releaseByLooking({ machine, lastLook }, this.#options, signal);
    this.#names.delete(providerID);
    return result;
  }

  async #look(providerID: string, signal: AbortSignal): Promise<NodeClaim | undefined> {
    signal.throwIfAborted();
    const known = this.#names.get(providerID);
    const kept = known === undefined ? undefined : await this.#read(known, signal);
    const found = isOf(kept, providerID) ? kept : await this.#find(providerID, signal);
    if (found === undefined) {
      this.#names.delete(providerID);
      return undefined;
    }
    const claim = toNodeClaim(found);
    this.#names.set(providerID, claim.name);
    return claim;
  }

  async #read(name: string, signal: AbortSignal): Promise<KubeObject | undefined> {
    const path = nodeClaimPath(name);
    const answer = await this.#send({ method: "GET", path, signal });
    if (isGone(answer)) return undefined;
    if (answer.status !== 200) throw objectError({ method: "GET", path }, answer);
    return answer.body as KubeObject;
  }

  async #find(providerID: string, signal: AbortSignal): Promise<KubeObject | undefined> {
    try {
      for await (const page of listPages(this.#options.api, nodeClaimsPath, { signal })) {
        const found = page.find((object) => isOf(object, providerID));
        if (found !== undefined) return found;
      }
      return undefined;
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    }
  }

  async #delete({ name, uid }: NodeClaim, signal: AbortSignal): Promise<void> {
    const path = nodeClaimPath(name);
    const body = { apiVersion: "v1", kind: "DeleteOptions", preconditions: { uid } };
    const answer = await this.#send({ method: "DELETE", path, body, signal });
    if (answer.status < 300 || isGone(answer)) return;
    // Another NodeClaim has the name: the next lookup finds none with the expected uid.
    if (isConflict(answer)) throw conflict(name);
    throw objectError({ method: "DELETE", path }, answer);
  }

  async #mayDelete(signal: AbortSignal): Promise<boolean> {
    const resourceAttributes = { group: "karpenter.sh", resource: "nodeclaims", verb: "delete" };
    const body = {
      apiVersion: "authorization.k8s.io/v1",
      kind: "SelfSubjectAccessReview",
      spec: { resourceAttributes },
    };
    const answer = await this.#send({ method: "POST", path: reviewsPath, body, signal });
    if (answer.status !== 201) throw apiError({ method: "POST", path: reviewsPath }, answer);
    return fieldsOf((answer.body as KubeObject).status).allowed === true;
  }

  async #send(request: KubeRequest & { readonly signal: AbortSignal }) {
    try {
      return await this.#options.api.send(request);
    } catch (error) {
      request.signal.throwIfAborted();
      throw error;
    }
  }
}

function isOf(object: KubeObject | undefined, providerID: string): boolean {
  return object !== undefined && fieldsOf(object.status).providerID === providerID;
}

function toNodeClaim({ metadata, status }: KubeObject): NodeClaim {
  const chosen = conditionOf(fieldsOf(status).conditions, "DisruptionReason");
  const isDeleted = metadata?.deletionTimestamp !== undefined;
  return {
    name: textOf(metadata?.name) ?? "",
    uid: textOf(metadata?.uid) ?? "",
    createdAt: instantOf(metadata?.creationTimestamp),
    nodeName: trimmedTextOf(fieldsOf(status).nodeName),
    isDeleted,
    isLeaving: isDeleted || chosen.status === "True",
  };
}

function namesOf({ nodeName }: NodeClaim): MachineNames | undefined {
  return nodeName === undefined ? undefined : { hosts: [nodeName] };
}

function conflict(name: string): LastcallError {
  return new LastcallError(
    "CONFLICT",
    `Cannot delete the NodeClaim ${name}: found another one of that name, expected the one that was checked`,
  );
}

function stillThere({ name }: NodeClaim): LastcallError {
  return new LastcallError(
    "CLOUD_REFUSED",
    `Cannot release the machine of the NodeClaim ${name}: found it still present at the end of the wait, expected Karpenter to delete it (kubectl describe nodeclaim ${name} shows what it waits for)`,
    { retryable: true },
  );
}
