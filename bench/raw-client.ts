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

/** So many connections that send so many calls as fast as they are answered, and nothing else. */
export class RawClient {
  readonly #target: { readonly url: string; readonly ca: string; readonly agent: Agent };
  readonly #token: string;
  readonly #connections: number;

  constructor(plane: ControlPlane, how: { readonly token: string; readonly connections: number }) {
    const ca = readFileSync(plane.caFile, "utf8");
    const agent = new Agent({ keepAlive: true, maxSockets: how.connections });
    this.#target = { url: plane.url, ca, agent };
    this.#token = how.token;
    this.#connections = how.connections;
  }

  /** Every answer must have a status under 300, or of `allowed`. */
  async sendAll(calls: readonly RawCall[], allowed: readonly number[] = []): Promise<void> {
    const queue = calls.values();
    const work = async (): Promise<void> => {
      for (const call of queue) {
        const { status, body } = await this.send(call);
        if (status < 300 || allowed.includes(status)) continue;
        const said = JSON.stringify(body.message ?? body);
        throw new Error(`Cannot ${call.method} ${call.path}: ${status} ${said}, wanted success`);
      }
    };
    await Promise.all(Array.from({ length: this.#connections }, work));
  }

  send(call: RawCall): Promise<ApiAnswer> {
    return apiRequest(this.#target, { ...call, token: this.#token });
  }

  close(): void {
    this.#target.agent.destroy();
  }
}
