import { expect } from "vitest";
import type { KubeAnswer, KubeObject, PatchType } from "../../../src/contracts/kube-api.ts";
import { type Duty, meetsDuty } from "./duty.ts";
import type { KubeApiTarget } from "./target.ts";

export type TargetOf = () => KubeApiTarget;
type Query = Readonly<Record<string, string>>;

/** A short way to speak to a target about one collection. */
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

  /** Creates, and fails the test with the server's words if that did not work. */
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

/** The body as an object, once the answer has the status that was hoped for. */
export function mustBe(status: number, answer: KubeAnswer): KubeObject {
  expect(answer, JSON.stringify(answer.body)).toMatchObject({ status });
  return answer.body as KubeObject;
}

/**
 * A refusal's Status, once the answer has the code and the reason that the server's source says.
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
 * A pod that no scheduler takes: bound to a node that does not exist, or waiting for a scheduler
 * of another name. So it stays as the test leaves it, with and without controllers around.
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

/** Writes what a kubelet would: the pod runs, and is ready or not. */
export async function makeRun(
  dialog: Dialog,
  name: string,
  ready: "Ready" | "NotReady" = "Ready",
): Promise<void> {
  const condition = { type: "Ready", status: ready === "Ready" ? "True" : "False" };
  const status = { phase: "Running", conditions: [condition] };
  mustBe(200, await dialog.merge(`${name}/status`, { status }));
}

/** Asks again until the answer fits; a condition, with a time limit, instead of a sleep. */
export async function until(duty: Duty): Promise<void> {
  expect(await meetsDuty(duty), duty.what).toBe(true);
}

export function metadataOf(object: unknown): Readonly<Record<string, unknown>> {
  return (object as { metadata: Readonly<Record<string, unknown>> }).metadata;
}

/** The field of a status, spec or metadata by a dotted path; for expectations only. */
export function field(object: unknown, path: string): unknown {
  let value: unknown = object;
  for (const part of path.split("."))
    value = (value as Record<string, unknown> | undefined)?.[part];
  return value;
}
