import { randomUUID } from "node:crypto";
import type { Clock } from "../../src/contracts/clock.ts";
import { formatInstant, type Instant, type Millis, seconds } from "../../src/core/time/time.ts";
import { ScriptedServer, type SeenRequest } from "./scripted-server.ts";

export interface ArmMachine {
  /** The last part of its id within the scale set. */
  readonly instance: string;
  /** The first instance of the place that this one has taken over; its own if it is the first. */
  readonly place: string;
  readonly name: string;
  vmId: string;
  createdAt: Instant;
  provisioning: "Succeeded" | "Deleting";
  power: "running" | "deallocated";
  /** Whether its pods need a replacement, so that the autoscaler adds a machine. */
  isNeeded: boolean;
}

/** Another scale set of the same resource group. */
export interface ArmScaleSet {
  readonly name: string;
  readonly tags: Readonly<Record<string, string>>;
  readonly instances: readonly string[];
}

export interface ArmSingle {
  readonly name: string;
  readonly tags: Readonly<Record<string, string>>;
  readonly createdAt: Instant;
}

interface Refusal {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  readonly retryAfter?: string;
}

interface Reply {
  readonly status: number;
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
}

interface Operation {
  status: "InProgress" | "Succeeded" | "Failed";
  error?: { readonly code: string; readonly message: string };
}

const faults = {
  RateLimited: { status: 429, code: "TooManyRequests", message: "Too many.", retryAfter: "2" },
  RightMissing: {
    ...{ status: 403, code: "AuthorizationFailed" },
    message: "The client does not have authorization to perform action.",
  },
} as const satisfies Record<string, Refusal>;

/** As Azure documents the error MissingApiVersionParameter. */
const noVersion: Refusal = {
  ...{ status: 400, code: "MissingApiVersionParameter" },
  message: "The api-version query parameter (?api-version=) is required for all requests.",
};

/** Source: Azure/aks-engine issue 609, a real call. */
const noParent: Refusal = {
  ...{ status: 404, code: "ParentResourceNotFound" },
  message:
    "Can not perform requested operation on nested resource. Parent resource 'aks-spot-1-vmss' not found.",
};

/** As Azure documents the error. */
const noGroup: Refusal = {
  ...{ status: 404, code: "ResourceGroupNotFound" },
  message: "Resource group 'MC_shop_main_westeurope' could not be found.",
};

export const nodeGroup = "/subscriptions/sub1/resourceGroups/MC_shop_main_westeurope";
export const scaleSet = `${nodeGroup}/providers/Microsoft.Compute/virtualMachineScaleSets/aks-spot-1-vmss`;
export const singles = `${nodeGroup}/providers/Microsoft.Compute/virtualMachines`;
export const cluster =
  "/subscriptions/sub1/resourcegroups/shop/providers/Microsoft.ContainerService/managedClusters/main";
const pool = `${cluster}/agentPools/spot`;
const operations =
  "/subscriptions/sub1/providers/Microsoft.ContainerService/locations/x/operations";

const scaleSets = scaleSet.slice(0, scaleSet.lastIndexOf("/"));
const poolTags = { "aks-managed-poolName": "spot" };

const lower = {
  scaleSets: scaleSets.toLowerCase(),
  nodeGroup: nodeGroup.toLowerCase(),
  scaleSet: scaleSet.toLowerCase(),
  pool: pool.toLowerCase(),
  operations: operations.toLowerCase(),
  singles: singles.toLowerCase(),
};

export interface ArmTimings {
  readonly deletedAfterMs: Millis;
  /** From the deletion until the autoscaler's new machine exists. */
  readonly replacedAfterMs: Millis;
  /**
   * `Retry-After` of the response that starts an operation, and of each response to a poll of it.
   */
  readonly retryAfter: readonly [string, string];
}

const defaultTimings: ArmTimings = {
  deletedAfterMs: seconds(30),
  replacedAfterMs: seconds(60),
  retryAfter: ["10", "5"],
};

/**
 * Azure Resource Manager on loopback, as far as releases need it: a scale set of one AKS node pool,
 * whose machines are deleted by an operation that is answered with 202, and its autoscaler. The
 * formats are those of Azure's REST reference; they were not checked against Azure itself.
 */
export class ArmServer {
  readonly machines: ArmMachine[] = [];
  /** Machines of the same resource group that are in no scale set, such as Karpenter's. */
  readonly singles: ArmSingle[] = [];
  /** Other scale sets of the same resource group; their machines are only listed. */
  readonly otherSets: ArmScaleSet[] = [];
  /** The largest number of `singles` on one page of their list. */
  pageSize = 100;
  readonly requests: SeenRequest[] = [];
  /** How many requests to delete a machine were accepted. */
  taken = 0;
  isAutoscaled = true;
  /** False once the node pool was deleted with its scale set. */
  hasScaleSet = true;
  /** Nor is anything else of the nodes' resource group there. */
  hasNodeGroup = true;
  hasPoolTag = true;
  managedBy: string | undefined = cluster;
  groupTags: Readonly<Record<string, string>> = {};
  fault: keyof typeof faults | "Unreachable" | undefined;
  /** The `actions` of the caller's only role. */
  granted: readonly string[] = ["microsoft.containerservice/*"];
  /** Paths that are denied. */
  denied: RegExp | undefined;
  /** The response to the next deletion, once. */
  refuseNext: Refusal | undefined;
  /** The error with which the next operation ends, if it is to fail. */
  failNext: Operation["error"];
  /** The header that names the operation's URL; Azure has two. */
  follow: "Azure-AsyncOperation" | "Location" = "Azure-AsyncOperation";
  onGone: (machine: ArmMachine) => void = () => {};
  /** Called when a machine of the pool has been replaced by a new one. */
  onBorn: (machine: ArmMachine) => void = () => {};
  readonly #operations = new Map<string, Operation>();
  readonly #clock: Clock;
  readonly #closed = new AbortController();
  readonly #timings: ArmTimings;
  readonly #server = new ScriptedServer((request, response) => {
    this.requests.push(request);
    if (this.fault === "Unreachable") {
      response.destroy();
      return;
    }
    const { status, body, headers = {} } = this.#answer(request);
    const date = new Date(this.#clock.now()).toUTCString();
    response.writeHead(status, { "content-type": "application/json", date, ...headers });
    response.end(body === undefined ? "" : JSON.stringify(body));
  });
  #count = 0;

  constructor(clock: Clock, timings: ArmTimings = defaultTimings) {
    this.#clock = clock;
    this.#timings = timings;
  }

  /** Its base URL, which is part of the URLs of its operations. */
  url = "";

  async start(): Promise<this> {
    await this.#server.start();
    this.url = this.#server.url;
    return this;
  }

  close(): Promise<void> {
    this.#closed.abort();
    return this.#server.stop();
  }

  addMachine(of?: Pick<ArmMachine, "place">, name?: string): ArmMachine {
    const instance = String(this.#count);
    this.#count += 1;
    const machine: ArmMachine = {
      instance,
      place: of?.place ?? instance,
      name: name ?? `aks-spot-1-vmss${instance.padStart(6, "0")}`,
      vmId: randomUUID(),
      createdAt: this.#clock.now(),
      provisioning: "Succeeded",
      power: "running",
      isNeeded: true,
    };
    this.machines.push(machine);
    return machine;
  }

  find(instance: string | undefined): ArmMachine | undefined {
    return this.machines.find((one) => one.instance === instance);
  }

  remove(machine: ArmMachine): void {
    this.machines.splice(this.machines.indexOf(machine), 1);
  }

  /**
   * What AKS does, whoever requested it: it deletes the machine, and the autoscaler adds one if
   * pods need it.
   */
  delete(machine: ArmMachine, operation: Operation): void {
    machine.provisioning = "Deleting";
    void this.#delete(machine, operation).catch(() => undefined);
  }

  async #delete(machine: ArmMachine, operation: Operation): Promise<void> {
    const { signal } = this.#closed;
    await this.#clock.sleep(this.#timings.deletedAfterMs, signal);
    this.remove(machine);
    this.onGone(machine);
    operation.status = "Succeeded";
    if (!this.isAutoscaled || !machine.isNeeded) return;
    await this.#clock.sleep(this.#timings.replacedAfterMs, signal);
    this.onBorn(this.addMachine(machine));
  }

  #answer({ method, url, body }: SeenRequest): Reply {
    // Azure ignores the case of letters in a path.
    const { pathname, searchParams } = new URL(url, "http://arm");
    if (!searchParams.has("api-version")) return refusal(noVersion);
    const path = pathname.toLowerCase();
    if (this.fault !== undefined) return refusal(faults[this.fault as keyof typeof faults]);
    if (this.denied?.test(path)) return refusal(faults.RightMissing);
    if (!this.hasNodeGroup && path.startsWith(lower.nodeGroup)) return refusal(noGroup);
    if (!this.hasScaleSet && path.startsWith(`${lower.scaleSet}/`)) return refusal(noParent);
    if (method !== "GET") return this.#act(path, body);
    if (path.startsWith(lower.operations)) return this.#operation(path);
    if (path.endsWith("/providers/microsoft.authorization/permissions")) {
      return ok({ value: [{ actions: this.granted, notActions: [] }] });
    }
    if (path === lower.nodeGroup) {
      return ok({ id: path, managedBy: this.managedBy, tags: this.groupTags });
    }
    if (path === lower.pool) return ok({ properties: { enableAutoScaling: this.isAutoscaled } });
    if (path === `${lower.scaleSet}/virtualmachines`) {
      return ok({ value: this.machines.map((one) => this.#body(one)) });
    }
    if (path === lower.singles) return this.#page(new URL(url, "http://arm"));
    if (path === lower.scaleSets) {
      const spot = { name: "aks-spot-1-vmss", tags: poolTags };
      return ok({ value: [spot, ...this.otherSets].map(setBody) });
    }
    const other = this.otherSets.find(
      ({ name }) => path === `${lower.scaleSets}/${name}/virtualmachines`,
    );
    if (other !== undefined) {
      return ok({ value: other.instances.map((one) => machineInSet(other, one)) });
    }
    const machine = this.#machineAt(path);
    if (machine !== undefined) return ok(this.#body(machine));
    const single = this.singles.find(({ name }) => path === `${lower.singles}/${name}`);
    if (single !== undefined) return ok(singleBody(single));
    const message = `The Resource ${path} was not found.`;
    return refusal({ status: 404, code: "ResourceNotFound", message });
  }

  #page({ pathname, searchParams }: URL): Reply {
    const from = Number(searchParams.get("$skiptoken") ?? 0);
    const to = from + this.pageSize;
    const value = this.singles.slice(from, to).map(singleBody);
    const more = `${this.url}${pathname}?api-version=x&$skiptoken=${to}`;
    return ok({ value, ...(to < this.singles.length ? { nextLink: more } : {}) });
  }

  #machineAt(path: string): ArmMachine | undefined {
    const prefix = `${lower.scaleSet}/virtualmachines/`;
    return path.startsWith(prefix) ? this.find(path.slice(prefix.length)) : undefined;
  }

  #act(path: string, body: string): Reply {
    const once = this.refuseNext;
    this.refuseNext = undefined;
    if (once !== undefined) return refusal(once);
    if (path !== `${lower.pool}/deletemachines`) {
      return refusal({ status: 404, code: "InvalidResourceType", message: "No such action." });
    }
    const asked = JSON.parse(body) as { readonly machineNames?: readonly string[] };
    const machine = this.machines.find(({ name }) => name === asked.machineNames?.[0]);
    if (machine === undefined) {
      return refusal({ status: 400, code: "InvalidParameter", message: "No such machine." });
    }
    this.taken += 1;
    const operation: Operation = { status: "InProgress" };
    const id = randomUUID();
    this.#operations.set(id, operation);
    if (this.failNext !== undefined) {
      Object.assign(operation, { status: "Failed", error: this.failNext });
      this.failNext = undefined;
    } else if (machine.provisioning !== "Deleting") this.delete(machine, operation);
    else operation.status = "Succeeded";
    const location = `${this.url}${operations}/${id}?api-version=2026-04-01`;
    return {
      status: 202,
      headers: { [this.follow]: location, "Retry-After": this.#timings.retryAfter[0] },
    };
  }

  #operation(path: string): Reply {
    const operation = this.#operations.get(path.slice(lower.operations.length + 1));
    if (operation === undefined) {
      return refusal({ status: 404, code: "NotFound", message: "No operation." });
    }
    const isUnderWay = operation.status === "InProgress";
    const headers = isUnderWay ? { "Retry-After": this.#timings.retryAfter[1] } : {};
    if (this.follow === "Location") return { status: isUnderWay ? 202 : 204, headers };
    return { status: 200, body: operation, headers };
  }

  #body(machine: ArmMachine): object {
    const { instance, name, vmId, createdAt, provisioning, power } = machine;
    return {
      // Azure does not keep to one spelling.
      id: `${scaleSet.replace("MC_shop", "mc_SHOP")}/virtualMachines/${instance}`,
      instanceId: instance,
      tags: this.hasPoolTag ? poolTags : {},
      properties: {
        vmId,
        provisioningState: provisioning,
        timeCreated: formatInstant(createdAt),
        osProfile: { computerName: name },
        instanceView: {
          statuses: [{ code: "ProvisioningState/succeeded" }, { code: `PowerState/${power}` }],
        },
      },
    };
  }
}

function setBody({ name, tags }: Pick<ArmScaleSet, "name" | "tags">): object {
  return { id: `${scaleSets}/${name}`, name, tags };
}

function machineInSet({ name }: ArmScaleSet, instance: string): object {
  return { id: `${scaleSets}/${name}/virtualMachines/${instance}`, instanceId: instance };
}

function singleBody({ name, tags, createdAt }: ArmSingle): object {
  return {
    id: `${singles}/${name}`,
    tags,
    properties: {
      ...{ vmId: randomUUID(), provisioningState: "Succeeded" },
      timeCreated: formatInstant(createdAt),
      osProfile: { computerName: name },
      instanceView: { statuses: [{ code: "PowerState/running" }] },
    },
  };
}

function ok(body: object): Reply {
  return { status: 200, body };
}

function refusal({ status, code, message, retryAfter }: Refusal): Reply {
  const headers = retryAfter === undefined ? {} : { "Retry-After": retryAfter };
  return { status, body: { error: { code, message } }, headers };
}
