import { Agent } from "../../src/agent/agent.ts";
import { AgentHealth } from "../../src/agent/agent-status.ts";
import { NoticeReporter } from "../../src/agent/notice-reporter.ts";
import type { NoticeSink, NoticeSource } from "../../src/contracts/cloud.ts";
import type { Log } from "../../src/contracts/telemetry.ts";
import { seededRng } from "../../src/core/chance/chance.ts";
import { instant, seconds } from "../../src/core/time/time.ts";
import { hashOf } from "../../src/sim/cloud/model-machine.ts";
import { ProcessApi } from "./process-api.ts";
import { ProcessClock } from "./process-clock.ts";
import type { Surroundings } from "./surroundings.ts";

interface MachineNotice {
  readonly noticedAt: number;
  readonly deadlineAt: number;
}

const channel = "gcp/preempted";

/**
 * The real agent on each machine about which the cloud has said something. The others would only
 * wait: they are not started, and that is where most of a run's time would go. On a machine that is
 * off none runs, whatever the cloud says of it.
 */
export class MachineAgents {
  readonly #stage: Surroundings;
  readonly #notices = new Map<string, MachineNotice>();
  readonly #running = new Map<
    string,
    { readonly stop: AbortController; readonly clock: ProcessClock }
  >();
  /** By the machine's id, once it has been rebooted: its present boot. */
  readonly #boots = new Map<string, string>();
  /** The ids of machines that are between two boots. */
  readonly #off = new Set<string>();
  #killedFor = 0;
  #offsetMs = 0;

  constructor(stage: Surroundings) {
    this.#stage = stage;
    stage.cluster.cloud.subscribe(({ kind, machine }) => {
      if (kind === "Gone" || machine.state === "Stopped") this.#end(machine.id);
    });
  }

  /** The metadata server says that the machine will be taken at an instant. */
  announce(name: string, leadMs: number): void {
    const machine = this.#stage.cluster.cloud.machine(name);
    if (machine?.state !== "Running") return;
    const noticedAt = this.#stage.clock.now();
    this.#notices.set(machine.id, { noticedAt, deadlineAt: noticedAt + leadMs });
    this.#stage.tell({ kind: "Notice", node: name, endsInMs: leadMs });
    if (!this.#running.has(machine.id)) this.#start(name, machine.id);
  }

  /** No agent runs until the returned function is called. */
  killWhile(): () => void {
    this.#killedFor += 1;
    for (const its of this.#running.values()) {
      its.clock.die();
      its.stop.abort(new Error("killed"));
    }
    const killed = new Set(this.#running.keys());
    this.#running.clear();
    return () => {
      this.#killedFor -= 1;
      if (this.#killedFor > 0) return;
      for (const { id, name } of this.#stage.cluster.cloud.machines()) {
        if (killed.has(id) || this.#notices.has(id)) this.#start(name, id);
      }
    };
  }

  /** The agent of a machine ends with its boot; the next one runs on the boot that it finds. */
  powerOff(name: string): void {
    const machine = this.#stage.cluster.cloud.machine(name);
    if (machine === undefined) return;
    this.#off.add(machine.id);
    this.#kill(machine.id);
  }

  bootAgain(name: string, bootID: string): void {
    const machine = this.#stage.cluster.cloud.machine(name);
    if (machine === undefined) return;
    this.#off.delete(machine.id);
    this.#boots.set(machine.id, bootID);
    if (this.#notices.has(machine.id)) this.#start(name, machine.id);
  }

  /** The wall clocks of all machines are set; later agents have them, too. */
  stepClocks(byMs: number): void {
    this.#offsetMs += byMs;
    for (const { clock } of this.#running.values()) clock.step(byMs);
  }

  withdraw(name: string): void {
    const machine = this.#stage.cluster.cloud.machine(name);
    if (machine === undefined || !this.#notices.delete(machine.id)) return;
    this.#stage.tell({ kind: "Notice", node: name, endsInMs: undefined });
  }

  /** The machine whose metadata server announces its end. */
  isAnnounced(machineId: string): boolean {
    return this.#notices.has(machineId);
  }

  stopAll(): void {
    for (const id of [...this.#running.keys()]) this.#end(id);
  }

  #end(machineId: string): void {
    this.#notices.delete(machineId);
    this.#kill(machineId);
  }

  #kill(machineId: string): void {
    const its = this.#running.get(machineId);
    this.#running.delete(machineId);
    its?.clock.die();
    its?.stop.abort(new Error("power off"));
  }

  #start(name: string, machineId: string): void {
    const stage = this.#stage;
    const machine = stage.cluster.cloud.machine(name);
    const node = stage.get("nodes", name);
    const isOn = machine?.state === "Running" && !this.#off.has(machineId);
    if (node === undefined || !isOn || this.#killedFor > 0) return;
    const process = `agent/${name}`;
    const clock = new ProcessClock(stage.clock, this.#offsetMs);
    const stop = new AbortController();
    this.#running.set(machineId, { stop, clock });
    const quiet = { onWrite: () => {}, onBusyLoop: () => stop.abort(new Error("busy loop")) };
    const api = new ProcessApi({ stage, process, clock, ...quiet });
    const bootID = this.#boots.get(machineId) ?? machine.bootID;
    const identity = { name, uid: node.metadata.uid, bootID };
    const log = this.#log(process);
    const agent = new Agent({
      findSource: () => Promise.resolve(this.#source(machineId, clock)),
      reporter: new NoticeReporter({ api, identify: () => Promise.resolve(identity), log }),
      health: new AgentHealth(clock),
      rng: seededRng(hashOf(`${stage.world.seed}|${machineId}|agent`)),
      metrics: { count: () => {} },
      ...{ clock, log, dryRun: false },
    });
    void agent.run(stop.signal).catch(() => {});
  }

  /** Polls every two seconds, as a metadata server is polled. */
  #source(machineId: string, clock: ProcessClock): NoticeSource {
    const report = (sink: NoticeSink): void => {
      const its = this.#notices.get(machineId);
      const notices =
        its === undefined
          ? []
          : [
              {
                cause: "SpotInterruption" as const,
                noticedAt: instant(its.noticedAt),
                deadlineAt: instant(its.deadlineAt),
                ...{ source: channel, eventId: `preempted-${its.noticedAt}` },
              },
            ];
      sink.onTurn(channel);
      const reading = { kind: "Read", notices, ignored: [], problems: [] } as const;
      sink.onReading({ channel, reading, at: clock.now() });
    };
    const run = async (sink: NoticeSink, signal: AbortSignal): Promise<void> => {
      while (!signal.aborted) {
        report(sink);
        await clock.sleep(seconds(2), signal).catch(() => {});
      }
    };
    return { cloud: "gcp", channels: [channel], run };
  }

  #log(process: string): Log {
    const log = (event: string, fields: object = {}): void => {
      this.#stage.tell({ kind: "Log", process, text: `${event} ${JSON.stringify(fields)}` });
    };
    return { debug: () => {}, info: log, warn: log, error: log };
  }
}
