import type { Clock } from "../../contracts/clock.ts";
import type { KubeAnswer, KubeObject, KubeSender } from "../../contracts/kube-api.ts";
import { fieldsOf, instantOf, listOf } from "../../core/json/json-field.ts";
import type {
  AgentStanding,
  ControllerStanding,
  OperationStanding,
} from "../../core/plan/headline.ts";
import { type Instant, plus, seconds } from "../../core/time/time.ts";
import { isLastcallError } from "../../errors.ts";
import { translateLease } from "../../kube/lease/lease-store.ts";
import { daemonSetsPath } from "../../kube/object/api-call.ts";
import { ownWorkload, workloadFacts } from "../doctor/own-workloads.ts";

const leaseName = "lastcall";
/** How often the Lease and the agents are read: an expired Lease is noticed soon afterwards. */
const againMs = seconds(10);
const timeoutMs = seconds(5);

export interface OperationSource {
  readonly api: KubeSender;
  /** Where to look if the caller may not list all namespaces. */
  readonly namespace: string;
  readonly signal?: AbortSignal | undefined;
}

/** A Lease, as far as it says who leads. */
interface SeenLease {
  readonly key: string;
  readonly version: string;
  readonly holder: string;
  readonly renewedAt: Instant | undefined;
  readonly expiresAt: Instant | undefined;
}

type Read = readonly KubeObject[] | "Unreadable";

/**
 * Reads who leads and whether the agents are ready. `renewed` are the versions of the Leases that
 * were read before: a Lease with another version is alive, whatever the clocks say. Throws if the
 * API server does not respond.
 */
export async function readOperation(
  source: OperationSource,
  about: { readonly at: Instant; readonly renewed?: ReadonlyMap<string, string> },
): Promise<{
  readonly operation: OperationStanding;
  readonly versions: ReadonlyMap<string, string>;
}> {
  const [leases, agents] = await Promise.all([readLeases(source), readAgents(source)]);
  const seen = leases === "Unreadable" ? [] : leases.flatMap(seenLease);
  const controller =
    leases === "Unreadable" ? ({ kind: "Unreadable" } as const) : controllerOf(seen, about);
  return {
    operation: { controller, agents },
    versions: new Map(seen.map(({ key, version }) => [key, version])),
  };
}

async function readLeases(source: OperationSource): Promise<Read> {
  const group = "/apis/coordination.k8s.io/v1";
  const all = await listed(source, `${group}/leases`, {
    fieldSelector: `metadata.name=${leaseName}`,
  });
  if (all !== "Unreadable") return all.filter(({ metadata }) => metadata?.name === leaseName);
  const path = `${group}/namespaces/${source.namespace}/leases/${leaseName}`;
  const answer = await sent(source, path);
  // Without one in this namespace, another may have it.
  return answer.status === 200 ? [answer.body as KubeObject] : "Unreadable";
}

async function readAgents(source: OperationSource): Promise<AgentStanding> {
  const query = { labelSelector: "app.kubernetes.io/component=agent" };
  const all = await listed(source, daemonSetsPath, query);
  const path = `/apis/apps/v1/namespaces/${source.namespace}/daemonsets`;
  const found = all === "Unreadable" ? await listed(source, path, query) : all;
  const agent = found === "Unreadable" ? undefined : ownWorkload(found, "agent", undefined);
  if (agent === undefined) return { kind: all === "Unreadable" ? "Unreadable" : "None" };
  const { ready, wanted } = workloadFacts(agent);
  return { kind: "Found", ready, wanted };
}

async function listed(
  source: OperationSource,
  path: string,
  query: Readonly<Record<string, string>>,
): Promise<Read> {
  const answer = await sent(source, path, query);
  if (answer.status !== 200) return "Unreadable";
  return listOf(fieldsOf(answer.body).items).map((item) => fieldsOf(item) as KubeObject);
}

function sent(
  { api, signal }: OperationSource,
  path: string,
  query: Readonly<Record<string, string>> = {},
): Promise<KubeAnswer> {
  return api.send({ method: "GET", path, query, timeoutMs, signal });
}

function seenLease(object: KubeObject): readonly SeenLease[] {
  const { holder, resourceVersion, durationMs, uid } = translateLease(object);
  if (holder === undefined) return [];
  const renewedAt = instantOf(fieldsOf(object.spec).renewTime);
  const expiresAt = renewedAt && plus(renewedAt, durationMs);
  return [{ key: uid, version: resourceVersion, holder, renewedAt, expiresAt }];
}

function controllerOf(
  leases: readonly SeenLease[],
  { at, renewed }: { readonly at: Instant; readonly renewed?: ReadonlyMap<string, string> },
): ControllerStanding {
  const isAlive = ({ key, version, expiresAt }: SeenLease): boolean => {
    const before = renewed?.get(key);
    return (
      (before !== undefined && before !== version) || (expiresAt !== undefined && expiresAt > at)
    );
  };
  const leader = leases.find(isAlive);
  if (leader !== undefined) return { kind: "Leads", holder: leader.holder };
  const [first] = leases;
  if (first === undefined) return { kind: "None" };
  return { kind: "Expired", holder: first.holder, renewedAt: first.renewedAt ?? null };
}

export interface OperationWatchOptions extends Omit<OperationSource, "signal"> {
  readonly clock: Clock;
  readonly onChange: () => void;
}

/** Who leads and whether the agents are ready, read again and again while a board is open. */
export class OperationWatch {
  readonly #options: OperationWatchOptions;
  #known: OperationStanding | undefined;
  #versions: ReadonlyMap<string, string> | undefined;

  constructor(options: OperationWatchOptions) {
    this.#options = options;
  }

  /** Undefined until it has been read once. */
  known(): OperationStanding | undefined {
    return this.#known;
  }

  /** Runs until the signal aborts. While the server does not respond, the last state stays. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    while (!signal.aborted) {
      await this.#read(signal);
      await clock.sleep(againMs, signal).catch(() => undefined);
    }
  }

  async #read(signal: AbortSignal): Promise<void> {
    const { clock, onChange } = this.#options;
    try {
      const about = {
        at: clock.now(),
        ...(this.#versions !== undefined && { renewed: this.#versions }),
      };
      const { operation, versions } = await readOperation({ ...this.#options, signal }, about);
      this.#known = operation;
      this.#versions = versions;
      onChange();
    } catch (error) {
      if (!isLastcallError(error) && !signal.aborted) throw error;
    }
  }
}
