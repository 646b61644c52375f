import type { Clock } from "../contracts/clock.ts";
import type { KubeAnswer, KubeApi } from "../contracts/kube-api.ts";
import type { ClusterEvent, EventSink, EventTarget } from "../contracts/telemetry.ts";
import { printable } from "../core/json/printable-text.ts";
import { formatInstant } from "../core/time/time.ts";
import { messageOf } from "../errors.ts";
import { apiVersion as policyApiVersion } from "./object/api-call.ts";

/** How long repetitions of an Event are counted in it instead of written as new Events. */
const seriesMs = 10 * 60_000;

/** The maximum number of series: a new one replaces the oldest, so a storm cannot fill memory. */
const maxSeries = 2000;

/** The API server rejects longer notes. */
const maxMessage = 1000;

/**
 * The maximum number of pending writes. Further Events are dropped: they are the least important.
 * A burst of 300 notices causes four per node.
 */
const maxUnderWay = 2000;

const apiVersions: Readonly<Record<EventTarget["kind"], string>> = {
  ...{ Node: "v1", Pod: "v1", PodDisruptionBudget: "policy/v1" },
  Departure: policyApiVersion,
  DeparturePolicy: policyApiVersion,
};

interface Series {
  readonly name: string;
  readonly namespace: string;
  readonly firstAtMs: number;
  count: number;
}

export interface EventSinkOptions {
  readonly api: KubeApi;
  readonly clock: Clock;
  /** `reportingInstance`: the replica that reports. */
  readonly instance: string;
  readonly onLost: (why: string) => void;
}

/** Writes core/v1 Events, which `kubectl describe` and `kubectl get events` show. */
export class KubeEventSink implements EventSink {
  readonly #options: EventSinkOptions;
  readonly #series = new Map<string, Series>();
  #underWay = 0;
  #serial = 0;

  constructor(options: EventSinkOptions) {
    this.#options = options;
  }

  emit(event: ClusterEvent): void {
    if (this.#underWay >= maxUnderWay) {
      this.#options.onLost("too many Events at once");
      return;
    }
    this.#underWay += 1;
    void this.#write(event)
      .catch((error: unknown) => this.#options.onLost(messageOf(error)))
      .finally(() => {
        this.#underWay -= 1;
      });
  }

  async #write(event: ClusterEvent): Promise<void> {
    const nowMs = this.#options.clock.now();
    const key = `${event.about.kind}/${event.about.uid}/${event.reason}/${event.message}`;
    const series = this.#series.get(key);
    if (series !== undefined && nowMs - series.firstAtMs < seriesMs) {
      series.count += 1;
      const { status } = await this.#countUp(series);
      // Somebody deleted the Event: the next one creates it again.
      if (status === 404) this.#series.delete(key);
      return;
    }
    await this.#create(event, key).catch((error: unknown) => {
      // An Event that was not written cannot be counted up.
      this.#series.delete(key);
      throw error;
    });
  }

  async #countUp(series: Series): Promise<KubeAnswer> {
    const lastTimestamp = formatInstant(this.#options.clock.now());
    return this.#options.api.send({
      method: "PATCH",
      path: `/api/v1/namespaces/${series.namespace}/events/${series.name}`,
      patchType: "application/merge-patch+json",
      urgency: "Later",
      ignoresBody: true,
      body: { count: series.count, lastTimestamp },
    });
  }

  async #create(event: ClusterEvent, key: string): Promise<void> {
    const now = this.#options.clock.now();
    // As in Kubernetes itself, Events about cluster-scoped objects are in this namespace.
    const namespace = "namespace" in event.about ? event.about.namespace : "default";
    this.#serial += 1;
    const name = eventNameOf(event.about.name, `${now.toString(16)}.${this.#serial.toString(16)}`);
    this.#remember(key, { name, namespace, firstAtMs: now, count: 1 });
    const answer = await this.#options.api.send({
      method: "POST",
      path: `/api/v1/namespaces/${namespace}/events`,
      urgency: "Later",
      ignoresBody: true,
      body: {
        apiVersion: "v1",
        kind: "Event",
        metadata: { name, namespace },
        type: event.type,
        reason: event.reason,
        message: printable(event.message).slice(0, maxMessage),
        involvedObject: referenceTo(event.about),
        source: { component: "lastcall" },
        reportingComponent: "lastcall",
        reportingInstance: this.#options.instance,
        firstTimestamp: formatInstant(now),
        lastTimestamp: formatInstant(now),
        count: 1,
      },
    });
    if (answer.status < 300) return;
    this.#series.delete(key);
    this.#options.onLost(`the API server answered ${answer.status}`);
  }

  #remember(key: string, series: Series): void {
    this.#series.delete(key);
    this.#series.set(key, series);
    const oldest = this.#series.keys().next().value;
    if (this.#series.size > maxSeries && oldest !== undefined) this.#series.delete(oldest);
  }
}

/** The longest name that the API server accepts, and a pod's own name may be as long. */
const longestEventName = 253;

/** Each part of a name between dots has to end with a letter or a digit. */
function eventNameOf(subject: string, serial: string): string {
  const most = longestEventName - serial.length - 1;
  return `${subject.slice(0, most).replace(/[-.]+$/, "")}.${serial}`;
}

function referenceTo(about: EventTarget): Readonly<Record<string, string>> {
  return { apiVersion: apiVersions[about.kind], ...about };
}
