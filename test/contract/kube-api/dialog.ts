import { expect } from "vitest";
import type { KubeAnswer, KubeObject, PatchType } from "../../../src/contracts/kube-api.ts";
import { type Duty, meetsDuty } from "./duty.ts";
import type { KubeApiTarget } from "./target.ts";

export type TargetOf = () => KubeApiTarget;
type Query = Readonly<Record<string, string>>;

/** Shorthands for requests to one collection of a target. */
export class Dialog {
  readonly #target: TargetOf;
  readonly #collection: (target: KubeApiTarget) => string;

  constructor(target: TargetOf, collection: (target: KubeApiTarget) => string) {
    this.#target = target;
    this.#collection = collection;
  }

  path(rest = ""): string {
    return this.#collection(this.#target()) + (rest === "" ? "" : `/${rest}`);
  }

  get(name = "", query: Query = {}): Promise<KubeAnswer> {
    return this.#target().api.send({ method: "GET", path: this.path(name), query });
  }

  create(body: unknown, query: Query = {}): Promise<KubeAnswer> {
    return this.#target().api.send({ method: "POST", path: this.path(), body, query });
  }

  /** Creates an object; if that fails, fails the test with the server's message. */
  async mustCreate(body: unknown): Promise<KubeObject> {
    return mustBe(201, await this.create(body));
  }

  async mustGet(name: string): Promise<KubeObject> {
    return mustBe(200, await this.get(name));
  }

  put(name: string, body: unknown): Promise<KubeAnswer> {
    return this.#target().api.send({ method: "PUT", path: this.path(name), body });
  }

  patch(name: string, patch: Patch): Promise<KubeAnswer> {
    const { type, body, query = {} } = patch;
    const path = this.path(name);
    return this.#target().api.send({ method: "PATCH", path, patchType: type, body, query });
  }

  merge(name: string, body: unknown): Promise<KubeAnswer> {
    return this.patch(name, { type: "application/merge-patch+json", body });
  }

  delete(name: string, options: { body?: unknown; query?: Query } = {}): Promise<KubeAnswer> {
    return this.#target().api.send({ method: "DELETE", path: this.path(name), ...options });
  }

  post(rest: string, body: unknown, query: Query = {}): Promise<KubeAnswer> {
    return this.#target().api.send({ method: "POST", path: this.path(rest), body, query });
  }
}

export interface Patch {
  readonly type: PatchType;
  readonly body: unknown;
  readonly query?: Query;
}

export function configMaps(target: TargetOf): Dialog {
  return new Dialog(target, ({ namespace }) => `/api/v1/namespaces/${namespace}/configmaps`);
}

export function pods(target: TargetOf): Dialog {
  return new Dialog(target, ({ namespace }) => `/api/v1/namespaces/${namespace}/pods`);
}

export function nodes(target: TargetOf): Dialog {
  return new Dialog(target, () => "/api/v1/nodes");
}

export function budgets(target: TargetOf): Dialog {
  return new Dialog(
    target,
    ({ namespace }) => `/apis/policy/v1/namespaces/${namespace}/poddisruptionbudgets`,
  );
}

export function leases(target: TargetOf): Dialog {
  return new Dialog(
    target,
    ({ namespace }) => `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`,
  );
}

/** Returns the body as an object if the response has the expected status. */
export function mustBe(status: number, answer: KubeAnswer): KubeObject {
  expect(answer, JSON.stringify(answer.body)).toMatchObject({ status });
  return answer.body as KubeObject;
}

/**
 * Returns the Status of a refusal if it has the code and reason that the server's source specifies.
 */
export function mustRefuse(
  answer: KubeAnswer,
  wanted: { status: number; reason: string },
): KubeObject {
  const status = { kind: "Status", status: "Failure", code: wanted.status, reason: wanted.reason };
  expect(answer).toMatchObject({ status: wanted.status, body: status });
  return answer.body as KubeObject;
}

export function configMap(name: string, data: Readonly<Record<string, string>> = {}): object {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data };
}

/**
 * A pod that no scheduler binds: it is bound to a node that does not exist, or names another
 * scheduler. It therefore stays as the test leaves it, whether or not controllers are running.
 */
export function pod(
  name: string,
  options: {
    nodeName?: string;
    labels?: Readonly<Record<string, string>>;
    graceSeconds?: number;
  } = {},
): object {
  const { nodeName, labels, graceSeconds } = options;
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, ...(labels ? { labels } : {}) },
    spec: {
      schedulerName: "nobody",
      containers: [{ name: "main", image: "registry.k8s.io/pause:3.10" }],
      ...(nodeName === undefined ? {} : { nodeName }),
      ...(graceSeconds === undefined ? {} : { terminationGracePeriodSeconds: graceSeconds }),
    },
  };
}

/** Writes the status that a kubelet would: the pod is running, and ready or not. */
export async function makeRun(
  dialog: Dialog,
  name: string,
  ready: "Ready" | "NotReady" = "Ready",
): Promise<void> {
  const condition = { type: "Ready", status: ready === "Ready" ? "True" : "False" };
  const status = { phase: "Running", conditions: [condition] };
  mustBe(200, await dialog.merge(`${name}/status`, { status }));
}

/** Retries until the response matches or a time limit passes, instead of sleeping. */
export async function until(duty: Duty): Promise<void> {
  expect(await meetsDuty(duty), duty.what).toBe(true);
}

export function metadataOf(object: unknown): Readonly<Record<string, unknown>> {
  return (object as { metadata: Readonly<Record<string, unknown>> }).metadata;
}

/** The field at a dotted path into status, spec or metadata; for expectations only. */
export function field(object: unknown, path: string): unknown {
  let value: unknown = object;
  for (const part of path.split("."))
    value = (value as Record<string, unknown> | undefined)?.[part];
  return value;
}
