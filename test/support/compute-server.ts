import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Clock } from "../../src/contracts/clock.ts";
import { type Instant, type Millis, minutes } from "../../src/core/time/time.ts";
import {
  type ComputeMachine,
  type ComputeOperation,
  type ComputeProject,
  errorBody,
  groupBody,
  machineBody,
  managedBody,
  operationBody,
} from "./compute-body.ts";
import { aggregatedPage, listPage, warnedPage } from "./compute-list-page.ts";
import {
  ComputeModel,
  ComputeRefusal,
  type ComputeTimings,
  defaultTimings,
} from "./compute-model.ts";

/** What the server does instead of responding normally. */
export type ComputeFault =
  | {
      readonly kind: "Refuse";
      readonly status: number;
      readonly reason: string;
      readonly message?: string;
    }
  /** Closes the connection before the request takes effect. */
  | { readonly kind: "Drop" }
  /** Carries out the request, then closes the connection without a response. */
  | { readonly kind: "DropAfter" }
  /** Responds 200 (or `status`) with text that is not JSON. */
  | { readonly kind: "Garbage"; readonly status?: number }
  /** Responds 200 with this text. */
  | { readonly kind: "Text"; readonly text: string }
  /** Responds as usual, with a warning in the page of a list if its fields are chosen so. */
  | { readonly kind: "Warn"; readonly code: string }
  /** Never responds. */
  | { readonly kind: "Hang" }
  /** Responds after this long on the server's clock. */
  | { readonly kind: "Slow"; readonly afterMs: Millis };

export interface ComputeServerOptions {
  readonly clock: Clock;
  readonly project?: ComputeProject;
  readonly timings?: Partial<ComputeTimings>;
  /**
   * How long `wait` holds a request at most; 2 minutes as the real one, 0 to respond immediately.
   */
  readonly waitHoldMs?: Millis;
  /** Requests must carry one of these tokens; if absent, no token is required. */
  readonly tokens?: readonly string[];
  readonly onInstanceGone?: (name: string, zone: string) => void;
  readonly onInstanceBorn?: (machine: ComputeMachine) => void;
}

export interface ComputeRequestRecord {
  readonly at: Instant;
  readonly method: string;
  readonly version: string;
  readonly project: string;
  /** Below `/compute/v1/projects/<project>`, such as `/zones/z/instances/n`. */
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly body: unknown;
  readonly authorization: string | undefined;
  /** 0 if the connection was closed instead. */
  status: number;
}

interface PlannedFault {
  readonly fault: ComputeFault;
  readonly match: RegExp;
}

/**
 * A Compute Engine for tests on a loopback port: the calls that Lastcall makes and those that a
 * test needs to observe it, with bodies that match recorded ones (test/data/gce).
 */
export class ComputeServer {
  readonly model: ComputeModel;
  readonly log: ComputeRequestRecord[] = [];
  readonly project: ComputeProject;
  readonly #options: ComputeServerOptions;
  readonly #closed = new AbortController();
  readonly #http: Server;
  readonly #faults: PlannedFault[] = [];
  readonly #denied = new Set<string>();
  #parked = 0;
  /** The permissions that all calls so far have needed. */
  readonly permissionsUsed = new Set<string>();
  /** The number of connections opened so far. */
  connections = 0;

  constructor(options: ComputeServerOptions) {
    this.#options = options;
    this.project = options.project ?? { id: "project1", number: "601024681890" };
    this.model = new ComputeModel({
      project: this.project,
      clock: options.clock,
      timings: { ...defaultTimings, ...options.timings },
      closed: this.#closed.signal,
      onInstanceGone: (name, zone) => options.onInstanceGone?.(name, zone),
      onInstanceBorn: (machine) => options.onInstanceBorn?.(machine),
    });
    this.#http = createServer((request, response) => {
      void this.#serve(request, response).catch(() => response.destroy());
    });
    this.#http.on("connection", () => this.connections++);
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#http.listen(0, "127.0.0.1", resolve));
  }

  /** The value for `--gcp-endpoint`. */
  get endpoint(): string {
    return `http://127.0.0.1:${(this.#http.address() as AddressInfo).port}`;
  }

  /** Requests that are held on purpose: they wait for the clock, not for work to finish. */
  get parked(): number {
    return this.#parked;
  }

  /** The next `times` requests whose `METHOD path` matches get this fault. */
  failNext(
    fault: ComputeFault,
    scope: { readonly times?: number; readonly match?: RegExp } = {},
  ): void {
    for (let count = 0; count < (scope.times ?? 1); count++) {
      this.#faults.push({ fault, match: scope.match ?? /^/ });
    }
  }

  stopFailing(): void {
    this.#faults.length = 0;
  }

  /** From now on, calls that need this permission are denied. */
  deny(permission: string): void {
    this.#denied.add(permission);
  }

  allow(permission: string): void {
    this.#denied.delete(permission);
  }

  async close(): Promise<void> {
    this.#closed.abort();
    this.#http.closeAllConnections();
    await new Promise((resolve) => this.#http.close(resolve));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const call = await this.#read(request);
    const fault = this.#takeFault(`${call.method} ${call.path}`);
    if (fault?.kind === "Drop") return void request.socket.destroy();
    if (fault?.kind === "Hang") return this.#park(new Promise(() => undefined), response);
    if (fault?.kind === "Slow") {
      const { signal } = this.#closed;
      await this.#park(this.#options.clock.sleep(fault.afterMs, signal), response);
    }
    const answer = fault?.kind === "Refuse" ? refusalOf(fault) : await this.#answer(call, response);
    if (fault?.kind === "DropAfter") return void request.socket.destroy();
    const odd = oddTextOf(fault);
    call.status = odd === undefined ? answer.status : odd.status;
    response.writeHead(call.status, {
      "content-type": odd === undefined ? "application/json; charset=UTF-8" : "text/html",
      date: new Date(this.#options.clock.now()).toUTCString(),
    });
    const body =
      fault?.kind === "Warn" ? warnedPage(answer.body, fault.code, call.query) : answer.body;
    response.end(odd?.text ?? JSON.stringify(body));
  }

  async #read(request: IncomingMessage): Promise<ComputeRequestRecord> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const url = new URL(request.url ?? "/", "http://localhost");
    const [, version = "", project = "", path = ""] = callPath.exec(url.pathname) ?? [];
    const record: ComputeRequestRecord = {
      at: this.#options.clock.now(),
      method: request.method ?? "",
      version,
      project,
      path,
      query: Object.fromEntries(url.searchParams),
      body: text === "" ? undefined : JSON.parse(text),
      authorization: request.headers.authorization,
      status: 0,
    };
    this.log.push(record);
    return record;
  }

  #takeFault(call: string): ComputeFault | undefined {
    const index = this.#faults.findIndex(({ match }) => match.test(call));
    return index < 0 ? undefined : this.#faults.splice(index, 1)[0]?.fault;
  }

  /** Holds a request; it is no longer held once its client has disconnected. */
  async #park(wait: Promise<unknown>, response: ServerResponse): Promise<void> {
    const left = new Promise((resolve) => response.once("close", resolve));
    this.#parked++;
    try {
      await Promise.race([wait, left]);
    } finally {
      this.#parked--;
    }
  }

  async #answer(
    call: ComputeRequestRecord,
    response: ServerResponse,
  ): Promise<{ status: number; body: object }> {
    try {
      this.#checkCall(call);
      return { status: 200, body: await this.#route(call, response) };
    } catch (error) {
      if (!(error instanceof ComputeRefusal)) throw error;
      const { status, reason, message } = error;
      return { status, body: errorBody({ status, reason, message }) };
    }
  }

  #checkCall(call: ComputeRequestRecord): void {
    const { tokens } = this.#options;
    const given = call.authorization?.replace(/^Bearer /, "") ?? "";
    if (tokens !== undefined && !tokens.includes(given)) {
      throw new ComputeRefusal(401, "authError", "Request had invalid authentication credentials.");
    }
    if (call.project === this.project.id || call.project === this.project.number) return;
    const message = `The resource 'projects/${call.project}' was not found`;
    throw new ComputeRefusal(404, "notFound", message);
  }

  async #route(call: ComputeRequestRecord, response: ServerResponse): Promise<object> {
    const [, scope, location = "", collection, name, verb] = call.path.split("/");
    if (call.version === "beta" && verb !== "testIamPermissions") throw unknownCall(call);
    if (scope === "aggregated" && call.method === "GET" && location === "instances") {
      this.#allow("compute.instances.list", call);
      const all = this.model.allMachines();
      const bodies = (zone: string) =>
        all.filter((one) => one.zone === zone).map((one) => machineBody(one, this.project));
      const zones = [...new Set(all.map(({ zone }) => zone))];
      return aggregatedPage(new Map(zones.map((zone) => [zone, bodies(zone)])), call.query);
    }
    if (scope !== "zones" && scope !== "regions") throw unknownCall(call);
    const place = { scope, location } as const;
    const key = `${call.method} ${collection}${name === undefined ? "" : "/N"}${verb ? `/${verb}` : ""}`;
    const requestId = checkedRequestId(call.query.requestId);
    const instance = { zone: location, name: name ?? "", requestId };
    switch (key) {
      case "GET instances":
        this.#allow("compute.instances.list", call);
        return listPage(
          "instance",
          this.model.machines(location).map((one) => machineBody(one, this.project)),
          call.query,
        );
      case "GET instances/N":
        this.#allow("compute.instances.get", call);
        return machineBody(this.model.machine(location, instance.name), this.project);
      case "DELETE instances/N":
        this.#allow("compute.instances.delete", call);
        return this.#operation(this.model.deleteMachine(instance));
      case "POST instances/N/testIamPermissions":
        this.#allow("compute.instances.list", call);
        this.model.machine(location, instance.name);
        return this.#granted(call.body);
      case "POST instanceGroupManagers/N/testIamPermissions":
        // For groups, only the beta API has this method.
        if (call.version !== "beta") throw unknownCall(call);
        this.#allow("compute.instanceGroupManagers.list", call);
        this.model.group(place, instance.name);
        return this.#granted(call.body);
      case "POST instanceGroupManagers/N/listManagedInstances": {
        this.#allow("compute.instanceGroupManagers.get", call);
        const asked = this.model.group(place, instance.name);
        const own = this.model.allMachines().filter(({ group }) => group === asked);
        return { managedInstances: own.map((one) => managedBody(one, this.project)) };
      }
      case "GET instanceGroupManagers/N":
        this.#allow("compute.instanceGroupManagers.get", call);
        return groupBody(this.model.group(place, instance.name), this.project);
      case "POST instanceGroupManagers/N/recreateInstances":
      case "POST instanceGroupManagers/N/deleteInstances": {
        this.#allow("compute.instanceGroupManagers.update", call);
        const group = this.model.group(place, instance.name);
        const method = verb === "deleteInstances" ? verb : "recreateInstances";
        return this.#operation(
          this.model.actOnGroup(method, { group, requestId, ...readGroupBody(call.body) }),
        );
      }
      case "GET operations":
        this.#allow(operationRight(scope, "list"), call);
        return listPage(
          "operation",
          this.model.operations(place).map((one) => this.#operation(one)),
          call.query,
        );
      case "GET operations/N":
        this.#allow(operationRight(scope, "get"), call);
        return this.#operation(this.model.operation(place, instance.name));
      case "POST operations/N/wait":
        this.#allow(operationRight(scope, "get"), call);
        return this.#wait(this.model.operation(place, instance.name), response);
      default:
        throw unknownCall(call);
    }
  }

  async #wait(operation: ComputeOperation, response: ServerResponse): Promise<object> {
    const { clock, waitHoldMs = minutes(2) } = this.#options;
    const enough = new AbortController();
    const held = clock.sleep(waitHoldMs, AbortSignal.any([enough.signal, this.#closed.signal]));
    const early = held.catch(() => undefined);
    await this.#park(Promise.race([this.model.whenDone(operation), early]), response);
    enough.abort();
    return this.#operation(operation);
  }

  #operation(operation: ComputeOperation): object {
    return operationBody(operation, this.project);
  }

  /**
   * Which of the requested permissions are granted. As in all of Google's responses, an empty list
   * is omitted.
   */
  #granted(body: unknown): object {
    const { permissions = [] } = (body ?? {}) as { permissions?: readonly string[] };
    const granted = permissions.filter((permission) => !this.#denied.has(permission));
    return granted.length === 0 ? {} : { permissions: granted };
  }

  #allow(permission: string, call: ComputeRequestRecord): void {
    this.permissionsUsed.add(permission);
    if (!this.#denied.has(permission)) return;
    const resource = `projects/${this.project.id}${call.path}`;
    const message = `Required '${permission}' permission for '${resource}'`;
    throw new ComputeRefusal(403, "forbidden", message);
  }
}

const callPath = /^\/compute\/(v1|beta)\/projects\/([^/]+)(\/.*)$/;

function operationRight(scope: "zones" | "regions", verb: "get" | "list"): string {
  return `compute.${scope === "zones" ? "zone" : "region"}Operations.${verb}`;
}

function checkedRequestId(requestId: string | undefined): string | undefined {
  if (requestId === undefined) return undefined;
  const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(requestId);
  if (uuid && !/^[0-]+$/.test(requestId)) return requestId;
  const message = `Invalid value for field 'requestId': '${requestId}'. Must be a valid UUID.`;
  throw new ComputeRefusal(400, "invalid", message);
}

function readGroupBody(body: unknown): { instances: readonly string[]; skipInvalid: boolean } {
  const shape = (body ?? {}) as { instances?: unknown; skipInstancesOnValidationError?: unknown };
  const instances = Array.isArray(shape.instances) ? shape.instances.map(String) : [];
  if (instances.length === 0) {
    throw new ComputeRefusal(400, "required", "Required field 'instances' not specified");
  }
  return { instances, skipInvalid: shape.skipInstancesOnValidationError === true };
}

function refusalOf(fault: Extract<ComputeFault, { kind: "Refuse" }>): {
  status: number;
  body: object;
} {
  const { status, reason, message = `Refused for the test: ${reason}` } = fault;
  return { status, body: errorBody({ status, reason, message }) };
}

function oddTextOf(fault: ComputeFault | undefined) {
  if (fault?.kind === "Text") return { status: 200, text: fault.text };
  if (fault?.kind !== "Garbage") return undefined;
  return { status: fault.status ?? 200, text: "<html>no healthy upstream" };
}

function unknownCall(call: ComputeRequestRecord): ComputeRefusal {
  return new ComputeRefusal(404, "notImplemented", `No such call: ${call.method} ${call.path}`);
}

/** Starts a server on a free loopback port; the caller closes it. */
export async function startComputeServer(options: ComputeServerOptions): Promise<ComputeServer> {
  const server = new ComputeServer(options);
  await server.listen();
  return server;
}
