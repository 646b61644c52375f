import type { Clock } from "../../src/contracts/clock.ts";
import { type Millis, seconds } from "../../src/core/time/time.ts";
import type {
  ComputeGroup,
  ComputeMachine,
  ComputeOperation,
  ComputeProject,
  OperationError,
} from "./compute-body.ts";

export interface ComputeTimings {
  /** Until a group's operation is DONE, which only means that the work is scheduled. */
  readonly scheduleMs: Millis;
  /** From STOPPING until the machine is gone, or TERMINATED after a preemption. */
  readonly stopMs: Millis;
  /** From then until the group's new machine is created. */
  readonly createMs: Millis;
  /** From its creation until it is RUNNING. */
  readonly startMs: Millis;
}

export const defaultTimings: ComputeTimings = {
  scheduleMs: seconds(1),
  stopMs: seconds(30),
  createMs: seconds(10),
  startMs: seconds(5),
};

export interface ComputeModelOptions {
  readonly project: ComputeProject;
  readonly clock: Clock;
  readonly timings: ComputeTimings;
  /** Ends all waiting. */
  readonly closed: AbortSignal;
  readonly onInstanceGone: (name: string, zone: string) => void;
  readonly onInstanceBorn: (machine: ComputeMachine) => void;
}

/** A refusal of the API: a status, a reason and a message. */
export class ComputeRefusal extends Error {
  readonly status: number;
  readonly reason: string;

  constructor(status: number, reason: string, message: string) {
    super(message);
    this.status = status;
    this.reason = reason;
  }
}

type Place = { readonly scope: "zones" | "regions"; readonly location: string };

/** The machines, groups and operations of one project, driven by a clock. */
export class ComputeModel {
  readonly options: ComputeModelOptions;
  readonly #machines = new Map<string, ComputeMachine>();
  readonly #groups = new Map<string, ComputeGroup>();
  readonly #operations = new Map<string, ComputeOperation>();
  readonly #byRequestId = new Map<string, ComputeOperation>();
  readonly #abandoned = new Set<string>();
  readonly #doneWaiters = new Map<string, (() => void)[]>();
  #sequence = 0;
  #nextOperationError: OperationError | undefined;

  constructor(options: ComputeModelOptions) {
    this.options = options;
  }

  addGroup(spec: Place & { readonly name: string }): ComputeGroup {
    const createdAt = this.options.clock.now();
    const group = { ...spec, id: this.#nextId(), createdAt, targetSize: 0 };
    this.#groups.set(`${spec.scope}/${spec.location}/${spec.name}`, group);
    return group;
  }

  /** Adds a running machine; it is a member of `group` if that is given. */
  addMachine(spec: {
    readonly name: string;
    readonly zone: string;
    readonly group?: ComputeGroup | undefined;
    readonly spot?: boolean;
    readonly deletionProtection?: boolean;
    readonly labels?: Readonly<Record<string, string>>;
  }): ComputeMachine {
    if (spec.group) spec.group.targetSize++;
    const machine = this.#bear({ spot: true, deletionProtection: false, labels: {}, ...spec });
    machine.status = "RUNNING";
    return machine;
  }

  machines(zone: string): readonly ComputeMachine[] {
    return [...this.#machines.values()].filter((machine) => machine.zone === zone);
  }

  allMachines(): readonly ComputeMachine[] {
    return [...this.#machines.values()];
  }

  machine(zone: string, name: string): ComputeMachine {
    const found = this.#machines.get(`${zone}/${name}`);
    if (found) return found;
    throw this.#notFound(`zones/${zone}/instances/${name}`);
  }

  group(place: Place, name: string): ComputeGroup {
    const found = this.#groups.get(`${place.scope}/${place.location}/${name}`);
    if (found) return found;
    throw this.#notFound(`${place.scope}/${place.location}/instanceGroupManagers/${name}`);
  }

  operations(place: Place): readonly ComputeOperation[] {
    return [...this.#operations.values()].filter(
      (one) => one.scope === place.scope && one.location === place.location,
    );
  }

  operation(place: Place, name: string): ComputeOperation {
    const found = this.operations(place).find((one) => one.name === name);
    if (found) return found;
    throw this.#notFound(`${place.scope}/${place.location}/operations/${name}`);
  }

  forgetOperations(): void {
    this.#operations.clear();
  }

  /** The next operation ends with this error and has no effect. */
  failNextOperation(error: OperationError): void {
    this.#nextOperationError = error;
  }

  /**
   * `instances.delete`. A group's machine is recreated, because the target size of the group stays.
   */
  deleteMachine(target: {
    readonly zone: string;
    readonly name: string;
    readonly requestId?: string | undefined;
  }): ComputeOperation {
    const known = this.#known(target.requestId);
    if (known) return known;
    const machine = this.machine(target.zone, target.name);
    if (machine.deletionProtection) {
      const message = `Invalid resource usage: 'Resource cannot be deleted if it's protected against deletion.'.`;
      throw new ComputeRefusal(400, "invalidResourceUsage", message);
    }
    if (machine.status === "STOPPING") {
      throw new ComputeRefusal(403, "rateLimitExceeded", "Rate Limit Exceeded");
    }
    const operation = this.#begin("delete", {
      place: { scope: "zones", location: machine.zone },
      targetPath: `zones/${machine.zone}/instances/${machine.name}`,
      targetId: machine.id,
      requestId: target.requestId,
    });
    if (operation.error) this.#after(this.options.timings.scheduleMs, () => this.#end(operation));
    else {
      const onGone = () => this.#end(operation);
      this.#stop(machine, { onGone, comesBack: machine.group !== undefined });
    }
    return operation;
  }

  /**
   * `recreateInstances` and `deleteInstances`: DONE when scheduled, long before a machine is gone.
   */
  actOnGroup(
    method: "recreateInstances" | "deleteInstances",
    act: {
      readonly group: ComputeGroup;
      readonly instances: readonly string[];
      readonly skipInvalid: boolean;
      readonly requestId?: string | undefined;
    },
  ): ComputeOperation {
    const known = this.#known(act.requestId);
    if (known) return known;
    const { group } = act;
    const members = act.instances.flatMap((path) => this.#member(path, act) ?? []);
    const operation = this.#begin(`compute.instanceGroupManagers.${method}`, {
      place: group,
      targetPath: `${group.scope}/${group.location}/instanceGroupManagers/${group.name}`,
      targetId: group.id,
      requestId: act.requestId,
    });
    this.#after(this.options.timings.scheduleMs, () => this.#end(operation));
    if (operation.error) return operation;
    const comesBack = method === "recreateInstances";
    if (!comesBack) group.targetSize -= members.length;
    for (const machine of members) {
      this.#after(this.options.timings.scheduleMs, () => this.#stop(machine, { comesBack }));
    }
    return operation;
  }

  /** The cloud preempts a Spot machine: STOPPING, TERMINATED, and its group creates a new one. */
  preempt(zone: string, name: string): ComputeOperation {
    const machine = this.machine(zone, name);
    machine.status = "STOPPING";
    const operation = this.#begin("compute.instances.preempted", {
      place: { scope: "zones", location: zone },
      targetPath: `zones/${zone}/instances/${name}`,
      targetId: machine.id,
    });
    operation.statusMessage = "Instance was preempted.";
    this.#end(operation);
    const { stopMs, createMs } = this.options.timings;
    this.#after(stopMs, () => {
      machine.status = "TERMINATED";
      if (machine.group) this.#after(createMs, () => this.#replace(machine));
    });
    return operation;
  }

  /** Records this many operations that are no preemptions, as other tools cause them. */
  addOperations(zone: string, count: number): void {
    for (let index = 0; index < count; index++) {
      const targetPath = `zones/${zone}/instances/other`;
      const place = { scope: "zones", location: zone } as const;
      this.#end(this.#begin("setLabels", { place, targetPath, targetId: this.#nextId() }));
    }
  }

  /**
   * Replaces it immediately with a new machine of the same name and another id, as after a
   * preemption.
   */
  replaceMachine(zone: string, name: string): ComputeMachine {
    const fresh = this.#replace(this.machine(zone, name));
    fresh.status = "RUNNING";
    return fresh;
  }

  /** The machine leaves its group and keeps running; its metadata still names the group. */
  abandonMachine(zone: string, name: string): void {
    this.#abandoned.add(this.machine(zone, name).id);
  }

  /** Removes it immediately and for good. */
  removeMachine(zone: string, name: string): void {
    this.#bury(this.machine(zone, name));
  }

  /**
   * How many requests to release a machine were accepted; repeats with the same request id count
   * once.
   */
  get taken(): number {
    return this.#byRequestId.size;
  }

  /** Resolves when the operation is DONE. */
  whenDone(operation: ComputeOperation): Promise<void> {
    if (operation.status === "DONE") return Promise.resolve();
    return new Promise((resolve) => {
      const waiters = this.#doneWaiters.get(operation.name) ?? [];
      this.#doneWaiters.set(operation.name, [...waiters, resolve]);
    });
  }

  #member(
    path: string,
    act: { readonly group: ComputeGroup; readonly skipInvalid: boolean },
  ): ComputeMachine | undefined {
    const [, zone = "", name = ""] = /zones\/([^/]+)\/instances\/([^/]+)$/.exec(path) ?? [];
    const machine = this.#machines.get(`${zone}/${name}`);
    const member = machine?.group === act.group && !this.#abandoned.has(machine.id);
    const stands = member && machine.status !== "STOPPING";
    if (stands || act.skipInvalid) return stands ? machine : undefined;
    const message = `Invalid value for field 'instances': '${path}'. Instance is not a member of the group.`;
    throw new ComputeRefusal(400, "invalid", message);
  }

  #stop(
    machine: ComputeMachine,
    then: { readonly comesBack: boolean; readonly onGone?: () => void },
  ): void {
    if (this.#machines.get(`${machine.zone}/${machine.name}`) !== machine) return;
    machine.status = "STOPPING";
    this.#after(this.options.timings.stopMs, () => {
      this.#bury(machine);
      then.onGone?.();
      if (then.comesBack) this.#after(this.options.timings.createMs, () => this.#remake(machine));
    });
  }

  #replace(machine: ComputeMachine): ComputeMachine {
    this.#bury(machine);
    return this.#remake(machine);
  }

  #remake(machine: ComputeMachine): ComputeMachine {
    const fresh = this.#bear(machine);
    this.#after(this.options.timings.startMs, () => {
      if (fresh.status === "PROVISIONING") fresh.status = "RUNNING";
    });
    return fresh;
  }

  #bury(machine: ComputeMachine): void {
    this.#machines.delete(`${machine.zone}/${machine.name}`);
    this.options.onInstanceGone(machine.name, machine.zone);
  }

  #bear(like: {
    readonly name: string;
    readonly zone: string;
    readonly group?: ComputeGroup | undefined;
    readonly spot: boolean;
    readonly deletionProtection: boolean;
    readonly labels: Readonly<Record<string, string>>;
  }): ComputeMachine {
    const now = this.options.clock.now();
    const { name, zone, group, spot, deletionProtection, labels } = like;
    const machine: ComputeMachine = {
      id: this.#nextId(),
      name,
      zone,
      group,
      spot,
      deletionProtection,
      labels,
      createdAt: now,
      startedAt: now,
      status: "PROVISIONING",
    };
    this.#machines.set(`${zone}/${name}`, machine);
    this.options.onInstanceBorn(machine);
    return machine;
  }

  #known(requestId: string | undefined): ComputeOperation | undefined {
    return requestId === undefined ? undefined : this.#byRequestId.get(requestId);
  }

  #begin(
    type: string,
    about: {
      readonly place: Place;
      readonly targetPath: string;
      readonly targetId: string;
      readonly requestId?: string | undefined;
    },
  ): ComputeOperation {
    const now = this.options.clock.now();
    const id = this.#nextId();
    const tail = `${hex(now).padStart(13, "5")}-${hex(BigInt(id)).slice(0, 8)}-${hex(this.#sequence).padStart(8, "0")}`;
    const operation: ComputeOperation = {
      id,
      // Compute Engine's own operations have another prefix.
      name: `${type.endsWith(".preempted") ? "systemevent" : "operation"}-${now}-${tail}`,
      type,
      scope: about.place.scope,
      location: about.place.location,
      targetPath: about.targetPath,
      targetId: about.targetId,
      requestId: about.requestId,
      insertAt: now,
      endAt: undefined,
      status: "RUNNING",
      error: this.#nextOperationError,
      statusMessage: undefined,
    };
    this.#nextOperationError = undefined;
    this.#operations.set(operation.name, operation);
    if (about.requestId) this.#byRequestId.set(about.requestId, operation);
    return operation;
  }

  #end(operation: ComputeOperation): void {
    operation.status = "DONE";
    operation.endAt = this.options.clock.now();
    for (const wake of this.#doneWaiters.get(operation.name) ?? []) wake();
    this.#doneWaiters.delete(operation.name);
  }

  #after(span: Millis, act: () => void): void {
    const { clock, closed } = this.options;
    // The sleep rejects when the server closes; its purpose no longer matters then.
    void clock.sleep(span, closed).then(act, () => undefined);
  }

  #nextId(): string {
    return (1_974_815_549_671_473_983n + BigInt(++this.#sequence) * 7_919n).toString();
  }

  #notFound(path: string): ComputeRefusal {
    const message = `The resource 'projects/${this.options.project.id}/${path}' was not found`;
    return new ComputeRefusal(404, "notFound", message);
  }
}

function hex(value: number | bigint): string {
  return value.toString(16);
}
