import { setTimeout as pause } from "node:timers/promises";
import { type Relay, type RelayCall, type RelayVerdict, startRelay } from "./relay.ts";
import { startTunnel } from "./tunnel.ts";

/** What happens to one request. */
export type Fault =
  /** It is delivered late. */
  | { readonly kind: "Delay"; readonly ms: number }
  /** It is swallowed: there is never a response, and the connection stays open. */
  | { readonly kind: "Hole" }
  /** The connection is lost before the server receives the request. */
  | { readonly kind: "Reset" }
  /** The server carries out the request, but its response is lost with the connection. */
  | { readonly kind: "LostAnswer" }
  /** The server does not receive the request, and the proxy responds with this status. */
  | { readonly kind: "Status"; readonly code: number; readonly retryAfterSeconds?: number };

export interface FaultCall extends RelayCall {
  /**
   * 1 for the first request with its method and path (without the query) since the proxy started.
   */
  readonly attempt: number;
}

export interface FaultProxyOptions {
  readonly target: string;
  readonly ca?: () => string;
  /** Called for every request; undefined: the request passes. */
  readonly faultFor?: (call: FaultCall) => Fault | undefined;
}

export interface FaultProxy {
  /** Plain HTTP, whatever the target uses. */
  readonly url: string;
  /** Every request so far, including watches. */
  readonly calls: readonly FaultCall[];
  /** Silently kills every open connection; new ones work. */
  blackHole(): void;
  /** Resets every open connection. */
  reset(): void;
  close(): Promise<void>;
}

/** Sits between a client and an API server, and causes the faults of networks and servers. */
export async function startFaultProxy(options: FaultProxyOptions): Promise<FaultProxy> {
  const injector = new FaultInjector(options.faultFor ?? (() => undefined));
  const relay = await startRelay({
    target: options.target,
    ...(options.ca && { ca: options.ca }),
    before: (call) => injector.before(call),
    after: (call) => injector.after(call),
  });
  const tunnel = await startTunnel(Number(new URL(relay.url).port));
  return {
    url: `http://127.0.0.1:${tunnel.port}`,
    calls: injector.calls,
    blackHole: () => tunnel.blackHole(),
    reset: () => tunnel.reset(),
    close: () => closeBoth(tunnel, relay),
  };
}

async function closeBoth(tunnel: { close(): Promise<void> }, relay: Relay): Promise<void> {
  await tunnel.close();
  await relay.close();
}

class FaultInjector {
  readonly calls: FaultCall[] = [];
  readonly #faultFor: (call: FaultCall) => Fault | undefined;
  readonly #attempts = new Map<string, number>();
  readonly #lost = new WeakSet<RelayCall>();

  constructor(faultFor: (call: FaultCall) => Fault | undefined) {
    this.#faultFor = faultFor;
  }

  async before(call: RelayCall): Promise<RelayVerdict> {
    const counted = { ...call, attempt: this.#count(call) };
    this.calls.push(counted);
    const fault = this.#faultFor(counted);
    switch (fault?.kind) {
      case "Delay":
        await pause(fault.ms);
        return "Pass";
      case "Hole":
        return "Swallow";
      case "Reset":
        return "Drop";
      case "LostAnswer":
        this.#lost.add(call);
        return "Pass";
      case "Status":
        return statusAnswer(fault);
      case undefined:
        return "Pass";
    }
  }

  async after(call: RelayCall): Promise<void> {
    if (this.#lost.has(call)) throw new Error("The answer is lost, as the test wants it");
  }

  #count({ method, path }: RelayCall): number {
    const key = `${method} ${path.split("?")[0]}`;
    const attempt = (this.#attempts.get(key) ?? 0) + 1;
    this.#attempts.set(key, attempt);
    return attempt;
  }
}

/** In the format of an API server. */
function statusAnswer({ code, retryAfterSeconds }: Extract<Fault, { kind: "Status" }>) {
  const message = `injected ${code}`;
  return {
    status: code,
    headers: retryAfterSeconds === undefined ? {} : { "retry-after": String(retryAfterSeconds) },
    body: { apiVersion: "v1", kind: "Status", status: "Failure", code, message },
  };
}
