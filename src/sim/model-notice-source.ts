import type { Clock } from "../contracts/clock.ts";
import type { NoticeSink, NoticeSource } from "../contracts/notice-source.ts";
import type { Notice } from "../core/notice/notice.ts";
import { type Millis, plus } from "../core/time/time.ts";
import type { ModelCloud } from "./model-cloud.ts";
import type { ModelMachine } from "./model-machine.ts";

const channel = "gcp/preempted";

export interface ModelNoticeOptions {
  readonly cloud: ModelCloud;
  readonly clock: Clock;
  /** The machine that listens, by its id: another one may get its name. */
  readonly machineId: string;
  readonly name: string;
  /** How long a preemption leaves a machine, as its owner has written in its metadata. */
  readonly noticeMs: Millis;
}

/** What the metadata server of one model machine says: nothing, until the cloud takes the machine. */
export class ModelNoticeSource implements NoticeSource {
  readonly cloud = "gcp";
  readonly channels = [channel];
  readonly #options: ModelNoticeOptions;

  constructor(options: ModelNoticeOptions) {
    this.#options = options;
  }

  async run(sink: NoticeSink, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    const { cloud, machineId, name } = this.#options;
    this.#tell(cloud.machine(name), sink);
    const unsubscribe = cloud.subscribe(({ kind, machine }) => {
      if (kind === "Noticed" && machine.id === machineId) this.#tell(machine, sink);
    });
    await new Promise<void>((resolve) => {
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
    unsubscribe();
  }

  #tell(machine: ModelMachine | undefined, sink: NoticeSink): void {
    sink.onTurn(channel);
    const notices = machine?.noticedAt === undefined ? [] : [this.#notice(machine)];
    const reading = { kind: "Read", notices, ignored: [], problems: [] } as const;
    sink.onReading({ channel, reading, at: this.#options.clock.now() });
  }

  #notice({ noticedAt = this.#options.clock.now() }: ModelMachine): Notice {
    const deadlineAt = plus(noticedAt, this.#options.noticeMs);
    const cause = "SpotInterruption";
    return { cause, noticedAt, deadlineAt, source: channel, eventId: "preempted" };
  }
}
