import { afterEach, beforeEach } from "vitest";
import type { ActionPorts } from "../../src/contracts/action-runner.ts";
import type { ReleaserChoice } from "../../src/contracts/cloud.ts";
import { type Millis, minutes, seconds } from "../../src/core/time/time.ts";
import { FakeActionRunner } from "./fake-action-runner.ts";
import { departures, ModelWorld, nodes, policies, webWorkload } from "./model-world.ts";

export interface Recorded {
  readonly name: string;
  readonly state: string;
  readonly attempts: number;
  readonly result?: string;
  readonly detail?: string;
  readonly startedAt?: string;
}

const ofSpot = { key: "cloud.google.com/gke-spot", operator: "In", values: ["true"] };

/** A silence and a message, as written in a policy. */
export const silence = { alertmanagerSilence: { url: "http://am:9093", matchers: ["a=b"] } };
export const slack = { slack: { url: "https://hooks.example/x", message: "{{node}} {{outcome}}" } };

interface StageOptions {
  readonly dryRun?: boolean;
  readonly releaserFor?: ReleaserChoice;
  /** Default: the receivers of the stage. */
  readonly actionPorts?: ActionPorts | undefined;
}

/** A stage that is renewed before each test of a file and stopped after it. */
export function useActionStage(): ActionStage {
  const stage = new ActionStage();
  beforeEach(() => stage.renew());
  afterEach(() => stage.stop());
  return stage;
}

/** Two nodes with a pod each, the controller, and in-memory receivers of its actions. */
class ActionStage {
  world = new ModelWorld(1);
  /** Receives actions that can be undone: silences. */
  mute = new FakeActionRunner();
  /** Receives messages. */
  tell = new FakeActionRunner("Message");
  #abort = new AbortController();

  /** Starts from scratch; whatever ran before must have been stopped. */
  renew(seed = 1): void {
    this.world = new ModelWorld(seed);
    this.mute = new FakeActionRunner();
    this.tell = new FakeActionRunner("Message");
    this.#abort = new AbortController();
  }

  readonly #ports: ActionPorts = {
    runners: async (kind) => {
      if (kind === "teams") return undefined;
      const isUndone = kind === "alertmanagerSilence" || kind === "deregisterTargets";
      return (isUndone ? this.mute : this.tell) as never;
    },
    addresses: async () => ({ node: ["10.0.0.1"], pods: [] }),
  };

  start(
    actions: readonly object[],
    spec: object = {},
    options: StageOptions = {},
  ): AbortController {
    this.world.addNode("n1", "a");
    this.world.addNode("n2", "a");
    webWorkload(this.world, { replicas: 2, maxUnavailable: 2 });
    this.world.create(policies, {
      apiVersion: "lastcall.dev/v1alpha1",
      kind: "DeparturePolicy",
      metadata: { name: "spot" },
      spec: {
        nodeSelector: { nodeSelectorTerms: [{ matchExpressions: [ofSpot] }] },
        ...{ actions, ...spec },
      },
    });
    return this.startController(options);
  }

  /** Returns the AbortController that kills it. */
  startController(options: StageOptions = {}): AbortController {
    const own = new AbortController();
    const signal = AbortSignal.any([this.#abort.signal, own.signal]);
    this.world
      .startController(signal, { actionPorts: this.#ports, ...options })
      .catch(() => undefined);
    return own;
  }

  async stop(): Promise<void> {
    this.#abort.abort();
    await this.world.pass(seconds(1));
  }

  /** Makes a receiver hang. */
  hang(runner: FakeActionRunner): void {
    runner.latency = (signal) => this.world.clock.sleep(minutes(60), signal);
  }

  async giveNotice(lead: Millis = seconds(120)): Promise<void> {
    await this.world.pass(seconds(5));
    this.world.notice("n1", lead);
  }

  withdraw(): void {
    this.patchDeparture({ withdrawnAt: "2026-11-20T00:01:00Z" });
  }

  patchDeparture(spec: object): void {
    const patchType = "application/merge-patch+json";
    const request = { method: "PATCH", path: this.#path, patchType, body: { spec } } as const;
    this.world.api.handle(request);
  }

  deleteDeparture(): void {
    this.world.api.handle({ method: "DELETE", path: this.#path });
  }

  /** Deletes the Node, as a cloud does that takes its machine. */
  deleteNode(): void {
    this.world.api.handle({ method: "DELETE", path: `${nodes}/n1` });
  }

  get #path(): string {
    return `${departures}/${this.world.departureOf("n1")?.metadata?.name}`;
  }

  get records(): readonly Recorded[] {
    const status = this.world.departureOf("n1")?.status;
    return (status as { actions?: readonly Recorded[] } | undefined)?.actions ?? [];
  }

  get states(): Readonly<Record<string, string>> {
    return Object.fromEntries(this.records.map(({ name, state }) => [name, state]));
  }
}
