import type { ModelObject } from "../../src/sim/api/store/object-store.ts";
import { rights } from "./faults/right-faults.ts";
import type { At, TraceEvent } from "./trace.ts";
import type { PolicySpec, World } from "./world.ts";

/** The pinned names of the contract, which are all that checkers know of Lastcall. */
export const marks = {
  departure: "lastcall.dev/departure",
  hold: "lastcall.dev/hold",
  doNotDisturb: "lastcall.dev/do-not-disturb",
  taint: "lastcall.dev/departing",
  placeholder: "lastcall.dev/placeholder-of",
} as const;

export interface NodeObject extends ModelObject {
  readonly spec: {
    readonly unschedulable?: boolean;
    readonly providerID?: string;
    readonly taints?: readonly { readonly key: string }[];
  };
  readonly status: {
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly lastTransitionTime?: string;
    }[];
  };
}

export interface PodObject extends ModelObject {
  readonly spec: {
    readonly nodeName?: string;
    readonly terminationGracePeriodSeconds?: number;
  };
  readonly status: { readonly phase: string };
}

export interface DepartureObject extends ModelObject {
  readonly spec: {
    readonly node: { readonly name: string; readonly uid: string; readonly bootID?: string };
    readonly cause: string;
    readonly policy?: string;
    readonly noticedAt?: string;
    readonly withdrawnAt?: string;
    readonly hold?: boolean;
  };
  readonly status?: {
    readonly phase?: string;
    readonly outcome?: string;
    readonly reason?: string;
    readonly message?: string;
    readonly endedAt?: string;
    readonly machine?: { readonly id: string };
    readonly actions?: readonly { readonly result?: string }[];
    readonly timeline?: readonly { readonly step: string; readonly result: string }[];
  };
}

export interface MachineView {
  readonly name: string;
  readonly id: string;
  readonly bornAt: At;
  readonly state: "Launched" | "Registered" | "Stopping" | "Gone";
  readonly since: At;
  readonly because: string | undefined;
}

interface FaultSpan {
  readonly name: string;
  readonly from: At;
  to: At;
}

/** A node of the fleet that cannot take pods, since when, and why, which may have come later. */
interface Unusable {
  readonly since: At;
  readonly why: "Cordoned" | "NotReady" | "Released" | "Taken" | "Booting";
  readonly whySince: At;
}

/**
 * The true state of the world, folded from the trace: what an observer knows who sees everything
 * and asks no process.
 */
export class View {
  readonly world: World;
  readonly nodes = new Map<string, NodeObject>();
  readonly pods = new Map<string, PodObject>();
  readonly departures = new Map<string, DepartureObject>();
  readonly budgets = new Map<string, ModelObject>();
  /** By name: the machine that has it now. */
  readonly machines = new Map<string, MachineView>();
  readonly machinesById = new Map<string, MachineView>();
  readonly faults = new Map<number, FaultSpan>();
  readonly pastFaults: FaultSpan[] = [];
  /** When each pod was first asked to leave, by uid; `false`: refused by its budget. */
  readonly askedAt = new Map<string, At>();
  /** When each pod began to leave, by uid. */
  readonly leavingAt = new Map<string, At>();
  /** The versions of the policy; undefined while there is none. */
  readonly policies: { readonly at: At; readonly spec: PolicySpec | undefined }[] = [];
  /** Since when a node or a Departure is held by a person, by name. */
  readonly heldSince = new Map<string, At>();
  readonly unusable = new Map<string, Unusable>();
  /** Who has held the Lease since when; undefined: nobody. */
  readonly #leaders: { readonly at: At; readonly holder: string | undefined }[] = [];
  #copyGoneAt: At = Number.NEGATIVE_INFINITY;
  now: At = 0;
  isCalm = false;
  /** Writes from this instant on are writes at rest; set once it is known. */
  restFrom: At | undefined;

  constructor(world: World) {
    this.world = world;
  }

  apply(event: TraceEvent): void {
    this.now = event.at;
    if (event.kind === "Change") this.#change(event);
    else if (event.kind === "Machine") this.#machine(event);
    else if (event.kind === "Fault") this.#fault(event);
    else if (event.kind === "Request") this.#request(event);
    else if (event.kind === "Calm") this.isCalm = true;
  }

  get leader(): string | undefined {
    return this.#leaders.at(-1)?.holder;
  }

  /** Who held the Lease at an instant. */
  leaderAt(at: At): string | undefined {
    return this.#leaders.findLast((one) => one.at <= at)?.holder;
  }

  /** The policy as it was at an instant. */
  policyAt(at: At): PolicySpec | undefined {
    return this.policies.findLast((one) => one.at <= at)?.spec;
  }

  /** The versions of the policy that were in force during a span; undefined: there was none. */
  policiesIn({ from, to }: { from: At; to: At }): readonly (PolicySpec | undefined)[] {
    const changes = this.policies.filter(({ at }) => at > from && at <= to);
    return [this.policyAt(from), ...changes.map(({ spec }) => spec)];
  }

  /** Whether a second policy, a copy of the first, was there after an instant. */
  hadCopyAfter(at: At): boolean {
    return this.#copyGoneAt > at;
  }

  /** By which what is under way goes on: one that is deleted holds for what has begun with it. */
  policyUnderWay(): PolicySpec {
    return this.policies.findLast(({ spec }) => spec !== undefined)?.spec ?? this.world.policy;
  }

  podsOn(node: string): readonly PodObject[] {
    return [...this.pods.values()].filter(({ spec }) => spec.nodeName === node);
  }

  departureOf(node: NodeObject): DepartureObject | undefined {
    const found = this.departures.get(node.metadata.annotations?.[marks.departure] ?? "");
    return found?.spec.node.uid === node.metadata.uid ? found : undefined;
  }

  /**
   * How much of a span some faults took, with their wake: what they delay ends a little after them.
   */
  troubledMs(span: { from: At; to: At }, isMeant: (name: string) => boolean, wakeMs = 0): number {
    const spans = [...this.pastFaults, ...this.faults.values()]
      .filter(({ name }) => isMeant(name))
      .map(({ from, to }) => ({
        from: Math.max(from, span.from),
        to: Math.min(to + wakeMs, span.to),
      }))
      .filter(({ from, to }) => from < to)
      .toSorted((a, b) => a.from - b.from);
    let [sum, reached] = [0, span.from];
    for (const { from, to } of spans) {
      sum += Math.max(0, to - Math.max(from, reached));
      reached = Math.max(reached, to);
    }
    return sum;
  }

  #change({ storage, type, object, at }: TraceEvent & { kind: "Change" }): void {
    const { name, namespace = "" } = object.metadata;
    const isGone = type === "DELETED";
    const set = <T>(map: Map<string, T>, key: string): void => {
      if (isGone) map.delete(key);
      else map.set(key, object as unknown as T);
    };
    if (storage === "nodes") {
      set(this.nodes, name);
      this.#since(
        this.heldSince,
        name,
        !isGone && object.metadata.annotations?.[marks.hold] === "true",
      );
      this.#usable(name);
    } else if (storage === "pods") {
      set(this.pods, `${namespace}/${name}`);
      const { uid, deletionTimestamp } = object.metadata;
      if (deletionTimestamp !== undefined && !this.askedAt.has(uid)) this.askedAt.set(uid, at);
      if (deletionTimestamp !== undefined && !this.leavingAt.has(uid)) this.leavingAt.set(uid, at);
    } else if (storage.startsWith("departures.")) {
      set(this.departures, name);
      this.#since(this.heldSince, name, !isGone && (object as DepartureObject).spec.hold === true);
    } else if (storage.startsWith("departurepolicies.")) {
      if (name !== "spot") {
        this.#copyGoneAt = isGone ? at : Number.POSITIVE_INFINITY;
        return;
      }
      const spec = isGone ? undefined : (object.spec as PolicySpec);
      this.policies.push({ at, spec });
    } else if (storage.startsWith("poddisruptionbudgets.")) {
      set(this.budgets, `${namespace}/${name}`);
    } else if (storage.startsWith("leases.")) {
      const { holderIdentity } = object.spec as { holderIdentity?: string };
      const holder = isGone ? undefined : holderIdentity || undefined;
      if (holder !== this.leader) this.#leaders.push({ at, holder });
    }
  }

  #machine({ what, name, id, because, bornAt, at }: TraceEvent & { kind: "Machine" }): void {
    if (what === "Noticed") return;
    const machine = { name, id, bornAt, state: what, because, since: at };
    this.machines.set(name, machine);
    this.machinesById.set(id, machine);
    this.#usable(name);
  }

  #usable(name: string): void {
    const why = this.#whyUnusable(name);
    if (why === undefined) this.unusable.delete(name);
    else if (this.unusable.get(name)?.why !== why) {
      const since = this.unusable.get(name)?.since ?? this.now;
      this.unusable.set(name, { since, why, whySince: this.now });
    }
  }

  #whyUnusable(name: string): Unusable["why"] | undefined {
    const machine = this.machines.get(name);
    if (machine === undefined) return undefined;
    const { state, because } = machine;
    const node = this.nodes.get(name);
    if (state === "Gone" || state === "Stopping")
      return because === "Released" ? "Released" : "Taken";
    if (state === "Launched") {
      // What its predecessor went for still counts, until this one can take pods.
      return this.unusable.get(name)?.why ?? "Booting";
    }
    if (node === undefined) return "Booting";
    if (node.spec.unschedulable === true) return "Cordoned";
    const ready = node.status.conditions?.find(({ type }) => type === "Ready")?.status;
    return ready === "True" ? undefined : "NotReady";
  }

  #fault({ what, index, name, at }: TraceEvent & { kind: "Fault" }): void {
    if (what === "begins") {
      const full = this.#nameOf(index, name);
      this.faults.set(index, { name: full, from: at, to: Number.POSITIVE_INFINITY });
      return;
    }
    const fault = this.faults.get(index);
    this.faults.delete(index);
    if (fault !== undefined) this.pastFaults.push({ ...fault, to: at });
  }

  /** A lost right is named as well: what it keeps from being done depends on it. */
  #nameOf(index: number, name: string): string {
    const right = rights[Number(this.world.faults[index]?.with.right)];
    return name === "right-removed" && right ? `${name} ${right.verb} ${right.resource}` : name;
  }

  /** An eviction that a budget refuses has been asked for all the same. */
  #request({ path, status, at }: TraceEvent & { kind: "Request" }): void {
    const found = /^\/api\/v1\/namespaces\/([^/]+)\/pods\/([^/]+)\/eviction$/.exec(path);
    if (found === null || status !== 429) return;
    const uid = this.pods.get(`${found[1]}/${found[2]}`)?.metadata.uid;
    if (uid !== undefined && !this.askedAt.has(uid)) this.askedAt.set(uid, at);
  }

  #since(map: Map<string, At>, name: string, holds: boolean): void {
    if (!holds) map.delete(name);
    else if (!map.has(name)) map.set(name, this.now);
  }
}

/** Nobody has announced the end of its machine: it leaves because a plan or a person wants it. */
export function isVoluntary({ spec }: DepartureObject): boolean {
  return (spec.cause === "Planned" || spec.cause === "Manual") && spec.noticedAt === undefined;
}

export function phaseOf(departure: DepartureObject): string {
  return departure.status?.phase ?? "Scheduled";
}

export const underWay: readonly string[] = ["Preparing", "Draining", "Releasing", "RollingBack"];
