import { type Instant, instant, type Millis } from "../../src/core/time/time.ts";
import type { ArmServer } from "../support/arm-server.ts";
import type { RunRequest } from "../support/control-plane-run.ts";
import type { Ec2Fleet } from "../support/ec2-fleet.ts";
import type { LastcallProcess } from "../support/lastcall-process.ts";
import type { Moto } from "../support/moto.ts";
import type { RelayVerdict } from "../support/relay.ts";
import type { FleetWorld } from "./fleet-world.ts";

/** A fault of an installation that turns a check of doctor red. */
export interface Fault {
  readonly check: string;
  readonly status: "Warn" | "Fail";
  /** What is wrong, for the table of docs/doctor.md. */
  readonly what: string;
  /** Part of the check's message. */
  readonly says: string;
  /** Other checks that turn red, too. */
  readonly also?: readonly string[];
  readonly make?: (stage: Stage) => Promise<unknown>;
  /** Absent although `make` is present: the fault stays. */
  readonly mend?: (stage: Stage) => Promise<unknown>;
  /** How doctor is run, if differently. */
  readonly asked?: (stage: Stage) => Asked | Promise<Asked>;
}

export interface Asked {
  readonly flags?: readonly string[];
  /** How far doctor's clock is ahead, as if it ran that much later. */
  readonly later?: Millis;
  readonly env?: Readonly<Record<string, string>>;
  /** What the relays to the API server and to Compute Engine answer. */
  readonly api?: (path: string) => Promise<RelayVerdict>;
  readonly gce?: (path: string) => Promise<RelayVerdict>;
}

/** Faults that are made one after another in one state of the installation. */
export interface FaultPhase {
  readonly title: string;
  readonly prepare?: (stage: Stage) => Promise<unknown>;
  readonly faults: readonly Fault[];
}

/** Where faults are made: the cluster, its controller, and every cloud. */
export interface Stage {
  readonly world: FleetWorld;
  readonly controller: LastcallProcess;
  /** SQS. */
  readonly moto: Moto;
  readonly fleet: Ec2Fleet;
  readonly arm: ArmServer;
  /** An Alertmanager with one firing alert, `Down`. */
  readonly alertmanager: { readonly url: string };
  /** An address at which nothing listens. */
  readonly nowhere: string;
  /** A kubeconfig for this server and this token. */
  kubeconfig(url: string, token: string): string;
  /** Runs kubectl apply with a path relative to the repository's root. */
  apply(how: "-f" | "-k", path: string): Promise<void>;
}

export type Body = Record<string, unknown>;
export type Change = Required<Pick<Fault, "make" | "mend">>;

/** Sends a request as the administrator, which must succeed. */
export async function send({ world }: Stage, request: RunRequest): Promise<Body> {
  const { status, body } = await world.plane.request(request);
  if (status < 300) return body;
  throw new Error(`Cannot ${request.method} ${request.path}: ${status} ${body.message}`);
}

export function patched(
  path: string,
  body: object,
  kind: "merge" | "strategic-merge" = "merge",
): Change["make"] {
  const contentType = `application/${kind}-patch+json`;
  return (stage) => send(stage, { method: "PATCH", path, contentType, body });
}

/** A merge patch, and the one that reverts it. */
export function changed(path: string, body: object, back: object): Change {
  return { make: patched(path, body), mend: patched(path, back) };
}

export function created(collection: string, object: Body, status?: object): Change {
  const { name } = object.metadata as { readonly name: string };
  const path = `${collection}/${name}`;
  return {
    make: async (stage) => {
      await send(stage, { method: "POST", path: collection, body: object });
      if (status !== undefined) await patched(`${path}/status`, { status })(stage);
    },
    mend: (stage) => send(stage, { method: "DELETE", path: `${path}?gracePeriodSeconds=0` }),
  };
}

/** Deletes an object, and creates it again as it was. */
export function removed(path: string): Change {
  let kept: Body = {};
  return {
    make: async (stage) => {
      kept = await send(stage, { method: "GET", path });
      await send(stage, { method: "DELETE", path });
    },
    mend: (stage) => {
      const { resourceVersion: _, uid: __, ...metadata } = kept.metadata as Body;
      const collection = path.slice(0, path.lastIndexOf("/"));
      const body = { ...kept, metadata, status: undefined };
      return send(stage, { method: "POST", path: collection, body });
    },
  };
}

export function annotated(path: string, key: string, value: string): Change {
  const of = (text: string | null) => ({ metadata: { annotations: { [key]: text } } });
  return changed(path, of(value), of(null));
}

/** A merge patch of the policy of the first generation's nodes. */
export function specified(spec: object, back: object): Change {
  const path = "/apis/lastcall.dev/v1alpha1/departurepolicies/spot";
  return changed(path, { spec }, { spec: back });
}

export function tainted(name: string, key: string): Change {
  const taints = [{ key, effect: "NoSchedule" }];
  return changed(`/api/v1/nodes/${name}`, { spec: { taints } }, { spec: { taints: null } });
}

/** A pod of Lastcall that no scheduler handles, so it stays as it is created. */
export function idlePod(name: string, spec: object = {}, component = "controller"): Body {
  const containers = [{ name: "main", image: "registry.example/main:1" }];
  const labels = {
    "app.kubernetes.io/name": "lastcall",
    "app.kubernetes.io/component": component,
  };
  return {
    ...{ apiVersion: "v1", kind: "Pod" },
    metadata: { name, labels },
    spec: { schedulerName: "nobody", containers, ...spec },
  };
}

/** Answers one path instead of the API server or a cloud. */
export function answering(
  path: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
) {
  return async (asked: string): Promise<RelayVerdict> =>
    asked === path ? { status: 200, headers, body } : "Pass";
}

export function ago(span: Millis): Instant {
  return instant(Date.now() - span);
}

export function version(name: string): object {
  const [major, minor] = name.split(".");
  return { major, minor, gitVersion: `v${name}` };
}

/** An API server whose clock is this far ahead. */
export function serverTime(aheadSeconds: number): Asked {
  const date = () => new Date(Date.now() + aheadSeconds * 1000).toUTCString();
  return { api: (path) => answering("/version", version("1.34.0"), { date: date() })(path) };
}
