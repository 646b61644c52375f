import type { KubeObject } from "../../src/contracts/kube-api.ts";
import { between, millis, minutes, plus, seconds } from "../../src/core/time/time.ts";
import { ModelWorld, spotPolicy, webWorkload } from "./model-world.ts";

export interface BudgetStory {
  readonly noticeSeconds: number;
  readonly graceSeconds: number;
  /** How long the pods actually take to exit. */
  readonly exitAfterSeconds: number | "never";
  /** From the policy; default: the policy's default. */
  readonly budgetShare?: string;
  readonly seed?: number;
}

export interface BudgetEnd {
  /** The smallest number of pods that were ready and not leaving, out of eight. */
  readonly fewestReady: number;
  /** From the notice until none of the three nodes had any pods left. */
  readonly emptyAfterSeconds: number;
  readonly forced: number;
  readonly cut: number;
  /** Pods killed at the end of their grace period, or left behind. */
  readonly unclean: number;
}

const taken = ["n0", "n1", "n2"];
const stepMs = millis(100);

/**
 * Eight pods behind a budget of `maxUnavailable: 1`, all on three nodes that get a notice at once,
 * and three more nodes for the replacements, which are ready after 5 s.
 */
export async function budgetStory(story: BudgetStory): Promise<BudgetEnd> {
  const { noticeSeconds, graceSeconds, exitAfterSeconds, budgetShare, seed } = story;
  const world = new ModelWorld(seed);
  for (const name of taken) world.addNode(name, name);
  webWorkload(world, { replicas: 8, maxUnavailable: 1, exitAfterSeconds, graceSeconds });
  spotPolicy(world, budgetShare === undefined ? {} : { drain: { budgetShare } });
  await world.pass(seconds(30));
  for (const name of ["n3", "n4", "n5"]) world.addNode(name, name);
  const stop = new AbortController();
  const running = world.startController(stop.signal);
  await world.pass(seconds(5));
  const noticedAt = world.clock.now();
  for (const name of taken) world.notice(name, seconds(noticeSeconds));
  let fewestReady = 8;
  let emptyAfterMs = Number.NaN;
  for (const until = plus(noticedAt, minutes(5)); world.clock.now() < until; ) {
    await world.pass(stepMs);
    fewestReady = Math.min(fewestReady, readyPods(world));
    if (taken.some((name) => world.podsOn(name).length > 0)) continue;
    emptyAfterMs = between(noticedAt, world.clock.now());
    break;
  }
  // The ledgers are written once per second.
  await world.pass(seconds(3));
  stop.abort();
  await running;
  const sum = (...fields: readonly string[]) =>
    taken
      .flatMap((name) => fields.map((field) => countOf(world, { name, field })))
      .reduce((all, one) => all + one, 0);
  return {
    fewestReady,
    emptyAfterSeconds: emptyAfterMs / 1000,
    forced: sum("forced"),
    cut: sum("cut"),
    unclean: sum("killed", "leftBehind"),
  };
}

function readyPods(world: ModelWorld): number {
  return world.list("/api/v1/namespaces/default/pods").filter(isServing).length;
}

function isServing({ metadata, status }: KubeObject): boolean {
  const { conditions = [] } = (status ?? {}) as { conditions?: { type: string; status: string }[] };
  const isReady = conditions.some((one) => one.type === "Ready" && one.status === "True");
  return isReady && metadata?.deletionTimestamp === undefined;
}

function countOf(world: ModelWorld, { name, field }: { name: string; field: string }): number {
  const status = world.departureOf(name)?.status as { drain?: Record<string, number> } | undefined;
  return status?.drain?.[field] ?? 0;
}
