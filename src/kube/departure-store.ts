import type { DepartureStore, StatusWrite, StoreResult } from "../contracts/cluster.ts";
import type { KubeApi, KubeObject, KubeRequest, Urgency } from "../contracts/kube-api.ts";
import type { DepartureMove, NewDeparture } from "../core/departure/decision.ts";
import type { Departure } from "../core/departure/departure.ts";
import type { NoticeUpdate } from "../core/notice/notice-state.ts";
import type { Instant } from "../core/time/time.ts";
import { apiError } from "./object/api-error.ts";
import { departurePath, departuresPath } from "./object/paths.ts";
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
    const body = departureObject(departure);
    const urgency = departure.noticedAt === undefined ? "Later" : "First";
    return this.#send({ method: "POST", path: departuresPath, urgency, body });
  }

  async read(name: string): Promise<StoreResult> {
    return this.#send({ method: "GET", path: departurePath(name) });
  }

  async move(departure: Departure, to: DepartureMove): Promise<StoreResult> {
    const { departAt, deadlineAt, policy } = to;
    return this.#change(departure, { departAt, deadlineAt, policy });
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
    const body = { metadata: departureFence(departure), spec: departureSpec(change) };
    return this.#send({ ...patchOf(departurePath(departure.name), body), urgency });
  }

  /**
   * Sends a merge patch with the resourceVersion, which the API server rejects with 409 if anybody
   * has written since. Fields missing from the new status are set to null, which removes them.
   */
  async record(departure: Departure, { status, hurry }: StatusWrite): Promise<StoreResult> {
    const before = statusObject(departure.status);
    const removed = Object.keys(before).map((field) => [field, null] as const);
    const path = `${departurePath(departure.name)}/status`;
    const bodyAtTurn = () => {
      const written = { ...Object.fromEntries(removed), ...statusObject(status()) };
      return { metadata: departureFence(departure), status: written };
    };
    return this.#send({ ...patchOf(path), bodyAtTurn, urgency: "Later", hurry });
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
    if (answer.status === 409) return { kind: "Conflict" };
    if (answer.status >= 300 && answer.status !== 404) throw apiError(request, answer);
    return { kind: "Gone" };
  }

  async #send(request: KubeRequest): Promise<StoreResult> {
    const answer = await this.#api.send(request);
    if (answer.status === 404) return { kind: "Gone" };
    if (answer.status === 409) return { kind: "Conflict" };
    const departure =
      answer.status < 300 ? translateDeparture(answer.body as KubeObject) : undefined;
    if (departure === undefined) throw apiError(request, answer);
    return { kind: "Done", departure };
  }
}

function patchOf(path: string, body?: unknown): KubeRequest {
  return { method: "PATCH", path, patchType: "application/merge-patch+json", body };
}
