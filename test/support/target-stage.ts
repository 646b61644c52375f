import { ClassicLoadBalancerClient } from "../../src/cloud/aws/actions/classic-load-balancer-client.ts";
import { TargetRunner } from "../../src/cloud/aws/actions/deregister-targets.ts";
import { TargetGroupClient } from "../../src/cloud/aws/actions/target-group-client.ts";
import { TargetIndex } from "../../src/cloud/aws/actions/target-index.ts";
import { Ec2Client } from "../../src/cloud/aws/ec2-client.ts";
import type { ActionTask } from "../../src/contracts/action-runner.ts";
import { seededRng } from "../../src/core/chance/chance.ts";
import type { Fields } from "../../src/core/json/json-field.ts";
import { millis, plus } from "../../src/core/time/time.ts";
import { aTask } from "../contract/action-runner.contract.ts";
import { LoadBalancerServer } from "./load-balancer-server.ts";
import { ManualClock } from "./manual-clock.ts";
import { NetworkServer, type ServedInstance } from "./network-server.ts";
import { waitUntil } from "./wait-until.ts";

const never = new AbortController().signal;

/** How a run differs from the default. */
export interface TargetRun {
  readonly machine?: string;
  readonly pods?: readonly string[];
  /** How long to wait for connections to end; absent: not at all. */
  readonly waitMs?: number;
  /** What an earlier process has recorded. */
  readonly undo?: Fields | undefined;
  readonly keep?: (undo: Fields) => Promise<void>;
}

/**
 * A machine, the load balancers in front of it, and the runner that deregisters it with the AWS
 * SDK.
 */
export class TargetStage {
  readonly clock = new ManualClock();
  readonly balancers = new LoadBalancerServer(() => this.clock.now());
  readonly ec2 = new NetworkServer();
  readonly instance: ServedInstance = this.ec2.addInstance(1);
  /** How often the cluster was asked for the addresses of a machine. */
  addressLooks = 0;
  runner = this.freshRunner();

  async start(): Promise<this> {
    await Promise.all([this.balancers.start(), this.ec2.start()]);
    process.env.AWS_ENDPOINT_URL_ELASTIC_LOAD_BALANCING_V2 = this.balancers.url;
    process.env.AWS_ENDPOINT_URL_ELASTIC_LOAD_BALANCING = this.balancers.url;
    process.env.AWS_ENDPOINT_URL_EC2 = this.ec2.url;
    this.runner = this.freshRunner();
    return this;
  }

  async stop(): Promise<void> {
    await Promise.all([this.balancers.stop(), this.ec2.stop()]);
  }

  /** A runner without any knowledge yet. */
  freshRunner({ readsOwners = true } = {}): TargetRunner {
    const { clock } = this;
    const region = "eu-west-1";
    const groups = new TargetGroupClient({ region, readsOwners });
    const kinds = [groups, new ClassicLoadBalancerClient({ region })];
    const network = new Ec2Client({ region });
    const tools = { kinds, network, machines: () => [], clock, rng: seededRng(1) };
    const traffic = { index: new TargetIndex(tools), kinds, instances: network };
    return new TargetRunner({ trafficIn: () => traffic, clock, rng: seededRng(1) });
  }

  taskOf({
    machine = this.instance.id,
    pods = [],
    waitMs,
  }: TargetRun = {}): ActionTask<"deregisterTargets"> {
    const { target, ...rest } = aTask({ kind: "deregisterTargets", wait: waitMs !== undefined });
    return {
      ...rest,
      endsAt: plus(this.clock.now(), millis(waitMs ?? 30_000)),
      target: {
        ...target,
        providerID: `aws:///eu-west-1a/${machine}`,
        addresses: async () => {
          this.addressLooks += 1;
          return { node: [], pods };
        },
      },
    };
  }

  prepare(given: TargetRun = {}): Promise<Fields | undefined> {
    return this.runner.prepare(this.taskOf(given), never);
  }

  /** Returns the result's text and the record. */
  async run(
    given: TargetRun = {},
  ): Promise<{ readonly detail: string; readonly undo?: Fields | undefined }> {
    const task = this.taskOf(given);
    const undo = given.undo ?? (await this.runner.prepare(task, never));
    let kept = undo;
    const keep = async (more: Fields) => {
      await given.keep?.(more);
      kept = more;
    };
    const { detail } = await this.runner.apply({ ...task, undo, keep }, never);
    return { detail, undo: kept };
  }

  async comeBack(undo: Fields | undefined, given: TargetRun = {}): Promise<{ detail: string }> {
    return this.runner.undo({ ...this.taskOf(given), undo }, never);
  }

  /** Lets time pass until the run is done. */
  async runThrough(given: TargetRun): Promise<string> {
    const state = { isOver: false };
    const running = this.run(given).finally(() => {
      state.isOver = true;
    });
    running.catch(() => undefined);
    await waitUntil(
      async () => {
        if (!state.isOver) await this.clock.advance(250);
        return state.isOver;
      },
      { what: "it is done", timeoutMs: 8000, intervalMs: 2 },
    );
    return (await running).detail;
  }

  /** Adds target groups that contain the machine. */
  addGroups(count: number, drainMs = 0): void {
    for (let place = 0; place < count; place += 1) {
      const targets = [{ id: this.instance.id, port: 80 }];
      this.balancers.addGroup(`group-${place}`, { drainMs, targets });
    }
  }

  /** Makes the runner read the groups, and lets time pass until that knowledge is outdated. */
  async readLongAgo(): Promise<void> {
    await this.run({ machine: "i-00000000000000099" });
    await this.clock.advance(60_000);
  }

  standing(): readonly string[] {
    return this.balancers.groups.flatMap((group) => this.balancers.serving(group));
  }
}
