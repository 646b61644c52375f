import { expect } from "vitest";
import { Agent } from "../../src/agent/agent.ts";
import { AgentHealth, AgentMetrics } from "../../src/agent/agent-status.ts";
import { NoticeReporter } from "../../src/agent/notice-reporter.ts";
import { agentFallback } from "../../src/cli/assemble/agent-fallback.ts";
import type { KubeAnswer, KubeRequest } from "../../src/contracts/kube-api.ts";
import { seededRng } from "../../src/core/chance/chance.ts";
import type { Notice, NoticeCause } from "../../src/core/notice/notice.ts";
import { plus, seconds } from "../../src/core/time/time.ts";
import { ModelWorld, nodes, spotPolicy, webWorkload } from "./model-world.ts";
import { ScriptedSource } from "./scripted-source.ts";

/** What a controller and an agent with a fallback set on a node that leaves. */
export const allMarks = [
  "unschedulable",
  "lastcall.dev/departing",
  "lastcall.dev/departure",
  "node.kubernetes.io/exclude-from-external-load-balancers",
];

/** The real agent of n1 with its fallback, on a model cluster, with or without a controller. */
export class FallbackStage {
  readonly world = new ModelWorld();
  readonly logged: string[] = [];
  /** Every request of the agent. */
  readonly sent: KubeRequest[] = [];
  /** What the agent gets instead of the API server's response; undefined: that response. */
  refuse: (request: KubeRequest) => KubeAnswer | Error | undefined = () => undefined;
  /** The notices that the cloud reports. */
  standing: readonly Notice[] = [];
  #source = new ScriptedSource(this.world.clock);
  readonly #ending = new AbortController();
  readonly #running: Promise<unknown>[] = [];

  constructor() {
    for (const name of ["n0", "n1", "n2"]) this.world.addNode(name, "a");
    spotPolicy(this.world, { lifetime: {} });
  }

  async end(): Promise<void> {
    this.#ending.abort();
    await Promise.all(this.#running);
  }

  async startAgent(mode: "Cordon" | "Drain", ended = this.#ending.signal): Promise<void> {
    const { world, logged } = this;
    this.#source = new ScriptedSource(world.clock);
    const source = this.#source;
    const uid = world.get(`${nodes}/n1`)?.metadata?.uid ?? "";
    const identify = async () => ({ name: "n1", uid, bootID: "boot-2" });
    const api = {
      send: async ({ bodyAtTurn, ...asked }: KubeRequest): Promise<KubeAnswer> => {
        const request = bodyAtTurn === undefined ? asked : { ...asked, body: bodyAtTurn() };
        this.sent.push(request);
        const instead = this.refuse(request);
        if (instead instanceof Error) throw instead;
        return instead ?? world.api.send(request);
      },
    };
    const say = (event: string) => void logged.push(event);
    const log = { debug: say, info: say, warn: say, error: say };
    const [{ clock }, rng, metrics] = [world, seededRng(1), new AgentMetrics()];
    const reporter = new NoticeReporter({ api, identify, log });
    const parts = { api, reporter, identify, log, metrics, clock, rng };
    const agent = new Agent({
      findSource: async () => source,
      fallback: agentFallback({ ...parts, mode, namespace: "lastcall" }),
      health: new AgentHealth(clock),
      dryRun: false,
      ...parts,
    });
    this.#running.push(agent.run(ended).catch(() => {}));
    await world.pass(seconds(1));
  }

  startController(ended = this.#ending.signal): void {
    this.#running.push(this.world.startController(ended).catch(() => {}));
  }

  notice(leftSeconds: number, cause: NoticeCause = "SpotInterruption"): Notice {
    const deadlineAt = plus(this.world.clock.now(), seconds(leftSeconds));
    const noticedAt = this.world.clock.now();
    return { cause, deadlineAt, noticedAt, source: "aws/a", eventId: "event-1" };
  }

  /** For `count` seconds, the cloud reports `standing` each second. */
  async pass(count: number): Promise<void> {
    for (let second = 0; second < count; second += 1) {
      this.#source.say("aws/a", this.standing);
      this.#source.say("aws/b", []);
      await this.world.pass(seconds(1));
    }
  }

  writesOfAgent(): readonly string[] {
    return this.sent.flatMap(({ method, path }) =>
      method === "GET" || path.includes("departures") ? [] : [`${method} ${path}`],
    );
  }

  async withPods(how: { maxUnavailable: number }): Promise<void> {
    webWorkload(this.world, { replicas: 6, ...how });
    await this.world.pass(seconds(30));
    expect(this.world.podsOn("n1").length).toBeGreaterThan(0);
  }
}
