import {
  DeregisterTargetsCommand,
  DescribeTagsCommand,
  DescribeTargetGroupsCommand,
  DescribeTargetHealthCommand,
  ElasticLoadBalancingV2Client,
  RegisterTargetsCommand,
  type TargetDescription,
  type TargetGroup,
  type TargetHealthDescription,
} from "@aws-sdk/client-elastic-load-balancing-v2";
import { type Millis, seconds } from "../../../core/time/time.ts";
import { isLastcallError } from "../../../errors.ts";
import { type AwsPurpose, clientSettings, faultOfAws, listIn, tokenAfter } from "../aws-client.ts";
import { type QueryEndpoint, QuerySender } from "./query-sender.ts";
import {
  eachOf,
  keyOfTarget,
  type OnBusy,
  type ReadingListener,
  type RegisterEnd,
  type Registered,
  type RemainingTarget,
  type Target,
  type TrafficGroup,
  type TrafficGroups,
  Turns,
} from "./traffic-groups.ts";

const answerLimitMs: Millis = seconds(10);
/** The largest page of the API, and the most groups of one request for tags. */
const pageSize = 400;
const taggedAtOnce = 20;
/**
 * The API sometimes rejects larger changes (https://github.com/kubernetes/kubernetes/pull/101592).
 * AWS named this number to https://github.com/kubernetes-sigs/aws-load-balancer-controller/pull/1342.
 */
const changedAtOnce = 200;
/** Concurrent reads, one per group: the account shares the API's rate limit. */
const readAtOnce = 8;
/**
 * Concurrent changes, out of the client's 50 sockets: preparing a thousand at once would take CPU
 * from the evictions of the same burst, and a few hanging requests must not block the others.
 */
const changesAtOnce = 40;

/** Source: the service's model in the AWS SDK. */
const queryApi = { service: "elasticloadbalancing", version: "2015-12-01" };

/** The tag that aws-load-balancer-controller sets on its groups. */
const ownerTag = "elbv2.k8s.aws/cluster";

/**
 * The target groups of ALBs and NLBs. The AWS client finds credentials, region and endpoint.
 */
export class TargetGroupClient implements TrafficGroups {
  readonly kind = "TargetGroup";
  readonly #client: ElasticLoadBalancingV2Client;
  readonly #sender: QuerySender;
  readonly #turns = new Turns(changesAtOnce);
  /** Whether each known group has the owner's tag, which is set at creation. */
  #owned = new Map<string, boolean>();

  readonly #readsOwners: boolean;

  /** `readsOwners`: default true; otherwise no group counts as owned by somebody else. */
  constructor({
    region,
    readsOwners = true,
  }: {
    readonly region: string | undefined;
    readonly readsOwners?: boolean;
  }) {
    this.#readsOwners = readsOwners;
    this.#client = new ElasticLoadBalancingV2Client(clientSettings({ region, answerLimitMs }));
    this.#sender = new QuerySender({ ...this.#client.config, ...queryApi });
    // The index of groups is read with the client before any target is deregistered.
    this.#client.middlewareStack.add(
      (next) => (args) => {
        this.#sender.follow(args.request as QueryEndpoint);
        return next(args);
      },
      { step: "finalizeRequest", name: "lastcallEndpoint" },
    );
  }

  async read(
    { onError, onListed, onRead, onBusy = async () => "Enough" }: ReadingListener,
    signal: AbortSignal,
  ): Promise<readonly Registered[]> {
    const listed = await untilFree(onBusy, () => this.#list(signal));
    const found = listed.filter(({ TargetType }) => isOfMachines(TargetType));
    onListed?.(found.length);
    const owned = await this.#ownership(
      found.flatMap(({ TargetGroupArn }) => TargetGroupArn ?? []),
      { onError: (error) => onError(undefined, error), onBusy },
      signal,
    );
    const read: Registered[] = [];
    await eachOf(found, readAtOnce, async ({ TargetGroupArn: id = "", TargetType, VpcId: vpc }) => {
      const byAddress = TargetType === "ip";
      const group: TrafficGroup = { kind: this.kind, id, byAddress, vpc, isOwned: owned.get(id) };
      try {
        const found = await untilFree(onBusy, () => this.#targets(id, signal));
        // A group of instances accepts no zone.
        const targets = byAddress ? found : found.map(withoutZone);
        read.push({ group, targets });
        onRead?.({ group, targets });
      } catch (error) {
        signal.throwIfAborted();
        onError(group, error);
      }
    });
    return read;
  }

  async deregister(id: string, targets: readonly Target[], signal: AbortSignal): Promise<void> {
    for (const part of partsOf(targets, changedAtOnce)) {
      try {
        await this.#deregister(id, part, signal);
      } catch (error) {
        signal.throwIfAborted();
        await this.#deregisterStanding(id, { part, refusal: error }, signal);
      }
    }
  }

  async #deregister(id: string, targets: readonly Target[], signal: AbortSignal): Promise<void> {
    const asked = askedFor("DeregisterTargets", `deregister targets from ${id}`);
    await this.#change(asked, signal, async (abortSignal) => {
      const fields = { TargetGroupArn: id, ...Object.assign({}, ...targets.map(memberOf)) };
      if (await this.#sender.isAccepted("DeregisterTargets", fields, abortSignal)) return;
      const Targets = targets.map(toAws);
      const command = new DeregisterTargetsCommand({ TargetGroupArn: id, Targets });
      await this.#client.send(command, { abortSignal });
    });
  }

  /** AWS ignores an unregistered target; other endpoints reject the whole request for it. */
  async #deregisterStanding(
    id: string,
    { part, refusal }: { readonly part: readonly Target[]; readonly refusal: unknown },
    signal: AbortSignal,
  ): Promise<void> {
    if (!isOfTarget(refusal)) throw refusal;
    const known = await this.#targets(id, signal).catch(() => part);
    const standing = part.filter(({ id: target, port }) =>
      known.some((one) => one.id === target && (port ?? one.port) === one.port),
    );
    if (standing.length === part.length) throw refusal;
    if (standing.length > 0) await this.#deregister(id, standing, signal);
  }

  async register(
    id: string,
    targets: readonly Target[],
    signal: AbortSignal,
  ): Promise<RegisterEnd> {
    const asked = askedFor("RegisterTargets", `register targets with ${id}`);
    let end: RegisterEnd = "Registered";
    for (const part of partsOf(targets, changedAtOnce)) {
      const answer = await this.#change(asked, signal, (abortSignal) => {
        const Targets = part.map(toAws);
        const command = new RegisterTargetsCommand({ TargetGroupArn: id, Targets });
        return this.#client.send(command, { abortSignal });
      });
      if (answer === undefined) end = "Gone";
    }
    return end;
  }

  async remaining(
    id: string,
    targets: readonly Target[],
    signal: AbortSignal,
  ): Promise<readonly RemainingTarget[]> {
    const asked = await this.#health(id, targets, signal).catch((error: unknown) => {
      if (!isOfTarget(error)) throw error;
      return "Refused" as const;
    });
    // Some endpoints reject an unregistered target. The list of all targets lacks those that are
    // gone; the answer about the given ones describes each, or says nothing about it.
    const found = asked === "Refused" ? await this.#health(id, undefined, signal) : asked;
    if (found === "GroupGone") return [];
    const states = new Map(found.map(({ target, state }) => [keyOfTarget(target), state]));
    return targets.flatMap((target) => {
      const state = states.get(keyOfTarget(target)) ?? (asked === "Refused" ? "Gone" : "Unknown");
      if (state === "Gone") return [];
      return state === "Registered" ? { ...target, isRegistered: true } : target;
    });
  }

  async #list(signal: AbortSignal): Promise<readonly TargetGroup[]> {
    const groups: TargetGroup[] = [];
    let marker: string | undefined;
    do {
      const page = await this.#ask(
        askedFor("DescribeTargetGroups", "list target groups"),
        signal,
        async (abortSignal) => {
          const command = new DescribeTargetGroupsCommand({ PageSize: pageSize, Marker: marker });
          const { TargetGroups, NextMarker } = await this.#client.send(command, { abortSignal });
          return { groups: listIn(TargetGroups), next: tokenAfter(marker, NextMarker) };
        },
      );
      groups.push(...(page?.groups ?? []));
      marker = page?.next;
    } while (marker !== undefined);
    return groups;
  }

  /** Reads the owner of each group once. Omits groups whose tags cannot be read. */
  async #ownership(
    arns: readonly string[],
    how: { readonly onError: (error: unknown) => void; readonly onBusy: OnBusy },
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, boolean>> {
    if (!this.#readsOwners) return new Map(arns.map((arn) => [arn, false]));
    const known = new Map(
      arns.flatMap((arn) => {
        const owned = this.#owned.get(arn);
        return owned === undefined ? [] : [[arn, owned] as const];
      }),
    );
    this.#owned = known;
    const unknown = arns.filter((arn) => !known.has(arn));
    const parts = partsOf(unknown, taggedAtOnce);
    try {
      await eachOf(parts, readAtOnce, (part) =>
        untilFree(how.onBusy, () => this.#readTags(part, known, signal)),
      );
    } catch (error) {
      signal.throwIfAborted();
      how.onError(error);
    }
    return known;
  }

  async #readTags(
    arns: readonly string[],
    owned: Map<string, boolean>,
    signal: AbortSignal,
  ): Promise<void> {
    const asked = askedFor("DescribeTags", "read the tags of target groups");
    const found = await this.#ask(asked, signal, async (abortSignal) => {
      const command = new DescribeTagsCommand({ ResourceArns: [...arns] });
      return listIn((await this.#client.send(command, { abortSignal })).TagDescriptions);
    });
    // A group that has just been deleted fails the request for all.
    if (found === undefined && arns.length > 1) {
      await Promise.all(arns.map((arn) => this.#readTags([arn], owned, signal)));
    }
    for (const { ResourceArn, Tags = [] } of found ?? []) {
      if (ResourceArn !== undefined)
        owned.set(
          ResourceArn,
          Tags.some(({ Key }) => Key === ownerTag),
        );
    }
  }

  /** The registered targets, without draining ones. */
  async #targets(id: string, signal: AbortSignal): Promise<readonly Target[]> {
    const found = await this.#health(id, undefined, signal);
    if (found === "GroupGone") return [];
    return found.flatMap(({ target, state }) => (state === "Registered" ? target : []));
  }

  /** The health of all registered targets, or of the given ones; none if the group is gone. */
  async #health(
    id: string,
    targets: readonly Target[] | undefined,
    signal: AbortSignal,
  ): Promise<readonly DescribedTarget[] | "GroupGone"> {
    const asked = askedFor("DescribeTargetHealth", `read the targets of ${id}`);
    const found = await this.#ask(asked, signal, async (abortSignal) => {
      const command = new DescribeTargetHealthCommand({
        TargetGroupArn: id,
        ...(targets === undefined ? {} : { Targets: targets.map(toAws) }),
      });
      return listIn((await this.#client.send(command, { abortSignal })).TargetHealthDescriptions);
    });
    return found?.flatMap(described) ?? "GroupGone";
  }

  #change<T>(
    asked: AwsPurpose,
    signal: AbortSignal,
    send: (signal: AbortSignal) => Promise<T>,
  ): Promise<T | undefined> {
    return this.#turns.take(() => {
      signal.throwIfAborted();
      return this.#ask(asked, signal, send);
    });
  }

  /** Undefined if the group is gone. */
  async #ask<T>(
    asked: AwsPurpose,
    signal: AbortSignal,
    send: (signal: AbortSignal) => Promise<T>,
  ): Promise<T | undefined> {
    try {
      return await send(signal);
    } catch (error) {
      signal.throwIfAborted();
      if (/^TargetGroupNotFound/.test(nameOf(error))) return undefined;
      throw faultOfAws(error, asked);
    }
  }
}

function partsOf<T>(items: readonly T[], size: number): readonly (readonly T[])[] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, place) =>
    items.slice(place * size, (place + 1) * size),
  );
}

async function untilFree<T>(onBusy: OnBusy, look: () => Promise<T>): Promise<T> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await look();
    } catch (error) {
      const isBusy = isLastcallError(error) && error.code === "CLOUD_RATE_LIMITED";
      if (!isBusy || (await onBusy(attempt)) === "Enough") throw error;
    }
  }
}

/** Whether targets are instances or addresses, not Lambda functions or load balancers. */
function isOfMachines(type: TargetGroup["TargetType"]): boolean {
  return type === "instance" || type === "ip" || type === undefined;
}

interface DescribedTarget {
  readonly target: Target;
  readonly state: "Registered" | "Draining" | "Gone";
}

function described({
  Target: found,
  TargetHealth: { State, Reason } = {},
}: TargetHealthDescription): readonly DescribedTarget[] {
  if (found?.Id === undefined) return [];
  const { Id: id, Port: port, AvailabilityZone, QuicServerId } = found;
  const target: Target = {
    ...{ id, port },
    ...(AvailabilityZone && { availabilityZone: AvailabilityZone }),
    ...(QuicServerId && { quicServerId: QuicServerId }),
  };
  if (Reason === "Target.NotRegistered") return [{ target, state: "Gone" }];
  return [{ target, state: State === "draining" ? "Draining" : "Registered" }];
}

function withoutZone({ availabilityZone: _, ...target }: Target): Target {
  return target;
}

/** Every field of the API's TargetDescription. */
function toAws({ id, port, availabilityZone, quicServerId }: Target): TargetDescription {
  return {
    Id: id,
    ...(port !== undefined && { Port: port }),
    ...(availabilityZone !== undefined && { AvailabilityZone: availabilityZone }),
    ...(quicServerId !== undefined && { QuicServerId: quicServerId }),
  };
}

/** A target as the Query API lists it. */
function memberOf(target: Target, index: number): Readonly<Record<string, string>> {
  const fields = Object.entries(toAws(target));
  return Object.fromEntries(
    fields.map(([name, value]) => [`Targets.member.${index + 1}.${name}`, String(value)]),
  );
}

function askedFor(call: string, action: string): AwsPurpose {
  const isRead = call.startsWith("Describe");
  return {
    action,
    permission: `elasticloadbalancing:${call} on ${isRead ? "*" : "the target group"}`,
    service: "Elastic Load Balancing",
    wanted: "target groups of this region with targets of this kind",
  };
}

/** Whether the error concerns a target, not the request. */
function isOfTarget(fault: unknown): boolean {
  return isLastcallError(fault) && /^InvalidTarget/.test(nameOf(fault.cause));
}

function nameOf(error: unknown): string {
  return String((error as { readonly name?: unknown } | undefined)?.name ?? "");
}
