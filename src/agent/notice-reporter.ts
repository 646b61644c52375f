import type {
  KubeAnswer,
  KubeObject,
  KubeRequest,
  KubeSender,
  PatchOperation,
} from "../contracts/kube-api.ts";
import type { Log } from "../contracts/telemetry.ts";
import { mayBeSameMachine, type NodeIdentity } from "../core/cluster/node.ts";
import {
  cloudDeadline,
  departureName,
  isLive,
  isSequelOf,
  isUnderWay,
} from "../core/departure/departure.ts";
import { departureOfNotice } from "../core/departure/departure-of-notice.ts";
import { fieldsOf, textOf } from "../core/json/json-field.ts";
import {
  isNoticeOver,
  type MachineNotice,
  noticeUpdate,
  outlivedAt,
} from "../core/notice/notice.ts";
import type { Instant } from "../core/time/time.ts";
import { LastcallError } from "../errors.ts";
import {
  apiError,
  isConflict,
  isNameTaken,
  isPatchRefused,
  isUnserved,
} from "../kube/object/api-call.ts";
import { departureObject } from "../kube/object/translate-departure.ts";
import {
  type DepartureView,
  isKnownTo,
  noticeAnnotation,
  tightening,
  viewDeparture,
  withdrawal,
} from "./notice-patch.ts";

/** Builds the Departure of a notice. It omits the providerID, which the agent's token lacks. */
function departureBody(
  name: string,
  { node, notice }: { readonly node: NodeIdentity; readonly notice: MachineNotice },
): KubeObject {
  const { cause, deadlineAt, noticedAt } = notice;
  return departureObject({
    name,
    annotations: { [noticeAnnotation]: notice.eventIds.join(",") },
    node: { name: node.name, uid: node.uid, bootID: node.bootID || undefined },
    ...{ cause, deadlineAt, noticedAt, source: `agent/${notice.source}` },
  });
}

/** When a departure with a notice is given up, if that is before the notice's deadline. */
function outlivedBefore(departure: DepartureView, notice: MachineNotice): Instant | undefined {
  const update = noticeUpdate(departure, notice);
  const { noticedAt, deadlineAt } = update ?? departure;
  const cause = update?.cause ?? departure.cause;
  const endAt = outlivedAt({ cause, deadlineAt: cloudDeadline({ cause, noticedAt, deadlineAt }) });
  return comesAfter(notice, { deadlineAt }) ? endAt : undefined;
}

/** Whether a notice's deadline is after a departure's, or unknown. */
function comesAfter(
  notice: MachineNotice,
  { deadlineAt }: Pick<DepartureView, "deadlineAt">,
): boolean {
  return deadlineAt !== undefined && (notice.deadlineAt ?? Number.POSITIVE_INFINITY) > deadlineAt;
}

const departuresPath = "/apis/lastcall.dev/v1alpha1/departures";

/**
 * The last suffix that `deploy/agent/admission.yaml` accepts. Controllers keep far fewer records of
 * a node.
 */
const lastNumber = 999;
/** How many names are looked up concurrently. */
const namesAtOnce = 32;

export interface NoticeReporterOptions {
  readonly api: KubeSender;
  /** The agent's own node. Called each time, because the token that names it may come late. */
  readonly identify: () => Promise<NodeIdentity>;
  readonly log: Pick<Log, "warn">;
}

interface OwnDepartures {
  readonly departures: readonly DepartureView[];
  /** Absent if all names are taken. */
  readonly freeName: string | undefined;
  /** Earlier names that departures of other nodes have taken. */
  readonly namesTaken: readonly string[];
}

interface Numbered {
  readonly name: string;
  readonly departure: DepartureView | undefined;
}

/** The result of reporting a notice. */
export type ReportedNotice =
  | { readonly kind: "Created"; readonly name: string }
  | {
      readonly kind: "Tightened" | "Known";
      readonly name: string;
      /** When its departure is given up, if that is before the notice's deadline. */
      readonly outlivedAt?: Instant;
    }
  /** The departure of this notice has ended: a person may have deleted it. */
  | { readonly kind: "Closed"; readonly name: string };

/**
 * Reports notices as Departures of the agent's own node, and of no other. Every call is idempotent
 * and can be repeated after any error. Throws `LastcallError`s, `retryable` if transient.
 */
export class NoticeReporter {
  readonly #api: KubeSender;
  readonly #identify: () => Promise<NodeIdentity>;
  readonly #log: Pick<Log, "warn">;

  constructor({ api, identify, log }: NoticeReporterOptions) {
    this.#api = api;
    this.#identify = identify;
    this.#log = log;
  }

  /** Creates the Departure of a notice, or tightens an existing one. */
  async report(notice: MachineNotice, signal: AbortSignal): Promise<ReportedNotice> {
    const node = await this.#identify();
    const first = departureName(node);
    // One request in the usual case. The name is taken if the node has or had a planned departure.
    if (await this.#create(first, { node, notice, signal }))
      return { kind: "Created", name: first };
    const found = await this.#all(node, signal);
    const isOfMachine = (one: DepartureView) => mayBeOf(one, node);
    const target = departureOfNotice(found.departures, notice.cause, isOfMachine);
    if (target !== undefined) return this.#tighten(target, notice, signal);
    const closed = found.departures.find((one) => isClosedBy(one, { node, notice }));
    if (closed !== undefined) return { kind: "Closed", name: closed.name };
    const { freeName: name, namesTaken } = found;
    if (name === undefined) throw busy(first, `each of its ${lastNumber} names is taken`);
    if (!(await this.#create(name, { node, notice, signal }))) {
      throw busy(name, "somebody else created it at the same time");
    }
    if (namesTaken.length > 0) {
      const taken = namesTaken.join(" ");
      this.#log.warn("departure-name-taken", { node: node.name, taken, instead: name });
    }
    return { kind: "Created", name };
  }

  /**
   * Withdraws the notice of the live Departure that an agent of this node has created or tightened
   * in this boot. Returns its name; undefined if there is none.
   */
  async withdraw(at: Instant, signal: AbortSignal): Promise<string | undefined> {
    const node = await this.#identify();
    const { departures } = await this.#all(node, signal);
    const ours = departures.find(
      (one) =>
        isLive(one) &&
        one.source.startsWith("agent/") &&
        one.withdrawnAt === undefined &&
        one.noticedAt !== undefined &&
        mayBeOf(one, node),
    );
    if (ours === undefined) return undefined;
    await this.#patch(ours.name, withdrawal(ours, at), signal);
    return ours.name;
  }

  /** Reads the node's Departure; undefined if it is gone or belongs to another node. */
  async look(name: string, signal: AbortSignal): Promise<DepartureView | undefined> {
    const departure = await this.#read(name, signal);
    const node = await this.#identify();
    return departure?.nodeUid === node.uid ? departure : undefined;
  }

  /** `Mistaken`: a controller has closed it, taking us for another machine. */
  async receptionOf(
    name: string,
    signal: AbortSignal,
  ): Promise<"Waiting" | "Settled" | "Mistaken"> {
    const departure = await this.look(name, signal);
    if (departure === undefined) return "Settled";
    if (!isUnderWay(departure)) return "Waiting";
    if (!isMistaken(departure)) return "Settled";
    return isLive(departure) ? "Waiting" : "Mistaken";
  }

  /**
   * Reads every Departure of this node, in the order of their numbers, and finds the first free
   * name. A node usually has one or two. If it has had many, more and more names are read at once,
   * because a notice leaves no time to wait. The oldest records are deleted first, so a name may be
   * free before one that is taken.
   */
  async #all(node: NodeIdentity, signal: AbortSignal): Promise<OwnDepartures> {
    const found: Numbered[] = [];
    while (found.length === 0 || found.at(-1)?.departure !== undefined) {
      const from = found.length + 1;
      const names = namesFrom(node, from, Math.min(from, namesAtOnce));
      if (names.length === 0) break;
      const read = names.map(async (name) => ({ name, departure: await this.#read(name, signal) }));
      found.push(...(await Promise.all(read)));
    }
    return sorted(found, node);
  }

  async #read(name: string, signal: AbortSignal): Promise<DepartureView | undefined> {
    const answer = await this.#send({ method: "GET", path: pathOf(name), signal });
    return answer.status === 404 ? undefined : viewDeparture(departureIn(answer, name));
  }

  async #tighten(
    departure: DepartureView,
    notice: MachineNotice,
    signal: AbortSignal,
  ): Promise<ReportedNotice> {
    const { name } = departure;
    if (departure.withdrawnAt !== undefined || departure.isBeingDeleted) {
      throw busy(name, "it is being rolled back");
    }
    const change = isSequelOf(departure, notice.cause) ? undefined : tightening(departure, notice);
    const outlivedAt = outlivedBefore(departure, notice);
    const known = { name, ...(outlivedAt !== undefined && { outlivedAt }) };
    if (change === undefined) return { kind: "Known", ...known };
    await this.#patch(name, change, signal);
    return { kind: "Tightened", ...known };
  }

  /** False if the name is taken. */
  async #create(
    name: string,
    order: {
      readonly node: NodeIdentity;
      readonly notice: MachineNotice;
      readonly signal: AbortSignal;
    },
  ): Promise<boolean> {
    const { signal } = order;
    const body = departureBody(name, order);
    const request: KubeRequest = { method: "POST", path: departuresPath, body, signal };
    const answer = await this.#api.send(request);
    if (isNameTaken(answer)) return false;
    if (answer.status >= 300) throw apiError(request, answer);
    departureIn(answer, name);
    return true;
  }

  async #patch(name: string, body: readonly PatchOperation[], signal: AbortSignal): Promise<void> {
    const patchType = "application/json-patch+json";
    const request = { method: "PATCH", path: pathOf(name), body, patchType, signal } as const;
    const answer = await this.#api.send(request);
    if (isConflict(answer) || isPatchRefused(answer))
      throw busy(name, "somebody else changed it at the same time");
    if (answer.status >= 300) throw apiError(request, answer);
    departureIn(answer, name);
  }

  async #send(request: KubeRequest): Promise<KubeAnswer> {
    const answer = await this.#api.send(request);
    if (answer.status >= 300 && !isAbsent(request, answer)) throw apiError(request, answer);
    return answer;
  }
}

/**
 * The Departure in a successful response. Anything else does not prove that the notice was written,
 * and such a notice would not be reported again.
 */
function departureIn({ body }: KubeAnswer, name: string): KubeObject {
  const object = fieldsOf(body);
  if (object.kind === "Departure") return object;
  const found = textOf(object.kind) ?? "no kind";
  throw new LastcallError(
    "API_ANSWER_INVALID",
    `Cannot read Departure ${name}: found ${found}, expected a Departure, check whether a proxy responds in place of the API server`,
  );
}

function namesFrom(node: NodeIdentity, first: number, count: number): readonly string[] {
  const length = Math.min(count, lastNumber + 1 - first);
  return Array.from({ length }, (_, index) => departureName(node, first + index));
}

function sorted(found: readonly Numbered[], node: NodeIdentity): OwnDepartures {
  const isOwn = (one: DepartureView) => one.nodeUid === node.uid;
  const departures = found.flatMap(({ departure }) => departure ?? []).filter(isOwn);
  const free = found.findIndex(({ departure }) => departure === undefined);
  const before = free < 0 ? found : found.slice(0, free);
  const others = before.flatMap(({ departure }) => departure ?? []).filter((one) => !isOwn(one));
  return { departures, freeName: found[free]?.name, namesTaken: others.map(({ name }) => name) };
}

/** Whether a departure of this node may be of its machine in this boot. */
function mayBeOf({ name, nodeUid, bootID }: DepartureView, node: NodeIdentity): boolean {
  return mayBeSameMachine({ name, uid: nodeUid, bootID }, node);
}

/**
 * Whether the departure has ended because it was carried out or a person ended it, in this boot, or
 * its event has ended the boot that it is about: Azure lists a reboot for a while after it. This is
 * not the case if the cloud withdrew the notice in the meantime, if the controller took us for
 * another machine, or if it gave up a departure for an earlier deadline than the notice's.
 */
function isClosedBy(
  departure: DepartureView,
  { node, notice }: { readonly node: NodeIdentity; readonly notice: MachineNotice },
): boolean {
  const isThisBoot = departure.bootID === node.bootID;
  return (
    (isThisBoot ? !isLive(departure) && !isMistaken(departure) : notice.hasBegun === true) &&
    !isGivenUpFor(notice, departure) &&
    departure.withdrawnAt === undefined &&
    isKnownTo(departure, notice)
  );
}

/** A deadline counted from the reading is always later for an agent that has just started. */
function isGivenUpFor(notice: MachineNotice, departure: DepartureView): boolean {
  const isLater = notice.isReckoned !== true && comesAfter(notice, departure);
  return isNoticeOver(departure.status) && isLater;
}

function isMistaken({ status }: DepartureView): boolean {
  return ["MachineReplaced", "MachineRebooted", "WrongMachine"].includes(status.reason ?? "");
}

function pathOf(name: string): string {
  return `${departuresPath}/${encodeURIComponent(name)}`;
}

function isAbsent(request: KubeRequest, answer: KubeAnswer): boolean {
  return answer.status === 404 && !isUnserved(request, answer);
}

function busy(name: string, found: string): LastcallError {
  return new LastcallError("CONFLICT", `Cannot write Departure ${name}: ${found}, retrying`);
}
