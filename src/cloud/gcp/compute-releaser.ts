import type {
  InstanceReleaser,
  Releasability,
  ReleaseQuestion,
  ReleaseRequest,
  ReleaseResult,
} from "../../contracts/cloud.ts";
import type { MachineState } from "../../core/cluster/machine.ts";
import { fieldsOf, listOf, textOf } from "../../core/json/json-field.ts";
import type { Instant } from "../../core/time/time.ts";
import { LastcallError } from "../../errors.ts";
import {
  type LeavingMachine,
  type ReleaseBounds,
  type ReleaseLoopOptions,
  releaseByLooking,
  type Standing,
} from "../release/release-loop.ts";
import { type ComputeClient, listItems } from "./compute-client.ts";
import {
  type ClusterLabels,
  type ComputeInstanceRef,
  clusterLabel,
  clusterOf,
  findInstanceRef,
  type GroupRef,
  type Instance,
  instancePath,
  instanceRefOf,
  namesOf,
  readInstance,
} from "./compute-instance.ts";
import { awaitOperation, checkRelease, releaseCall } from "./release-call.ts";

const mostGroups = 20;

/** A group names its machines with its own base name and four more letters. */
function oneOfEachGroup(refs: readonly ComputeInstanceRef[]): readonly ComputeInstanceRef[] {
  const keyOf = ({ project, zone, name }: ComputeInstanceRef) =>
    `${project}/${zone}/${name.replace(/-[a-z0-9]{4}$/, "")}`;
  return [...Map.groupBy(refs, keyOf).values()].flatMap(([first]) => first ?? []);
}

export interface ComputeReleaserOptions extends ReleaseLoopOptions {
  readonly client: ComputeClient;
}

interface Meant {
  readonly ref: ComputeInstanceRef;
  readonly request: ReleaseRequest;
}

/**
 * Releases Compute Engine machines, through their managed group if the mode says so. An abort
 * rejects with the signal's reason while the cloud finishes the request; calling again with the
 * same request resumes it.
 */
export class ComputeReleaser implements InstanceReleaser {
  readonly #options: ComputeReleaserOptions;
  /** How many operations of a request id ended in an error; see `requestIdAfter`. */
  readonly #failures = new Map<string, number>();

  constructor(options: ComputeReleaserOptions) {
    this.#options = options;
  }

  async describe(providerID: string, signal: AbortSignal): Promise<MachineState> {
    const ref = instanceRefOf(providerID);
    const instance = await this.#look(ref, signal);
    if (instance === undefined) return { kind: "Absent" };
    const { id, bornAt, asOf, stage } = instance;
    const names = namesOf(ref, instance);
    return { kind: "Present", id, bornAt, asOf, running: stage === "Running", names };
  }

  async check(question: ReleaseQuestion, signal: AbortSignal): Promise<Releasability> {
    const ref = instanceRefOf(question.providerID);
    const instance = await this.#look(ref, signal);
    const about = { ref, instance, mode: question.mode };
    const found = await checkRelease(about, this.#options.client, signal);
    if (found.kind !== "Possible" || instance === undefined) return found;
    return { ...found, names: namesOf(ref, instance) };
  }

  async release(request: ReleaseRequest, signal: AbortSignal): Promise<ReleaseResult> {
    checkRequestId(request.requestId);
    const machine = this.#leaving({ ref: instanceRefOf(request.providerID), request });
    const result = await releaseByLooking(
      { machine, lastLook: request.lastLook },
      this.#options,
      signal,
    );
    this.#failures.delete(request.requestId);
    return result;
  }

  /**
   * The machines that run in the same groups and that the groups are not acting on, at most 500 of
   * each, and all that run in the same GKE clusters. Reads one machine of each group, and at most
   * 20 groups.
   */
  async groupsOf(providerIDs: readonly string[], signal: AbortSignal): Promise<readonly string[]> {
    const named = providerIDs.flatMap((id) => findInstanceRef(id) ?? []);
    const refs = oneOfEachGroup(named).slice(0, mostGroups);
    const seen = await Promise.all(
      refs.map(async (ref) => ({ ref, ...(await this.#look(ref, signal)) })),
    );
    const groups = new Map<string, () => Promise<readonly string[]>>();
    for (const { ref, group, cluster } of seen) {
      if (group !== undefined)
        groups.set(JSON.stringify([ref.project, group]), () => this.#inGroup(ref, group, signal));
      if (cluster !== undefined)
        groups.set(JSON.stringify([ref.project, cluster]), () =>
          this.#inCluster(ref, cluster, signal),
        );
    }
    const found = await Promise.all([...groups.values()].map((ask) => ask()));
    return [...new Set(found.flat())];
  }

  async #inGroup(
    ref: ComputeInstanceRef,
    group: GroupRef,
    signal: AbortSignal,
  ): Promise<readonly string[]> {
    const { scope, location, name } = group;
    const place = `/projects/${ref.project}/${scope}/${location}/instanceGroupManagers/${name}`;
    const call = {
      method: "POST",
      path: `${place}/listManagedInstances`,
      query: { maxResults: "500" },
      action: `list the instances of the group ${name}`,
      permission: "compute.instanceGroupManagers.get",
    } as const;
    const answer = await this.#options.client.sendPatiently(call, signal);
    if (answer.kind === "NotFound") return [];
    return listOf(answer.body.managedInstances).map(fieldsOf).flatMap(managedProviderId);
  }

  /**
   * Lists the cluster's machines in all zones. A machine counts unless it is known to be in another
   * location.
   */
  async #inCluster(
    { project }: ComputeInstanceRef,
    { name, location }: ClusterLabels,
    signal: AbortSignal,
  ): Promise<readonly string[]> {
    const list = {
      path: `/projects/${project}/aggregated/instances`,
      query: {
        filter: `labels.${clusterLabel} = "${name}"`,
        fields: "items/*/instances(name,zone,status,labels),nextPageToken",
        // A zone that does not respond must not hide the others.
        returnPartialSuccess: "true",
      },
      action: `list the instances of the cluster ${name} in ${project}`,
      permission: "compute.instances.list",
      inEachPlace: "instances",
    } as const;
    const { client } = this.#options;
    const found: string[] = [];
    for await (const item of listItems(client.sendPatiently.bind(client), list, signal)) {
      const at = clusterOf(item)?.location;
      const isElsewhere = at !== undefined && location !== undefined && at !== location;
      const zone = (textOf(item.zone) ?? "").split("/").at(-1);
      if (isElsewhere || item.status !== "RUNNING") continue;
      found.push(`gce://${project}/${zone}/${item.name}`);
    }
    return found;
  }

  /** The first boot that is seen is the one to release. */
  #leaving({ ref, request }: Meant): LeavingMachine<Instance> {
    let startedAt: Instant | undefined;
    return {
      look: async (until) => {
        const seen = await this.#look(ref, until);
        startedAt ??= seen?.startedAt;
        return seen;
      },
      standing: (seen) => standingOf(seen, { request, startedAt }),
      act: (seen, bounds) => this.#act({ ref, request }, { seen, bounds }),
      stillThere: ({ status }) => stillThere(ref, status),
    };
  }

  /**
   * Sends one request and waits for its operation. A 404 is not trusted here: the machine was seen
   * running.
   */
  async #act(
    meant: Meant,
    now: { readonly seen: Instance; readonly bounds: ReleaseBounds },
  ): Promise<void> {
    const { client, clock, rng } = this.#options;
    const { mode, requestId } = meant.request;
    const failures = this.#failures.get(requestId) ?? 0;
    const started = releaseCall({ ref: meant.ref, instance: now.seen, mode });
    const query = { requestId: requestIdAfter(requestId, failures) };
    const answer = await client.send({ ...started.call, query }, now.bounds.signal);
    if (answer.kind === "NotFound") throw notFoundOnAct(started.call.action);
    const { giveUpAt, signal } = now.bounds;
    const wait = { started, operation: answer.body, client, clock, rng, giveUpAt };
    const end = await awaitOperation(wait, signal);
    if (end.kind !== "Failed") return;
    this.#failures.set(requestId, failures + 1);
    throw end.fault;
  }

  async #look(ref: ComputeInstanceRef, signal: AbortSignal): Promise<Instance | undefined> {
    const action = `read the instance ${ref.project}/${ref.zone}/${ref.name}`;
    const permission = "compute.instances.get";
    const answer = await this.#options.client.sendPatiently(
      { method: "GET", path: instancePath(ref), action, permission },
      signal,
    );
    if (answer.kind === "NotFound") return undefined;
    const instance = readInstance(answer.body);
    if (instance !== undefined) return { ...instance, asOf: answer.asOf };
    const found = "found a response without id or status";
    throw new LastcallError(
      "CLOUD_UNREACHABLE",
      `Cannot ${action}: ${found}, expected an instance`,
    );
  }
}

/** A machine that is being created or terminated is not expected to be a node. */
function managedProviderId(one: Readonly<Record<string, unknown>>): readonly string[] {
  if (one.instanceStatus !== "RUNNING" || one.currentAction !== "NONE") return [];
  const place = /\/projects\/([^/]+)\/zones\/([^/]+)\/instances\/([^/]+)$/;
  const [, project, zone, name] = place.exec(textOf(one.instance) ?? "") ?? [];
  return name === undefined ? [] : [`gce://${project}/${zone}/${name}`];
}

interface FirstSeen {
  readonly request: ReleaseRequest;
  readonly startedAt: Instant | undefined;
}

function standingOf(seen: Instance, meant: FirstSeen): Standing {
  if (seen.id !== meant.request.machineId || isRestarted(seen, meant)) return "Replaced";
  if (seen.stage === "Stopped") return "Gone";
  return seen.stage === "Leaving" ? "Leaving" : "Staying";
}

/**
 * A preempted machine that its group restarts between two lookups keeps its id: it is a new boot,
 * not the one to release.
 */
function isRestarted(seen: Instance, { startedAt }: FirstSeen): boolean {
  if (startedAt === undefined || seen.startedAt === undefined) return false;
  return seen.startedAt !== startedAt;
}

function notFoundOnAct(action: string): LastcallError {
  const found = "found status 404 although the machine existed a moment ago";
  return new LastcallError(
    "CLOUD_REFUSED",
    `Cannot ${action}: ${found}, expected the machine found`,
    {
      retryable: true,
    },
  );
}

function stillThere({ project, zone, name }: ComputeInstanceRef, status: string): LastcallError {
  const found = `it is still ${status} at the end of the wait`;
  return new LastcallError(
    "CLOUD_REFUSED",
    `Cannot release ${project}/${zone}/${name}: ${found}, check whether it is still a member of its group`,
    { retryable: true },
  );
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const zero = "00000000-0000-0000-0000-000000000000";

/**
 * Compute Engine refuses the zero UUID as `requestId`, and anything that is not a UUID. Throws
 * CLOUD_REFUSED.
 */
export function checkRequestId(requestId: string): void {
  if (uuid.test(requestId) && requestId !== zero) return;
  const found = `found the request id ${JSON.stringify(requestId)}`;
  throw new LastcallError(
    "CLOUD_REFUSED",
    `Cannot release a machine: ${found}, expected a UUID other than zero`,
  );
}

/**
 * The `requestId` to send after `failures` operations of this one ended in an error. The cloud
 * responds to a known id with the operation that it started then, even a failed one, so the same id
 * would return the same failure. The result is the same for the same count.
 */
export function requestIdAfter(requestId: string, failures: number): string {
  if (failures === 0) return requestId;
  const tail = (BigInt(`0x${requestId.slice(24)}`) + BigInt(failures)) & 0xffff_ffff_ffffn;
  return requestId.slice(0, 24) + tail.toString(16).padStart(12, "0");
}
