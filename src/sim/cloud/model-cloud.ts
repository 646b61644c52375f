import type {
  InstanceReleaser,
  LaunchTimeReading,
  LaunchTimes,
  Releasability,
  ReleaseQuestion,
  ReleaseRequest,
  ReleaseResult,
} from "../../contracts/cloud.ts";
import { untilAborted } from "../../contracts/time-limit.ts";
import type { MachineState as DescribedMachine } from "../../core/cluster/machine.ts";
import {
  hours,
  type Instant,
  type Millis,
  millis,
  minus,
  minutes,
  plus,
} from "../../core/time/time.ts";
import type { LastcallError } from "../../errors.ts";
import { type ApiContext, randomUid } from "../api/resource-registry.ts";
import type { ModelObject } from "../api/store/object-store.ts";
import {
  gkeShutdownGrace,
  type Kubelet,
  type ShutdownGrace,
} from "../cluster-controllers/kubelet.ts";
import { Timers } from "../time/virtual-clock.ts";
import {
  type CloudFault,
  type CloudTimings,
  EmpiricalPreemptions,
  forgetNode,
  freeName,
  hashOf,
  type MachineEvent,
  type MachineGroup,
  type ModelMachine,
  neverPreempted,
  type PreemptionModel,
  providerIdOf,
  registerNode,
  usualTimings,
} from "./model-machine.ts";

export interface ModelCloudOptions {
  readonly context: ApiContext;
  readonly kubelet: Kubelet;
  readonly seed: number;
  readonly groups: readonly MachineGroup[];
  readonly timings?: Partial<CloudTimings>;
  /** When preemptible machines are taken; default: by the observed distribution. */
  readonly preemptions?: PreemptionModel;
  readonly shutdownGrace?: ShutdownGrace;
  /**
   * When the first machines were launched. `Together`: all at the start; `Spread`: over the 20
   * hours before; or by the name of each, not after the start.
   */
  readonly launchTimes?: "Together" | "Spread" | ((name: string) => Instant);
}

interface Slot {
  readonly name: string;
  readonly group: MachineGroup;
  machine: ModelMachine;
  /** The group does not replace this machine. */
  closed: boolean;
}

/** The greatest age of a machine at the start of a run with spread launch times. */
const oldestAtStart = hours(20);

/** By this age every preemptible machine is gone; the notice comes earlier. */
const longestLife = millis(hours(24) + minutes(50));

/**
 * Machines behind the Nodes of a model cluster, in managed groups: they launch, boot, register, are
 * preempted with a notice or released on request, and their groups recreate them under the same
 * name with another id. Tested by the contract suites of the interfaces that it implements, and by
 * `test/sim/cloud/model-cloud.test.ts`.
 */
export class ModelCloud implements InstanceReleaser, LaunchTimes {
  readonly #context: ApiContext;
  readonly #kubelet: Kubelet;
  readonly #timers: Timers;
  #timings: CloudTimings;
  readonly #preemptions: PreemptionModel;
  readonly #grace: ShutdownGrace;
  readonly #options: ModelCloudOptions;
  readonly #slots = new Map<string, Slot>();
  readonly #releases = new Map<string, Promise<ReleaseResult>>();
  readonly #listeners = new Set<(event: MachineEvent) => void>();
  readonly #faults: { fault: CloudFault; left: number }[] = [];
  /** The groups' machines that wait for capacity. */
  readonly #waiting: (() => void)[] = [];
  #isStockOut = false;
  #nextId = 1;

  constructor(options: ModelCloudOptions) {
    this.#options = options;
    this.#context = options.context;
    this.#kubelet = options.kubelet;
    this.#timers = new Timers(options.context.clock);
    this.#timings = { ...usualTimings, ...options.timings };
    this.#preemptions = options.preemptions ?? new EmpiricalPreemptions(options.seed);
    this.#grace = options.shutdownGrace ?? gkeShutdownGrace;
  }

  /** Fills all groups; their machines are up and registered at once. */
  start(): void {
    for (const group of this.#options.groups) {
      for (let index = 0; index < group.size; index += 1) this.#open(group, "Registered");
    }
  }

  stop(): void {
    this.#timers.stop();
  }

  /** Calls the listener at every event of a machine; returns the function that unsubscribes it. */
  subscribe(listener: (event: MachineEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  machines(): readonly ModelMachine[] {
    return [...this.#slots.values()].map((slot) => slot.machine);
  }

  /** The machine that now has this name. */
  machine(name: string): ModelMachine | undefined {
    return this.#slots.get(name)?.machine;
  }

  /** Adds one machine to a group. */
  grow(groupName: string): void {
    const group = this.#options.groups.find((one) => one.name === groupName);
    if (group) this.#open(group, "Booting");
  }

  /** Preempts a machine now, with the usual notice. */
  preempt(name: string): void {
    const slot = this.#slots.get(name);
    if (slot) this.#takeWithNotice(slot, { id: slot.machine.id, because: "Preempted" });
  }

  /** Takes a machine at once; what announced it is the caller's concern. */
  take(name: string): void {
    const slot = this.#slots.get(name);
    if (slot) this.#end(slot, { id: slot.machine.id, because: "Preempted" });
  }

  /** As `ec2 stop-instances` does: its Node stays, and TerminateInstances still ends it. */
  halt(name: string): void {
    const slot = this.#slots.get(name);
    if (slot?.machine.state !== "Running") return;
    this.#change(slot, { state: "Stopped", event: "Stopping", because: "Preempted" });
    this.#kubelet.powerOff(name);
  }

  /** While the cloud has no capacity, groups create no machine; they do so when it ends. */
  setStockOut(lasts: boolean): void {
    this.#isStockOut = lasts;
    if (!lasts) for (const recreate of this.#waiting.splice(0)) recreate();
  }

  /** How long each machine takes from now on from the order to stop until it is gone. */
  setStopTime(stop: Millis): void {
    this.#timings = { ...this.#timings, stop };
  }

  failNext(fault: CloudFault): void {
    this.#faults.push({ fault, left: fault.times ?? 1 });
  }

  stopFailing(): void {
    this.#faults.length = 0;
  }

  async describe(providerID: string, signal: AbortSignal): Promise<DescribedMachine> {
    signal.throwIfAborted();
    this.#maybeFail("describe");
    const machine = this.#behind(providerID)?.machine;
    if (!machine || machine.state === "Gone") return { kind: "Absent" };
    const { id, bornAt, name, state } = machine;
    const running = state === "Running" || state === "Noticed";
    return { kind: "Present", id, bornAt, asOf: this.#now(), running, names: { hosts: [name] } };
  }

  async check({ providerID }: ReleaseQuestion, signal: AbortSignal): Promise<Releasability> {
    signal.throwIfAborted();
    this.#maybeFail("check");
    const machine = this.#behind(providerID)?.machine;
    const problem = `the model cloud has no machine ${providerID}`;
    if (!machine || machine.state === "Gone") return { kind: "Impossible", problem };
    return { kind: "Possible", permission: "Granted", names: { hosts: [machine.name] } };
  }

  async launchTimesOf(ids: readonly string[], signal: AbortSignal): Promise<LaunchTimeReading> {
    signal.throwIfAborted();
    const fault = this.#nextFault("launchTimes");
    if (fault !== undefined) return { bornAt: new Map(), faults: [fault] };
    const standing = ids.flatMap((providerID) => {
      const machine = this.#behind(providerID)?.machine;
      return machine && machine.state !== "Gone" ? [[providerID, machine.bornAt] as const] : [];
    });
    return { bornAt: new Map(standing), faults: [] };
  }

  async release(request: ReleaseRequest, signal: AbortSignal): Promise<ReleaseResult> {
    signal.throwIfAborted();
    this.#maybeFail("release");
    const underWay = this.#releases.get(request.requestId);
    if (underWay !== undefined) return untilAborted(underWay, signal);
    const found = await this.#lastLooks(request);
    signal.throwIfAborted();
    return "kind" in found ? found : untilAborted(this.#requestRelease(found, request), signal);
  }

  /** The machine to release, or the result that ends the release instead. */
  async #lastLooks(request: ReleaseRequest): Promise<Slot | ReleaseResult> {
    for (;;) {
      const found = this.#meant(request);
      if ("kind" in found || found.machine.state === "Stopping") return found;
      const look = await request.lastLook();
      if (look === "Keep") return { kind: "Kept" };
      if (look === "Clear") return this.#meant(request);
    }
  }

  #meant(request: ReleaseRequest): Slot | ReleaseResult {
    const slot = this.#behind(request.providerID);
    if (!slot || slot.machine.state === "Gone") return { kind: "AlreadyGone" };
    return slot.machine.id === request.machineId ? slot : { kind: "Replaced" };
  }

  #requestRelease(slot: Slot, { mode, requestId }: ReleaseRequest): Promise<ReleaseResult> {
    if (mode === "Delete") slot.closed = true;
    const gone = this.#whenGone(slot.machine.id).then(() => {
      // No longer needed: the machine itself now shows it is gone, or another one has its place.
      this.#releases.delete(requestId);
      return { kind: "Released" } as const;
    });
    this.#releases.set(requestId, gone);
    if (slot.machine.state !== "Stopping") this.#stopMachine(slot);
    return gone;
  }

  #whenGone(id: string): Promise<void> {
    return new Promise((resolve) => {
      const unsubscribe = this.subscribe((event) => {
        if (event.kind !== "Gone" || event.machine.id !== id) return;
        unsubscribe();
        resolve();
      });
    });
  }

  #stopMachine(slot: Slot): void {
    const { id, name } = slot.machine;
    this.#change(slot, { state: "Stopping", event: "Stopping", because: "Released" });
    this.#kubelet.shutDown(name, this.#grace);
    this.#timers.after(this.#timings.stop, () => this.#end(slot, { id, because: "Released" }));
  }

  #behind(providerID: string): Slot | undefined {
    const slot = this.#slots.get(providerID.slice(providerID.lastIndexOf("/") + 1));
    return slot && providerIdOf(slot.machine) === providerID ? slot : undefined;
  }

  #maybeFail(on: CloudFault["on"]): void {
    const fault = this.#nextFault(on);
    if (fault !== undefined) throw fault;
  }

  #nextFault(on: CloudFault["on"]): LastcallError | undefined {
    const at = this.#faults.findIndex(({ fault }) => fault.on === on);
    const found = this.#faults[at];
    if (!found) return undefined;
    found.left -= 1;
    if (found.left === 0) this.#faults.splice(at, 1);
    return found.fault.error;
  }

  #open(group: MachineGroup, first: "Registered" | "Booting"): void {
    const { seed } = this.#options;
    const name = freeName({ seed, group: group.name, taken: this.#slots });
    const bornAt = first === "Registered" ? this.#firstLaunchTime(name, group) : this.#now();
    const machine = this.#makeMachine({ name, group, bornAt });
    const slot: Slot = { name, group, machine, closed: false };
    this.#slots.set(name, slot);
    this.#emit({ kind: "Launched", at: bornAt, machine });
    if (first === "Registered") this.#register(slot, machine.id);
    else this.#bootLater(slot);
  }

  #firstLaunchTime(name: string, group: MachineGroup): Instant {
    const nowAt = this.#now();
    const { launchTimes = "Together" } = this.#options;
    if (launchTimes === "Together") return nowAt;
    if (launchTimes !== "Spread") return launchTimes(name);
    const share = (hashOf(`${this.#options.seed}|${name}|age`) % 10_000) / 10_000;
    const bornAt = minus(nowAt, millis(Math.floor(share * oldestAtStart)));
    const end = this.#preemptionsOf(group).endOf(name, bornAt);
    const lives = end === "Never" || end.at > plus(nowAt, this.#timings.notice);
    return lives ? bornAt : nowAt;
  }

  #preemptionsOf(group: MachineGroup): PreemptionModel {
    return group.price === "Preemptible" ? this.#preemptions : neverPreempted;
  }

  #makeMachine(parts: Pick<ModelMachine, "name" | "group" | "bornAt">): ModelMachine {
    const id = String(4_000_000_000_000_000_000n + BigInt(this.#nextId++));
    return Object.freeze({ ...parts, id, bootID: randomUid(this.#context), state: "Booting" });
  }

  #bootLater(slot: Slot): void {
    const { id } = slot.machine;
    this.#timers.after(this.#timings.boot, () => this.#register(slot, id));
  }

  #register(slot: Slot, id: string): void {
    if (slot.machine.id !== id || slot.machine.state !== "Booting") return;
    registerNode(this.#context, { machine: slot.machine, boot: this.#timings.boot });
    this.#kubelet.boot(slot.name);
    this.#change(slot, { state: "Running", event: "Registered" });
    const end = this.#preemptionsOf(slot.group).endOf(slot.name, slot.machine.bornAt);
    if (end === "Never") return;
    const latestAt = plus(slot.machine.bornAt, longestLife);
    const endAt = end.at < latestAt ? end.at : latestAt;
    const span = millis(endAt - this.#timings.notice - this.#now());
    const { because } = end;
    this.#timers.after(span, () => this.#takeWithNotice(slot, { id, because }));
  }

  #takeWithNotice(slot: Slot, taken: { id: string; because: "Preempted" | "Limit" }): void {
    const { id, because } = taken;
    const { state } = slot.machine;
    if (slot.machine.id !== id || (state !== "Running" && state !== "Booting")) return;
    this.#change(slot, { state: "Noticed", event: "Noticed", because });
    const { beforeShutdown, notice } = this.#timings;
    this.#timers.after(beforeShutdown, () => {
      if (slot.machine.id === id) this.#kubelet.shutDown(slot.name, this.#grace);
    });
    this.#timers.after(notice, () => this.#end(slot, { id, because }));
  }

  #end(slot: Slot, ended: { id: string; because: "Preempted" | "Limit" | "Released" }): void {
    if (slot.machine.id !== ended.id || slot.machine.state === "Gone") return;
    this.#kubelet.powerOff(slot.name);
    this.#change(slot, { state: "Gone", event: "Gone", because: ended.because });
    const node = this.#context.store.collection("nodes").get("", slot.name);
    this.#timers.after(this.#timings.forgetNode, () => this.#forgetNode(node));
    if (slot.closed) this.#slots.delete(slot.name);
    else this.#timers.after(this.#timings.recreate, () => this.#recreate(slot, ended.id));
  }

  #forgetNode(node: ModelObject | undefined): void {
    if (node && this.#slots.get(node.metadata.name)?.machine.state !== "Running") {
      forgetNode(this.#context, node);
    }
  }

  #recreate(slot: Slot, lostId: string): void {
    if (slot.closed || slot.machine.id !== lostId) return;
    if (this.#isStockOut) return void this.#waiting.push(() => this.#recreate(slot, lostId));
    const { name, group } = slot;
    slot.machine = this.#makeMachine({ name, group, bornAt: this.#now() });
    this.#emit({ kind: "Launched", at: this.#now(), machine: slot.machine });
    this.#bootLater(slot);
  }

  #change(
    slot: Slot,
    to: {
      state: ModelMachine["state"];
      event: MachineEvent["kind"];
      because?: NonNullable<MachineEvent["because"]>;
    },
  ): void {
    const at = this.#now();
    const noticed = to.state === "Noticed" ? { noticedAt: at } : {};
    slot.machine = Object.freeze({ ...slot.machine, ...noticed, state: to.state });
    const because = to.because === undefined ? {} : { because: to.because };
    this.#emit({ kind: to.event, at, machine: slot.machine, ...because });
  }

  #emit(event: MachineEvent): void {
    for (const listener of [...this.#listeners]) listener(Object.freeze(event));
  }

  #now(): Instant {
    return this.#context.clock.now();
  }
}
