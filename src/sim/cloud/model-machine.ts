import { seededRng } from "../../core/chance/chance.ts";
import { zoneLabel } from "../../core/cluster/node.ts";
import {
  hours,
  type Instant,
  instant,
  later,
  type Millis,
  millis,
  plus,
  seconds,
} from "../../core/time/time.ts";
import type { LastcallError } from "../../errors.ts";
import type { ApiContext } from "../api/resource-registry.ts";
import { type ModelObject, timestamp, withMeta } from "../api/store/object-store.ts";
import { deleteObject } from "../api/write/delete-object.ts";
import { createObject } from "../api/write/write-object.ts";

/** A managed instance group of one zone. */
export interface MachineGroup {
  readonly name: string;
  /** Such as `europe-west1-b`. */
  readonly zone: string;
  readonly size: number;
  /** The cloud takes preemptible machines; standard ones stay. */
  readonly price: "Preemptible" | "Standard";
  readonly machineType?: string;
  readonly capacity?: Readonly<Record<string, string>>;
  /** Of its nodes. Default: those of a preemptible GKE node pool. */
  readonly labels?: Readonly<Record<string, string>>;
  readonly taints?: readonly object[];
}

/** `Stopped`: it is off, and nobody has ordered its end. */
type ModelMachineState = "Booting" | "Running" | "Noticed" | "Stopped" | "Stopping" | "Gone";

/** A machine as it is now; one that is recreated under the same name has another id. */
export interface ModelMachine {
  readonly id: string;
  readonly name: string;
  readonly group: MachineGroup;
  readonly bootID: string;
  readonly bornAt: Instant;
  readonly state: ModelMachineState;
  readonly noticedAt?: Instant;
}

export function providerIdOf(machine: Pick<ModelMachine, "name" | "group">): string {
  return `gce://demo/${machine.group.zone}/${machine.name}`;
}

const defaultCapacity = { cpu: "4", memory: "16Gi", pods: "110", "ephemeral-storage": "100Gi" };

/** The Node that a machine's kubelet registers, with the labels that GKE gives it. */
function nodeOf(machine: ModelMachine, at: string): object {
  const { name, group } = machine;
  const capacity = group.capacity ?? defaultCapacity;
  const isUsual = group.price === "Preemptible" && group.labels === undefined;
  const spot = isUsual ? { "cloud.google.com/gke-preemptible": "true" } : {};
  const labels = {
    "kubernetes.io/arch": "amd64",
    "kubernetes.io/hostname": name,
    "kubernetes.io/os": "linux",
    "node.kubernetes.io/instance-type": group.machineType ?? "n1-standard-4",
    "cloud.google.com/gke-nodepool": group.name,
    "cloud.google.com/gke-provisioning": group.price.toLowerCase(),
    "topology.kubernetes.io/region": group.zone.replace(/-[a-z]$/, ""),
    [zoneLabel]: group.zone,
    ...spot,
    ...group.labels,
  };
  const taints = group.taints === undefined ? {} : { taints: group.taints };
  return {
    metadata: { name, labels },
    spec: { providerID: providerIdOf(machine), ...taints },
    status: { capacity, allocatable: capacity, ...statusOf(machine, at) },
  };
}

/** What a kubelet reports about its machine when it starts. */
function statusOf(machine: ModelMachine, at: string): object {
  const condition = (type: string, status: string, reason: string): object => ({
    type,
    status,
    reason,
    message: reason,
    lastHeartbeatTime: at,
    lastTransitionTime: at,
  });
  return {
    conditions: [
      condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
      condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
      condition("PIDPressure", "False", "KubeletHasSufficientPID"),
      condition("Ready", "True", "KubeletReady"),
    ],
    addresses: [{ type: "Hostname", address: machine.name }],
    nodeInfo: nodeInfoOf(machine),
  };
}

function nodeInfoOf(machine: ModelMachine): object {
  const plainId = machine.id.padStart(32, "0");
  return {
    machineID: plainId,
    systemUUID: plainId,
    bootID: machine.bootID,
    kernelVersion: "6.12.0",
    osImage: "Model OS",
    containerRuntimeVersion: "containerd://2.1.0",
    kubeletVersion: "v1.36.3",
    kubeProxyVersion: "",
    operatingSystem: "linux",
    architecture: "amd64",
  };
}

/**
 * Registers the Node of a machine that came up. If its Node object still exists, the same Node gets
 * another bootID. A machine launched before the run has a Node of its age.
 */
export function registerNode(
  context: ApiContext,
  { machine, boot }: { machine: ModelMachine; boot: Millis },
): void {
  const nodes = context.store.collection("nodes");
  const nowAt = context.clock.now();
  const at = timestamp(nowAt);
  const before = nodes.get("", machine.name);
  if (before) {
    const status = { ...(before.status as object), ...statusOf(machine, at) };
    nodes.put({ ...before, status });
    return;
  }
  const type = context.registry.find("v1", "nodes");
  if (!type) return;
  const node = createObject(context, { type, namespace: "", body: nodeOf(machine, at) });
  const bootedAt = plus(machine.bornAt, boot);
  if (bootedAt < nowAt) nodes.put(withMeta(node, { creationTimestamp: timestamp(bootedAt) }));
}

/** The cloud's node controller deletes a Node whose machine no longer exists, and no other Node. */
export function forgetNode(context: ApiContext, node: ModelObject): void {
  const { name, uid } = node.metadata;
  const now = context.store.collection("nodes").get("", name);
  const type = context.registry.find("v1", "nodes");
  if (type && now?.metadata.uid === uid) {
    deleteObject(context, { type, namespace: "", name, options: {} });
  }
}

/** An event of a machine, with the machine's state right after it. */
export interface MachineEvent {
  readonly kind: "Launched" | "Registered" | "Noticed" | "Stopping" | "Gone";
  readonly at: Instant;
  readonly machine: ModelMachine;
  /** Why it ends; set from Noticed and Stopping on. */
  readonly because?: "Preempted" | "Limit" | "Released";
}

/** A call that is to fail. */
export interface CloudFault {
  readonly on: "describe" | "check" | "release" | "launchTimes";
  readonly error: LastcallError;
  readonly times?: number;
}

/** Durations; the defaults are usual on GKE. */
export interface CloudTimings {
  /** From the launch of a machine until its Node is registered and ready. */
  readonly boot: Millis;
  /** From the loss of a machine until its group creates the next one. */
  readonly recreate: Millis;
  /** From an order to stop until the machine is gone. */
  readonly stop: Millis;
  /** From the notice of a preemption until the power is off. */
  readonly notice: Millis;
  /** From the notice until the machine shuts down; 0 without `preemptionNoticeDuration`. */
  readonly beforeShutdown: Millis;
  /** From the loss of a machine until its Node object is deleted. */
  readonly forgetNode: Millis;
}

export const usualTimings: CloudTimings = {
  boot: seconds(50),
  recreate: seconds(10),
  stop: seconds(20),
  notice: seconds(30),
  beforeShutdown: millis(0),
  forgetNode: seconds(5),
};

/**
 * How long preemptible machines lived, reduced from 1,442 machines observed February to April 2019.
 *
 * Origin: kadupitiya/goog-preemption-data at b22f181e, with the paper arXiv 1911.05160; licence
 * Apache-2.0. 717 machines were preempted; the owners of the other 725 stopped them, so those are
 * right-censored: they lived at least so long. `survival` is the Kaplan-Meier estimate of the share
 * that is not yet preempted at an age. 351 of the 717 went at their 24 hours, all of them after
 * 24:00:00 and by 24:49:58; `overtimeSeconds` holds the 5 % steps of how long after.
 */
export const gcpPreemptibleLifetimes = {
  survival: [
    { ageHours: 0, share: 1.0 },
    { ageHours: 0.25, share: 0.9265 },
    { ageHours: 0.5, share: 0.8963 },
    { ageHours: 1, share: 0.8507 },
    { ageHours: 1.5, share: 0.8241 },
    { ageHours: 2, share: 0.8032 },
    { ageHours: 3, share: 0.7677 },
    { ageHours: 4, share: 0.7441 },
    { ageHours: 6, share: 0.7236 },
    { ageHours: 8, share: 0.7102 },
    { ageHours: 10, share: 0.7019 },
    { ageHours: 12, share: 0.6825 },
    { ageHours: 15, share: 0.6637 },
    { ageHours: 18, share: 0.6429 },
    { ageHours: 21, share: 0.6298 },
    { ageHours: 24, share: 0.6143 },
  ],
  overtimeSeconds: [
    40, 102, 129, 173, 240, 309, 377, 441, 607, 693, 741, 801, 858, 979, 1169, 1480, 1871, 2120,
    2417, 2671, 2998,
  ],
} as const;

interface MachineEnd {
  readonly at: Instant;
  /** `Limit`: it reached the end that every preemptible machine reaches after 24 hours. */
  readonly because: "Preempted" | "Limit";
}

/** When the cloud takes machines; `Endless` for machines that it does not take. */
export interface PreemptionModel {
  endOf(slot: string, bornAt: Instant): MachineEnd | "Never";
}

/** Machines at full price, which the cloud does not preempt. */
export const neverPreempted: PreemptionModel = Object.freeze({ endOf: () => "Never" as const });

interface PreemptionCandidate {
  readonly at: Instant;
  /** 0 to 1: a machine is preempted if its hazard is more than this share of the highest one. */
  readonly level: number;
}

/** Candidates are drawn a day at a time, so that they can be looked up in any order. */
const block = hours(24);
const hardLimit = hours(24);

/**
 * Preemptions that do not depend on what anybody does about them. Each slot of a group has
 * candidate instants that the seed alone decides (a Poisson process at the highest hazard in the
 * table). A machine is preempted at a candidate with a probability that depends on its age then
 * (thinning: Lewis and Shedler 1979), so that lifetimes follow the observed distribution. Two
 * policies with one seed therefore meet the same candidates at the same instants, whichever
 * machines they have kept until then: their outcomes differ by what they did, not by luck (common
 * random numbers).
 */
export class EmpiricalPreemptions implements PreemptionModel {
  readonly #seed: number;
  readonly #noneBefore: Instant;
  readonly #candidates = new Map<string, readonly PreemptionCandidate[]>();

  /**
   * No machine is preempted before `noneBefore`: for a fleet that is known to have survived until
   * then. Later preemptions are as likely as before, since candidates are independent of one
   * another.
   */
  constructor(seed: number, { noneBefore = instant(0) }: { noneBefore?: Instant } = {}) {
    this.#seed = seed;
    this.#noneBefore = noneBefore;
  }

  endOf(slot: string, bornAt: Instant): MachineEnd {
    const limitAt = plus(plus(bornAt, hardLimit), this.#overtime(slot, bornAt));
    const last = blockOf(plus(bornAt, hardLimit));
    const fromAt = later(bornAt, this.#noneBefore);
    for (let day = blockOf(fromAt); day <= last; day += 1) {
      const hit = this.#candidatesOf(slot, day).find(
        ({ at, level }) => at > fromAt && level * highestHazard < hazardAt(millis(at - bornAt)),
      );
      if (hit) return { at: hit.at, because: "Preempted" };
    }
    return { at: limitAt, because: "Limit" };
  }

  /**
   * Derived from the day on which the limit is reached, so that it is the same for every policy,
   * too.
   */
  #overtime(slot: string, bornAt: Instant): Millis {
    const day = blockOf(plus(bornAt, hardLimit));
    const steps = gcpPreemptibleLifetimes.overtimeSeconds;
    const place = this.#rng(`${slot}/limit`, day)() * (steps.length - 1);
    const [low = 0, high = 0] = [steps[Math.floor(place)], steps[Math.ceil(place)]];
    return seconds(low + (high - low) * (place % 1));
  }

  #candidatesOf(slot: string, day: number): readonly PreemptionCandidate[] {
    const key = `${slot}|${day}`;
    const known = this.#candidates.get(key);
    if (known) return known;
    const rng = this.#rng(slot, day);
    const candidates: PreemptionCandidate[] = [];
    let offsetMs = nextGapMs(rng);
    while (offsetMs < block) {
      candidates.push({ at: instant(Math.round(day * block + offsetMs)), level: rng() });
      offsetMs += nextGapMs(rng);
    }
    this.#candidates.set(key, candidates);
    return candidates;
  }

  #rng(name: string, day: number): () => number {
    const rng = seededRng(hashOf(`${this.#seed}|${name}|${day}`));
    // Similar seeds give similar first numbers.
    rng();
    return rng;
  }
}

interface HazardStep {
  readonly untilMs: number;
  readonly perHour: number;
}

/** Between two ages of the table the hazard is constant. */
const hazardSteps: readonly HazardStep[] = gcpPreemptibleLifetimes.survival
  .slice(1)
  .map(({ ageHours, share }, index) => {
    const from = gcpPreemptibleLifetimes.survival[index] ?? { ageHours: 0, share: 1 };
    const perHour = Math.log(from.share / share) / (ageHours - from.ageHours);
    return { untilMs: hours(ageHours), perHour };
  });

const highestHazard = Math.max(...hazardSteps.map((step) => step.perHour));

/** Preemptions per hour of a machine of this age; 0 after 24 h, when the limit ends it. */
function hazardAt(age: Millis): number {
  return hazardSteps.find((step) => age < step.untilMs)?.perHour ?? 0;
}

function nextGapMs(rng: () => number): number {
  return (-Math.log(1 - rng()) / highestHazard) * hours(1);
}

function blockOf(at: Instant): number {
  return Math.floor(at / block);
}

/** FNV-1a: spreads a text over 32 bits. */
export function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193) >>> 0;
  }
  return hash;
}

/** A name for a group's next machine, as groups make them up; the seed alone decides. */
export function freeName(from: {
  readonly seed: number;
  readonly group: string;
  readonly taken: ReadonlyMap<string, unknown>;
}): string {
  const letters = "bcdfghjklmnpqrstvwxz2456789";
  for (let attempt = 0; ; attempt += 1) {
    let hash = hashOf(`${from.seed}|${from.group}|${from.taken.size}|${attempt}`);
    let suffix = "";
    for (let letter = 0; letter < 4; letter += 1) {
      suffix += letters[hash % letters.length];
      hash = Math.floor(hash / letters.length);
    }
    const name = `${from.group}-${suffix}`;
    if (!from.taken.has(name)) return name;
  }
}
