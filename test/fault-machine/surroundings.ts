import type { KubeAnswer, KubeWatchEvent } from "../../src/contracts/kube-api.ts";
import type { Instant } from "../../src/core/time/time.ts";
import type { LastcallError } from "../../src/errors.ts";
import type { ModelObject } from "../../src/sim/api/store/object-store.ts";
import type { ModelCluster } from "../../src/sim/model-cluster.ts";
import type { VirtualClock } from "../../src/sim/time/virtual-clock.ts";
import type { TraceEvent } from "./trace.ts";
import type { World } from "./world.ts";

/** What is told to checkers: an event without its instant, which the stage knows. */
export type Told = TraceEvent extends infer E
  ? E extends TraceEvent
    ? Omit<E, "at">
    : never
  : never;

/** The kinds of objects that people edit. */
export type EditedKind = "nodes" | "policies" | "departures" | "budgets";

/** What surrounds a process: the true cluster and clock, and what faults do on the way to them. */
export interface Surroundings {
  readonly world: World;
  readonly clock: VirtualClock;
  readonly cluster: ModelCluster;
  tell(told: Told): void;
  apiEffect(call: ApiCall): ApiEffect | undefined;
  watchEffect(watch: Parameters<WatchRule>[0]): WatchEffect | undefined;
  cloudEffect(call: CloudCall): CloudEffect | undefined;
  serverTime(): Instant;
  after(ms: number, act: () => void): void;
  get(kind: EditedKind, name: string): ModelObject | undefined;
}

/** A request as faults choose it. */
export interface ApiCall {
  readonly process: string;
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
}

/** What a fault makes of a request. */
export type ApiEffect =
  | { readonly kind: "Answer"; readonly status: number; readonly message: string }
  /** It never arrives. */
  | { readonly kind: "LostBefore" }
  /** It is carried out, and the answer never arrives. */
  | { readonly kind: "LostAfter" }
  /** It is carried out, and something in between changes the answer. */
  | { readonly kind: "Alters"; readonly alter: (answer: KubeAnswer) => KubeAnswer }
  /** It arrives late. */
  | { readonly kind: "DelayBefore"; readonly ms: number }
  /** It is carried out at once, and its answer arrives late. */
  | { readonly kind: "DelayAfter"; readonly ms: number };

export type ApiRule = (call: ApiCall) => ApiEffect | undefined;

/** What a fault makes of one event of a watch; `Held` until the fault ends. */
export type WatchEffect =
  | { readonly kind: "Late"; readonly ms: number }
  | { readonly kind: "Held"; readonly until: Promise<void> }
  | { readonly kind: "Expired" }
  | { readonly kind: "Broken" };

/** Asked when a watch is opened (`event` undefined) and for each of its events. */
export type WatchRule = (watch: {
  readonly process: string;
  readonly path: string;
  readonly event: KubeWatchEvent | undefined;
}) => WatchEffect | undefined;

export type CloudVerb = "describe" | "check" | "release" | "launchTimes";

export interface CloudCall {
  readonly process: string;
  readonly verb: CloudVerb;
  readonly machine: string;
}

export type CloudEffect =
  | { readonly kind: "Fails"; readonly error: LastcallError }
  | { readonly kind: "Late"; readonly ms: number }
  /** The cloud does it, and answers with an error. */
  | { readonly kind: "FailsAfter"; readonly error: LastcallError }
  /** The cloud accepts it, and nothing happens. */
  | { readonly kind: "Forgotten" };

export type CloudRule = (call: CloudCall) => CloudEffect | undefined;
