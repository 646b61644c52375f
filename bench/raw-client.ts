import { readFileSync } from "node:fs";
import { Agent } from "node:https";
import { type ApiAnswer, apiRequest } from "../test/support/api-request.ts";
import type { ControlPlane } from "../test/support/control-plane.ts";

export interface RawCall {
  readonly method?: string;
  readonly path: string;
  readonly body?: unknown;
  readonly contentType?: string;
}

/**
 * Sends calls over a fixed number of connections, as fast as they are answered, and does nothing
 * else.
 */
export class RawClient {
  readonly #target: { readonly url: string; readonly ca: string; readonly agent: Agent };
  readonly #token: string;
  readonly #connections: number;
  readonly #waiting = { First: [] as RawCall[], Later: [] as RawCall[] };
  readonly #workers = new Set<Promise<void>>();

  constructor(plane: ControlPlane, how: { readonly token: string; readonly connections: number }) {
    const ca = readFileSync(plane.caFile, "utf8");
    const agent = new Agent({ keepAlive: true, maxSockets: how.connections });
    this.#target = { url: plane.url, ca, agent };
    this.#token = how.token;
    this.#connections = how.connections;
  }

  /** Rejects if a response has a status of 300 or more that is not in `allowed`. */
  async sendAll(calls: readonly RawCall[], allowed: readonly number[] = []): Promise<void> {
    const queue = calls.values();
    const work = async (): Promise<void> => {
      for (const call of queue) await this.#succeed(call, allowed);
    };
    await Promise.all(Array.from({ length: this.#connections }, work));
  }

  /** Sends a call as soon as a connection is free; `First` calls go before all others that wait. */
  push(call: RawCall, urgency: "First" | "Later"): void {
    this.#waiting[urgency].push(call);
    if (this.#workers.size >= this.#connections) return;
    const worker: Promise<void> = this.#work().finally(() => this.#workers.delete(worker));
    this.#workers.add(worker);
  }

  /** Resolves when every pushed call has been answered. */
  async whenDone(): Promise<void> {
    while (this.#workers.size > 0) await Promise.all(this.#workers);
  }

  async #work(): Promise<void> {
    for (;;) {
      const call = this.#waiting.First.shift() ?? this.#waiting.Later.shift();
      if (call === undefined) return;
      await this.#succeed(call, []);
    }
  }

  async #succeed(call: RawCall, allowed: readonly number[]): Promise<void> {
    const { status, body } = await this.send(call);
    if (status < 300 || allowed.includes(status)) return;
    const said = JSON.stringify(body.message ?? body);
    throw new Error(`Cannot ${call.method} ${call.path}: ${status} ${said}, wanted success`);
  }

  send(call: RawCall): Promise<ApiAnswer> {
    return apiRequest(this.#target, { ...call, token: this.#token });
  }

  close(): void {
    this.#target.agent.destroy();
  }
}
