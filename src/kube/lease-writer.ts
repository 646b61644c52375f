import type { Clock } from "../contracts/clock.ts";
import type { KubeAnswer, KubeApi, KubeObject } from "../contracts/kube-api.ts";
import { fieldsOf } from "../core/json/json-field.ts";
import { type Millis, seconds } from "../core/time/time.ts";
import { isLastcallError, type LastcallError } from "../errors.ts";
import { type LeasePlace, type LeaseRecord, leaseObject, translateLease } from "./lease-record.ts";
import { apiError } from "./object/api-error.ts";

export type LeaseWrite =
  | { readonly kind: "Written"; readonly record: LeaseRecord }
  /** Somebody has written, or made one, since it was read. */
  | { readonly kind: "Conflict" }
  | { readonly kind: "Failed"; readonly error: LastcallError };

export type LeaseRead =
  | { readonly kind: "Found"; readonly record: LeaseRecord }
  | { readonly kind: "Absent" }
  | { readonly kind: "Failed"; readonly error: LastcallError };

export interface LeaseWriterOptions extends LeasePlace {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly durationSeconds: number;
}

/** A request for the Lease that is swallowed must leave time for others before the Lease runs out. */
const timeoutMs: Millis = seconds(5);

/** Reads and writes one Lease object; every outcome is a value. */
export class LeaseWriter {
  readonly collection: string;
  readonly #options: LeaseWriterOptions;

  constructor(options: LeaseWriterOptions) {
    this.#options = options;
    this.collection = `/apis/coordination.k8s.io/v1/namespaces/${options.namespace}/leases`;
  }

  /** Creates the lease where there was none before, else replaces just that version of it. */
  async write(
    before: LeaseRecord | undefined,
    holder: string,
    signal?: AbortSignal,
  ): Promise<LeaseWrite> {
    const { clock } = this.#options;
    const body = leaseObject({ ...this.#options, before, holder, now: clock.now() });
    const request =
      before === undefined
        ? ({ method: "POST", path: this.collection } as const)
        : ({ method: "PUT", path: this.#path() } as const);
    const answer = await this.#send({ ...request, body, timeoutMs, signal });
    if (isLastcallError(answer)) return { kind: "Failed", error: answer };
    if (answer.status === 200 || answer.status === 201) {
      return { kind: "Written", record: toRecord(answer) };
    }
    const wasDeleted = answer.status === 404 && before !== undefined;
    if (answer.status === 409 || wasDeleted) return { kind: "Conflict" };
    return { kind: "Failed", error: apiError(request, answer) };
  }

  async read(signal?: AbortSignal): Promise<LeaseRead> {
    const request = { method: "GET", path: this.#path() } as const;
    const answer = await this.#send({ ...request, timeoutMs, signal });
    if (isLastcallError(answer)) return { kind: "Failed", error: answer };
    if (answer.status === 200) return { kind: "Found", record: toRecord(answer) };
    if (answer.status === 404) return { kind: "Absent" };
    return { kind: "Failed", error: apiError(request, answer) };
  }

  async #send(request: Parameters<KubeApi["send"]>[0]): Promise<KubeAnswer | LastcallError> {
    try {
      return await this.#options.api.send(request);
    } catch (error) {
      if (isLastcallError(error)) return error;
      throw error;
    }
  }

  #path(): string {
    return `${this.collection}/${this.#options.name}`;
  }
}

function toRecord(answer: KubeAnswer): LeaseRecord {
  return translateLease(fieldsOf(answer.body) as KubeObject);
}
