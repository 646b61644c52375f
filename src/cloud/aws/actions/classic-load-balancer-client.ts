import {
  DeregisterInstancesFromLoadBalancerCommand,
  DescribeInstanceHealthCommand,
  DescribeLoadBalancersCommand,
  ElasticLoadBalancingClient,
  RegisterInstancesWithLoadBalancerCommand,
} from "@aws-sdk/client-elastic-load-balancing";
import { type Millis, seconds } from "../../../core/time/time.ts";
import { type AwsPurpose, clientSettings, faultOfAws, listIn, tokenAfter } from "../aws-client.ts";
import type {
  ReadingListener,
  RegisterEnd,
  Registered,
  Target,
  TrafficGroup,
  TrafficGroups,
} from "./traffic-groups.ts";

/**
 * A short timeout without retries: only a few machines are in one, but all wait for the reading.
 * The caller retries.
 */
const answerLimitMs: Millis = seconds(4);
const maxAttempts = 1;
/** The largest page of the API. */
const pageSize = 400;

/** Classic load balancers. The AWS client finds credentials, region and endpoint. */
export class ClassicLoadBalancerClient implements TrafficGroups {
  readonly kind = "Classic";
  readonly #client: ElasticLoadBalancingClient;

  constructor({ region }: { readonly region: string | undefined }) {
    this.#client = new ElasticLoadBalancingClient(
      clientSettings({ region, answerLimitMs, maxAttempts }),
    );
  }

  /** A page contains the load balancers with their instances. */
  async read(
    { onListed, onRead }: ReadingListener,
    signal: AbortSignal,
  ): Promise<readonly Registered[]> {
    const read: Registered[] = [];
    let marker: string | undefined;
    do {
      const asked = askedFor("DescribeLoadBalancers", "list classic load balancers");
      const page = await this.#ask(asked, signal, async (abortSignal) => {
        const command = new DescribeLoadBalancersCommand({ PageSize: pageSize, Marker: marker });
        const answer = await this.#client.send(command, { abortSignal });
        const next = tokenAfter(marker, answer.NextMarker);
        return { found: listIn(answer.LoadBalancerDescriptions), next };
      });
      for (const { LoadBalancerName: id, Instances = [] } of page?.found ?? []) {
        if (id === undefined) continue;
        const targets = Instances.flatMap(({ InstanceId }) =>
          InstanceId === undefined ? [] : [{ id: InstanceId }],
        );
        const group: TrafficGroup = { kind: this.kind, id, byAddress: false, isOwned: false };
        read.push({ group, targets });
        onRead?.({ group, targets });
      }
      onListed?.(read.length);
      marker = page?.next;
    } while (marker !== undefined);
    return read;
  }

  async deregister(id: string, targets: readonly Target[], signal: AbortSignal): Promise<void> {
    const asked = askedFor(
      "DeregisterInstancesFromLoadBalancer",
      `deregister instances from ${id}`,
      targets,
    );
    await this.#ask(asked, signal, async (abortSignal) => {
      const input = { LoadBalancerName: id, Instances: targets.map(toAws) };
      const command = new DeregisterInstancesFromLoadBalancerCommand(input);
      await this.#client.send(command, { abortSignal });
    });
  }

  async register(
    id: string,
    targets: readonly Target[],
    signal: AbortSignal,
  ): Promise<RegisterEnd> {
    const asked = askedFor(
      "RegisterInstancesWithLoadBalancer",
      `register instances with ${id}`,
      targets,
    );
    const answer = await this.#ask(asked, signal, (abortSignal) => {
      const input = { LoadBalancerName: id, Instances: targets.map(toAws) };
      const command = new RegisterInstancesWithLoadBalancerCommand(input);
      return this.#client.send(command, { abortSignal });
    });
    return answer === undefined ? "Gone" : "Registered";
  }

  async remaining(
    id: string,
    targets: readonly Target[],
    signal: AbortSignal,
  ): Promise<readonly Target[]> {
    const asked = askedFor("DescribeInstanceHealth", `read the instances of ${id}`, targets);
    const found = await this.#ask(asked, signal, async (abortSignal) => {
      const input = { LoadBalancerName: id, Instances: targets.map(toAws) };
      const command = new DescribeInstanceHealthCommand(input);
      return listIn((await this.#client.send(command, { abortSignal })).InstanceStates);
    });
    if (found === undefined) return [];
    const states = new Map(found.map(({ InstanceId, State }) => [InstanceId, State]));
    // An unregistered instance is reported as OutOfService; a draining one is InService until then.
    // Nothing is known about one that the answer leaves out.
    return targets.filter(({ id: one }) => !states.has(one) || states.get(one) === "InService");
  }

  /** Undefined if the load balancer, or the only instance of the request, no longer exists. */
  async #ask<T>(
    asked: ClassicPurpose,
    signal: AbortSignal,
    send: (signal: AbortSignal) => Promise<T>,
  ): Promise<T | undefined> {
    try {
      return await send(signal);
    } catch (error) {
      signal.throwIfAborted();
      if (isGone(error, asked)) return undefined;
      throw faultOfAws(error, asked);
    }
  }
}

/**
 * The client's names for the codes LoadBalancerNotFound and InvalidInstance. One instance that is
 * gone makes AWS refuse the whole request: the caller then asks for each by itself.
 */
function isGone(error: unknown, { targets }: ClassicPurpose): boolean {
  const { name } = (error ?? {}) as { readonly name?: unknown };
  if (/^(LoadBalancerNotFound|AccessPointNotFound)/.test(String(name))) return true;
  return targets.length === 1 && /^(InvalidEndPoint|InvalidInstance)/.test(String(name));
}

function toAws({ id }: Target): { readonly InstanceId: string } {
  return { InstanceId: id };
}

/** The purpose of a request, and the instances that it names. */
interface ClassicPurpose extends AwsPurpose {
  readonly targets: readonly Target[];
}

function askedFor(call: string, action: string, targets: readonly Target[] = []): ClassicPurpose {
  const isRead = call.startsWith("Describe");
  return {
    ...{ action, targets },
    permission: `elasticloadbalancing:${call} on ${isRead ? "*" : "the load balancer"}`,
    service: "Elastic Load Balancing",
    wanted: "a classic load balancer of this region",
  };
}
