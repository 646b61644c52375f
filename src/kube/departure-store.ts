import type {
  DepartureStore,
  FrozenPolicy,
  HeldNode,
  NamedDeparture,
  OperatorResult,
  OperatorWrites,
  StatusWrite,
  StoreResult,
} from "../contracts/cluster.ts";
import type {
  KubeApi,
  KubeObject,
  KubeRequest,
  KubeSender,
  Urgency,
} from "../contracts/kube-api.ts";
import { holdAnnotation, holdByAnnotation } from "../core/cluster/node.ts";
import type { DepartureMove, NewDeparture } from "../core/departure/decision.ts";
import { type Departure, departureFinalizer, policyNameOf } from "../core/departure/departure.ts";
import { departureLabels, policyLabel } from "../core/departure/departure-labels.ts";
import { fieldsOf, instantOf } from "../core/json/json-field.ts";
import type { NoticeUpdate } from "../core/notice/notice.ts";
import type { Sentence } from "../core/reason/english.ts";
import { formatInstant, type Instant } from "../core/time/time.ts";
import { callerName } from "./caller-name.ts";
import {
  answerMessage,
  departurePath,
  departuresPath,
  isConflict,
  isGone,
  isNameTaken,
  nodePath,
  objectError,
  policyPath,
} from "./object/api-call.ts";
import { mergePatch } from "./object/merge-patch.ts";
import {
  type DepartureChange,
  departureFence,
  departureObject,
  departureSpec,
  statusObject,
  translateDeparture,
} from "./object/translate-departure.ts";

/**
 * Stores Departures in the cluster, fenced by resourceVersion. During a burst, writes yield to
 * cordons and evictions, because they only record what is done. Notices do not yield: their node is
 * not cordoned before they are written.
 */
export class KubeDepartureStore implements DepartureStore {
  readonly #api: KubeApi;

  constructor(api: KubeApi) {
    this.#api = api;
  }

  async create(departure: NewDeparture): Promise<StoreResult> {
    const made = departureObject(departure);
    const isNotice = departure.noticedAt !== undefined;
    // It is acted on at once. A planned one has nothing to undo before it starts.
    const finalizers = isNotice ? { finalizers: [departureFinalizer] } : {};
    const labels = departureLabels(departure.node, departure.policy);
    const body = { ...made, metadata: { ...made.metadata, labels, ...finalizers } };
    const urgency = isNotice ? "First" : "Later";
    return this.#send({ method: "POST", path: departuresPath, urgency, body });
  }

  async read(name: string): Promise<StoreResult> {
    return this.#send({ method: "GET", path: departurePath(name) });
  }

  async move(departure: Departure, to: DepartureMove): Promise<StoreResult> {
    const { departAt, deadlineAt, launchedAt, policy } = to;
    return this.#change(departure, { departAt, deadlineAt, launchedAt, policy });
  }

  async dropInstant(departure: Departure): Promise<StoreResult> {
    return this.#change(departure, { departAt: null });
  }

  async withdraw(departure: Departure, at: Instant): Promise<StoreResult> {
    return this.#change(departure, { withdrawnAt: at });
  }

  async notice(departure: Departure, update: NoticeUpdate): Promise<StoreResult> {
    const { noticedAt, deadlineAt = null, source, cause } = update;
    return this.#change(departure, { noticedAt, deadlineAt, source, cause }, "First");
  }

  async #change(
    departure: Departure,
    change: DepartureChange,
    urgency: Urgency = "Later",
  ): Promise<StoreResult> {
    const metadata = metadataOf(departure, change.policy);
    const body = { metadata, spec: departureSpec(change) };
    return this.#send({ ...patchOf(departurePath(departure.name), body), urgency });
  }

  /**
   * Sends a merge patch with the resourceVersion, which the API server rejects with 409 if anybody
   * has written since.
   */
  async record(departure: Departure, { status, hurry }: StatusWrite): Promise<StoreResult> {
    const before = statusObject(departure.status);
    const path = `${departurePath(departure.name)}/status`;
    const bodyAtTurn = () => {
      const written = mergePatch(before, statusObject(status()));
      return { metadata: departureFence(departure), status: written };
    };
    return this.#send({ ...patchOf(path), bodyAtTurn, urgency: "Later", hurry });
  }

  async finalize(
    departure: Departure,
    change: "Add" | "Remove",
    hurry?: AbortSignal,
  ): Promise<StoreResult> {
    const others = (departure.finalizers ?? []).filter((one) => one !== departureFinalizer);
    const finalizers = change === "Add" ? [...others, departureFinalizer] : others;
    const body = { metadata: { ...metadataOf(departure), finalizers } };
    return this.#send({ ...patchOf(departurePath(departure.name), body), urgency: "Later", hurry });
  }

  async remove(departure: Departure): Promise<StoreResult> {
    const request: KubeRequest = {
      method: "DELETE",
      urgency: "Later",
      path: departurePath(departure.name),
      body: {
        apiVersion: "v1",
        kind: "DeleteOptions",
        preconditions: departureFence(departure),
      },
    };
    const answer = await this.#api.send(request);
    if (isConflict(answer)) return { kind: "Conflict", message: answerMessage(answer) };
    if (answer.status >= 300 && !isGone(answer)) throw objectError(request, answer);
    return { kind: "Gone" };
  }

  async #send(request: KubeRequest): Promise<StoreResult> {
    const answer = await this.#api.send(request);
    if (isGone(answer)) return { kind: "Gone" };
    if (isConflict(answer) || isNameTaken(answer)) {
      return { kind: "Conflict", message: answerMessage(answer) };
    }
    const departure =
      answer.status < 300 ? translateDeparture(answer.body as KubeObject) : undefined;
    if (departure === undefined) throw objectError(request, answer);
    return { kind: "Done", departure };
  }
}

/**
 * What each write of the metadata or the spec contains: the fence, and the labels, which the policy
 * before may have had, and what a person or an agent created may lack.
 */
function metadataOf(departure: Departure, policy = policyNameOf(departure)) {
  const labels = { [policyLabel]: null, ...departureLabels(departure.node, policy) };
  return { ...departureFence(departure), labels };
}

function patchOf(path: string, body?: unknown): KubeRequest {
  return { method: "PATCH", path, patchType: "application/merge-patch+json", body };
}

/** The maximum number of attempts: an object that another writer has changed is read again. */
const mostTries = 4;

const gone: OperatorResult = { kind: "Changed", found: { says: "change.Gone" } };

export class KubeOperatorWrites implements OperatorWrites {
  readonly #api: KubeSender;

  constructor(api: KubeSender) {
    this.#api = api;
  }

  async hold(node: HeldNode, value: string | null): Promise<OperatorResult> {
    const by = value === null ? null : ((await callerName(this.#api)) ?? null);
    return this.#patch(nodePath(node.name), {
      metadata: { annotations: { [holdAnnotation]: value, [holdByAnnotation]: by } },
      refusal: ({ metadata = {} }) => {
        if (metadata.uid !== node.uid) return { says: "change.OtherNode" };
        const found = metadata.annotations?.[holdAnnotation] ?? null;
        if (found === node.seen) return undefined;
        return { says: "change.Hold", value: found === null ? undefined : JSON.stringify(found) };
      },
    });
  }

  freeze(policy: FrozenPolicy, until: Instant | null): Promise<OperatorResult> {
    const freezeUntil = until === null ? null : formatInstant(until);
    return this.#patch(policyPath(policy.name), {
      spec: { gates: { freezeUntil } },
      refusal: (object) => {
        const found = instantOf(fieldsOf(fieldsOf(object.spec).gates).freezeUntil) ?? null;
        if (found === policy.seen) return undefined;
        return { says: "change.Freeze", until: found ?? undefined };
      },
    });
  }

  async withdraw({ name, uid }: NamedDeparture): Promise<OperatorResult> {
    const body = { apiVersion: "v1", kind: "DeleteOptions", preconditions: { uid } };
    const request: KubeRequest = { method: "DELETE", path: departurePath(name), body };
    const answer = await this.#api.send(request);
    if (isGone(answer)) return gone;
    if (isConflict(answer)) {
      return { kind: "Changed", found: { says: "change.OtherDeparture" } };
    }
    if (answer.status >= 300) throw objectError(request, answer);
    return { kind: "Done" };
  }

  /**
   * Reads the object, checks that it is still as the user saw it, and writes with the
   * resourceVersion that was read.
   */
  async #patch(path: string, change: CheckedChange): Promise<OperatorResult> {
    const { refusal, metadata, ...fields } = change;
    for (let tries = 1; ; tries += 1) {
      const object = await this.#read(path);
      if (object === undefined) return gone;
      const found = refusal(object);
      if (found !== undefined) return { kind: "Changed", found };
      const { uid, resourceVersion } = object.metadata ?? {};
      const request: KubeRequest = {
        method: "PATCH",
        path,
        patchType: "application/merge-patch+json",
        body: { metadata: { ...metadata, uid, resourceVersion }, ...fields },
      };
      const answer = await this.#api.send(request);
      if (isGone(answer)) return gone;
      if (isConflict(answer) && tries < mostTries) continue;
      if (answer.status >= 300) throw objectError(request, answer);
      return { kind: "Done" };
    }
  }

  async #read(path: string): Promise<KubeObject | undefined> {
    const request: KubeRequest = { method: "GET", path };
    const answer = await this.#api.send(request);
    if (isGone(answer)) return undefined;
    if (answer.status !== 200) throw objectError(request, answer);
    return answer.body as KubeObject;
  }
}

interface CheckedChange {
  readonly metadata?: { readonly annotations: Readonly<Record<string, string | null>> };
  readonly spec?: Readonly<Record<string, unknown>>;
  /** What differs from what the user saw; undefined if nothing does. */
  readonly refusal: (object: KubeObject) => Sentence | undefined;
}
