import { randomUUID } from "node:crypto";
import type { KubeAnswer, KubeRequest, KubeSender } from "../../src/contracts/kube-api.ts";
import { seededRng } from "../../src/core/chance/chance.ts";
import { formatInstant, instant, seconds } from "../../src/core/time/time.ts";
import { LastcallError } from "../../src/errors.ts";
import { NodeClaimReleaser } from "../../src/kube/node-claim-releaser.ts";
import type { ReleaserWorld } from "../contract/instance-releaser.contract.ts";
import { ManualClock } from "./manual-clock.ts";
import { passTime } from "./pass-time.ts";

export interface WorldClaim {
  readonly name: string;
  uid: string;
  readonly providerID: string;
  readonly createdAt: string;
  readonly nodeName?: string;
  deletedAt?: string;
  conditions: readonly object[];
}

const path = "/apis/karpenter.sh/v1/nodeclaims";
const takenAfterMs = seconds(30);

const refusals = {
  RateLimited: { status: 429, body: { message: "too many requests" } },
  RightMissing: { status: 403, body: { message: "nodeclaims.karpenter.sh is forbidden" } },
} as const;

/** NodeClaims in memory, and a Karpenter that removes each half a minute after its deletion. */
export class NodeClaimWorld implements ReleaserWorld {
  readonly clock = new ManualClock(instant(Date.parse("2026-11-20T00:00:00Z")));
  readonly claims = new Map<string, WorldClaim>();
  readonly requests: KubeRequest[] = [];
  readonly modes = ["NodeClaim"] as const;
  readonly faultCodes = {
    Unreachable: "API_UNREACHABLE",
    RateLimited: "API_OVERLOADED",
    RightMissing: "RIGHT_MISSING",
  } as const;
  readonly tellsTime = false;
  namesOf(providerID: string) {
    const { nodeName } = this.find(providerID) ?? {};
    return nodeName === undefined ? undefined : [nodeName];
  }
  readonly unknownProviderID = "kwok://nobody";
  readonly releaser: NodeClaimReleaser;
  isDefined = true;
  mayDelete = true;
  /** The response to the next DELETE instead of the usual one. */
  nextDelete: KubeAnswer | undefined;
  fault: "Unreachable" | "RateLimited" | "RightMissing" | undefined;
  #taken = 0;
  readonly #closed = new AbortController();

  constructor() {
    const api: KubeSender = { send: (request) => this.#send(request) };
    const { clock } = this;
    this.releaser = new NodeClaimReleaser({ api, clock, rng: seededRng(1) });
  }

  addMachine(name: string) {
    const claim: WorldClaim = {
      name: `spot-${name}`,
      uid: randomUUID(),
      providerID: `kwok://${name}`,
      createdAt: formatInstant(this.clock.now()),
      nodeName: name,
      conditions: [],
    };
    this.claims.set(claim.name, claim);
    return { providerID: claim.providerID, id: claim.uid };
  }

  find(providerID: string): WorldClaim | undefined {
    return [...this.claims.values()].find((claim) => claim.providerID === providerID);
  }

  idOf(providerID: string) {
    return this.find(providerID)?.uid;
  }

  async replace(providerID: string) {
    const claim = this.find(providerID) as WorldClaim;
    claim.uid = randomUUID();
    return claim.uid;
  }

  async remove(providerID: string) {
    this.claims.delete(this.find(providerID)?.name ?? "");
  }

  fail(fault: "Unreachable" | "RateLimited" | "RightMissing") {
    this.fault = fault;
  }

  heal() {
    this.fault = undefined;
  }

  asked() {
    return this.#taken;
  }

  bornHere() {
    return 1;
  }

  pass<T>(work: Promise<T>): Promise<T> {
    return passTime(work, { clock: this.clock, quiet: () => true });
  }

  passUntil(condition: () => boolean): Promise<void> {
    const until = async () => {
      while (!condition()) await new Promise((resolve) => setImmediate(resolve));
    };
    return this.pass(until());
  }

  async close() {
    this.#closed.abort();
  }

  async #send(request: KubeRequest): Promise<KubeAnswer> {
    request.signal?.throwIfAborted();
    this.requests.push(request);
    if (this.fault === "Unreachable") {
      throw new LastcallError("API_UNREACHABLE", "Cannot send: the connection was lost");
    }
    if (this.fault !== undefined) return refusals[this.fault];
    if (request.path.endsWith("/selfsubjectaccessreviews")) {
      return { status: 201, body: { status: { allowed: this.mayDelete } } };
    }
    if (!this.isDefined) return { status: 404, body: "404 page not found" };
    const claim = this.claims.get(request.path.slice(path.length + 1));
    if (request.path === path) {
      return { status: 200, body: { items: [...this.claims.values()].map(toObject) } };
    }
    if (claim === undefined) return { status: 404, body: { kind: "Status", message: "not found" } };
    return request.method === "DELETE" ? this.#delete(claim, request) : ok(claim);
  }

  #delete(claim: WorldClaim, { body }: KubeRequest): KubeAnswer {
    const next = this.nextDelete;
    this.nextDelete = undefined;
    if (next !== undefined) return next;
    const { preconditions } = body as { readonly preconditions?: { readonly uid?: string } };
    if (preconditions?.uid !== claim.uid) {
      return { status: 409, body: { reason: "Conflict", message: "conflict" } };
    }
    this.#taken += 1;
    if (claim.deletedAt === undefined) this.take(claim);
    return ok(claim);
  }

  /** As Karpenter does, whoever requested the deletion. */
  take(claim: WorldClaim): void {
    claim.deletedAt = formatInstant(this.clock.now());
    this.clock
      .sleep(takenAfterMs, this.#closed.signal)
      .then(() => this.claims.delete(claim.name))
      .catch(() => undefined);
  }
}

function ok(claim: WorldClaim): KubeAnswer {
  return { status: 200, body: toObject(claim) };
}

function toObject({
  name,
  uid,
  providerID,
  createdAt,
  nodeName,
  deletedAt,
  conditions,
}: WorldClaim) {
  const deletion = deletedAt === undefined ? {} : { deletionTimestamp: deletedAt };
  return {
    apiVersion: "karpenter.sh/v1",
    kind: "NodeClaim",
    metadata: { name, uid, creationTimestamp: createdAt, ...deletion },
    status: { providerID, nodeName, conditions },
  };
}
