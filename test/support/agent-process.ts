import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compileCache } from "./compile-cache.ts";

export interface AgentProcessOptions {
  readonly nodeName: string;
  readonly metadataUrl: string;
  /** `https://127.0.0.1:6443`. */
  readonly apiUrl: string;
  readonly caFile: string;
  readonly token: string;
  /** Flags in addition to those that are always set. */
  readonly flags?: readonly string[];
}

/** Node, or the runtime that the variable names: the agent's image runs it on Bun. */
const runtime = process.env.E2E_AGENT_RUNTIME ?? process.execPath;

const entry = new URL("../../src/cli/agent-main.ts", import.meta.url).pathname;

/** The agent as its image starts it: a separate process with a token file and two variables. */
export class AgentProcess {
  readonly log: string[] = [];
  readonly #folder: string;
  readonly #child: ChildProcess;
  readonly #ended: Promise<number | null>;

  constructor(options: AgentProcessOptions) {
    this.#folder = mkdtempSync(join(tmpdir(), "lastcall-agent-"));
    writeFileSync(join(this.#folder, "token"), `${options.token}\n`);
    const api = new URL(options.apiUrl);
    const flags = ["--health-address=127.0.0.1:0", "--metrics-address=127.0.0.1:0"];
    this.#child = spawn(runtime, [entry, "agent", ...flags, ...(options.flags ?? [])], {
      env: {
        PATH: process.env.PATH,
        ...compileCache,
        KUBERNETES_SERVICE_HOST: api.hostname,
        KUBERNETES_SERVICE_PORT: api.port,
        NODE_EXTRA_CA_CERTS: options.caFile,
        LASTCALL_ACCOUNT_FOLDER: this.#folder,
        LASTCALL_NODE_NAME: options.nodeName,
        LASTCALL_METADATA_URL: options.metadataUrl,
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const { promise, resolve } = Promise.withResolvers<number | null>();
    this.#ended = promise;
    this.#child.once("exit", resolve);
    this.#child.once("error", (error) => {
      this.log.push(error.message);
      resolve(null);
    });
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.log.push(...text.split("\n").filter((line) => line !== ""));
    });
  }

  /** Whether its log contains this event. */
  said(event: string): boolean {
    return this.log.some((line) => line.includes(`"event":"${event}"`));
  }

  /** The exit code; null if a signal ended it. */
  get ended(): Promise<number | null> {
    return this.#ended;
  }

  /** Stops it as a kubelet does; resolves with the exit code. */
  stop(): Promise<number | null> {
    return this.#end("SIGTERM");
  }

  /** Gives it no chance to clean up. */
  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  async #end(signal: "SIGTERM" | "SIGKILL"): Promise<number | null> {
    this.#child.kill(signal);
    const code = await this.#ended;
    rmSync(this.#folder, { recursive: true, force: true });
    return code;
  }
}
