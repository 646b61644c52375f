import type { Clock } from "../contracts/clock.ts";
import type { KubeAnswer, KubeApi } from "../contracts/kube-api.ts";
import type { ClusterEvent, EventSink, EventTarget } from "../contracts/telemetry.ts";
import { formatInstant } from "../core/time/time.ts";
import { messageOf } from "../errors.ts";
import { apiVersion as policyApiVersion } from "./object/paths.ts";

/** How long the same Event about the same thing is counted up instead of written again. */
const seriesMs = 10 * 60_000;
/** Past this many a new series pushes the oldest out; memory stays bounded in a storm. */
const maxSeries = 2000;
/** The API server refuses longer notes. */
const maxMessage = 1000;
/**
 * Events are the least of our writes: past this many that wait, more are dropped. A burst of 300
 * notices has two a node.
 */
const maxUnderWay = 1000;

const apiVersions: Readonly<Record<EventTarget["kind"], string>> = {
  ...{ Node: "v1", Pod: "v1", PodDisruptionBudget: "policy/v1" },
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
  /** `reportingInstance`: which replica speaks. */
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
      // Deleted by somebody: the next one is created again.
      if (status === 404) this.#series.delete(key);
      return;
    }
    await this.#create(event, key).catch((error: unknown) => {
      // What was not written cannot be counted up.
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
    // What belongs to the whole cluster has its Events in this namespace, as Kubernetes has it.
    const namespace = "namespace" in event.about ? event.about.namespace : "default";
    this.#serial += 1;
    const name = nameOf(event.about.name, `${now.toString(16)}.${this.#serial.toString(16)}`);
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
        message: event.message.slice(0, maxMessage),
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

/** No name is longer, and a pod's own may be as long. */
const longestName = 253;

/** A part of a name between two dots ends with a letter or a digit. */
function nameOf(subject: string, serial: string): string {
  const most = longestName - serial.length - 1;
  return `${subject.slice(0, most).replace(/[-.]+$/, "")}.${serial}`;
}

function referenceTo(about: EventTarget): Readonly<Record<string, string>> {
  return { apiVersion: apiVersions[about.kind], ...about };
}
