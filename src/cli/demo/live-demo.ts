import type { BoardNotice, DemoPicture } from "../../board/demo-picture.ts";
import type { FleetFigures } from "../../board/stream.ts";
import type { Clock } from "../../contracts/clock.ts";
import type { Fleet, FleetView } from "../../contracts/cluster.ts";
import type { Log } from "../../contracts/telemetry.ts";
import { type Departure, isLive, type Phase } from "../../core/departure/departure.ts";
import { between, type Instant, instant, millis, plus } from "../../core/time/time.ts";
import { policiesPath } from "../../kube/object/api-call.ts";
import type { ModelApi } from "../../sim/api/model-api.ts";
import type { ModelMachine } from "../../sim/cloud/model-machine.ts";
import { controllerOf } from "../../sim/cluster-controllers/cluster-object.ts";
import { demoNoticeMs } from "../../sim/demo/demo-world.ts";
import {
  type FleetCounts,
  FleetTally,
  type NoticeTimeline,
  NoticeWatch,
} from "../../sim/demo/simulation-report.ts";
import type { ModelCluster } from "../../sim/model-cluster.ts";
import type { Pulse } from "./controls.ts";
import { startFleet, startLastcallFleet } from "./demo-run.ts";
import {
  aftermathMs,
  type BoardNews,
  FleetNews,
  fleetNodes,
  type StoryFacts,
  storyOf,
} from "./fleet-picture.ts";
import { machineLifeMs } from "./fleet-totals.ts";

export interface LiveDemoOptions {
  readonly clock: Clock;
  readonly seed: number;
  readonly nodes: number;
  readonly log: Log;
}

export interface LiveDemo {
  /** The API of the cluster that Lastcall works on, for the HTTP server. */
  readonly api: ModelApi;
  /**
   * Starts the controller and reports the news. Rejects if the controller fails; resolves when it
   * has stopped.
   */
  run(onNews: (news: BoardNews) => void): Promise<void>;
  /** The current picture, without the clock's speed and state. */
  picture(): Omit<DemoPicture, "speed" | "moment" | "paused" | "isReading">;
  /** The controller's view, for the board. */
  readonly fleet: Fleet;
  /** Whether that view has everything. */
  isSynced(): boolean;
  /** The state that decides the speed of the clock. Cheap enough to be called at every step. */
  pulse(): Pulse;
  /** The number of the board's events so far. */
  events(): number;
  /**
   * Makes the cloud preempt a machine that has pods in both fleets: the one that would leave last.
   */
  interrupt(): void;
  /** Ends everything, including the run. */
  close(): Promise<void>;
}

type StoryOutcomes = Pick<StoryFacts, "withLastcall" | "without" | "notice">;

/** Two fleets with the same course on one clock: Lastcall works on one, nothing on the other. */
export function startLiveDemo(options: LiveDemoOptions): LiveDemo {
  const { clock, seed, log } = options;
  const startedAt = clock.now();
  const { cluster, fleet, tally, run } = startLastcallFleet(options, log);
  const shadow = startFleet(options);
  const shadowTally = new FleetTally(shadow);
  const [watch, shadowWatch] = [new NoticeWatch(cluster), new NoticeWatch(shadow)];
  const over = new AbortController();
  const { api, cloud } = cluster;
  const news = new FleetNews();
  let askedAt: Instant | undefined;
  const limitAt = plus(firstLaunch(shadow), millis(machineLifeMs));
  const told = (): StoryOutcomes => ({
    withLastcall: figuresOf(tally.counts()),
    without: figuresOf(shadowTally.counts()),
    notice: boardNotice(watch.latest(), shadowWatch.latest(), clock.now()),
  });
  const storyFacts = (): StoryFacts => ({
    ...{ now: clock.now(), nodes: options.nodes, limitAt, ...told() },
    nodesLeft: firstLeft(cluster, startedAt),
    nodesLeftWithout: firstLeft(shadow, startedAt),
    departures: tally.counts().plannedDepartures + departuresUnderWay(fleet.view()).draining,
  });
  let running: Promise<void> = Promise.resolve();
  return {
    api,
    run: (onNews) => {
      cloud.subscribe((event) => news.seeCloud(event, onNews));
      fleet.onChange(() => news.seeDepartures(fleet.view().departures, clock.now(), onNews));
      running = run(over.signal);
      return running;
    },
    picture: () => ({
      ...{ now: clock.now(), startedAt, seed },
      audits: auditSentences(api),
      nodes: fleetNodes(
        { machines: cloud.machines(), twins: shadow.cloud.machines() },
        fleet.view(),
      ),
      ...{ ...told(), story: storyOf(storyFacts()) },
    }),
    pulse: () => ({
      ...{ now: clock.now(), startedAt, podsUnderNotice: podsLeft(watch.latest()) },
      shutdownAt: shutdownOf(watch.latest()),
      ...departuresUnderWay(fleet.view()),
      departed: tally.counts().plannedDepartures,
      noticed: tally.counts().preempted,
      isAskedFor: askedAt !== undefined && watch.latest()?.noticedAt === askedAt,
      losses: [cloud, shadow.cloud].flatMap((one) => one.machines().filter(isNoticed)).length,
    }),
    fleet,
    isSynced: syncOf(fleet, over.signal),
    events: () => news.count(),
    interrupt: () => {
      const names = lastToLeave(cloud.machines(), fleet.view().departures);
      askedAt = clock.now();
      preemptOne(names, [cluster, shadow]);
    },
    close: async () => {
      over.abort();
      await Promise.allSettled([running]);
      cluster.stop();
      shadow.stop();
    },
  };
}

function syncOf(fleet: Pick<Fleet, "synced">, signal: AbortSignal): () => boolean {
  let isSynced = false;
  const sync = async (): Promise<void> => {
    await fleet.synced(signal);
    isSynced = true;
  };
  // It fails if the demo ends before its first list.
  sync().catch(() => undefined);
  return () => isSynced;
}

function figuresOf(counts: FleetCounts): FleetFigures {
  const { preemptedAtLimit, largestLossIn1h, podsLost, replacements } = counts;
  return {
    lostAtLimit: preemptedAtLimit,
    lostAtOnce: largestLossIn1h,
    podsKilled: podsLost,
    replacements,
  };
}

/** The current notice, or the one whose machine has just stopped. */
function boardNotice(
  story: NoticeTimeline | undefined,
  twin: NoticeTimeline | undefined,
  now: Instant,
): BoardNotice | undefined {
  if (story === undefined) return undefined;
  const { node, noticedAt, goneAt, pods } = story;
  if (goneAt !== undefined && between(goneAt, now) > aftermathMs) return undefined;
  const isSame = twin?.node === node && twin.noticedAt === noticedAt;
  const twinPods = isSame ? twin.pods : undefined;
  return { node, noticedAt, deadlineAt: plus(noticedAt, demoNoticeMs), goneAt, pods, twinPods };
}

function shutdownOf(story: NoticeTimeline | undefined): Instant | undefined {
  return story && plus(story.noticedAt, demoNoticeMs);
}

/** The number of machines launched together that still run. */
function firstLeft({ cloud }: ModelCluster, startedAt: Instant): number {
  const isFirst = ({ bornAt, state }: ModelMachine) => bornAt < startedAt && state !== "Gone";
  return cloud.machines().filter(isFirst).length;
}

function firstLaunch({ cloud }: ModelCluster): Instant {
  return instant(Math.min(...cloud.machines().map(({ bornAt }) => bornAt)));
}

function podsLeft(story: NoticeTimeline | undefined): number {
  if (story === undefined || story.goneAt !== undefined) return 0;
  return story.pods.filter(({ endedAt }) => endedAt === undefined).length;
}

function isNoticed({ state }: ModelMachine): boolean {
  return state === "Noticed";
}

function departuresUnderWay({ departures }: FleetView): Pick<Pulse, "draining" | "nextAt"> {
  const planned = departures.filter((one) => isLive(one) && one.noticedAt === undefined);
  const ahead = planned.flatMap(({ status, departAt }) =>
    status.phase === "Scheduled" && departAt !== undefined ? [departAt] : [],
  );
  const waiting = planned.filter(({ status }) => isAhead(status.phase)).length;
  return {
    draining: planned.length - waiting,
    nextAt: ahead.length === 0 ? undefined : instant(Math.min(...ahead)),
  };
}

function isAhead(phase: Phase): boolean {
  return phase === "Scheduled" || phase === "Held";
}

/** The machines in service with a planned departure, the latest first. */
function lastToLeave(
  machines: readonly ModelMachine[],
  departures: readonly Departure[],
): readonly string[] {
  const atWork = new Set(
    machines.filter(({ state }) => state === "Running").map(({ name }) => name),
  );
  return departures
    .filter(({ node, status }) => status.phase === "Scheduled" && atWork.has(node.name))
    .toSorted((a, b) => (b.departAt ?? 0) - (a.departAt ?? 0))
    .map(({ node }) => node.name);
}

/**
 * Makes the cloud preempt the first machine that has pods in each fleet: otherwise there is nothing
 * to show.
 */
function preemptOne(names: readonly string[], fleets: readonly ModelCluster[]): void {
  const name = names.find((one) => fleets.every((fleet) => hasPods(fleet, one))) ?? names[0];
  for (const { cloud } of fleets) cloud.preempt(name ?? "");
}

/** Whether the node's machine runs and has pods of a workload. */
function hasPods({ cloud, api }: ModelCluster, node: string): boolean {
  const isAtWork = cloud.machines().some(({ name, state }) => name === node && state === "Running");
  const pods = [...api.context.store.collection("pods").onNode(node)];
  return isAtWork && pods.some((pod) => controllerOf(pod)?.kind !== "DaemonSet");
}

/** The condition SpotReady of each policy. */
function auditSentences(api: ModelApi): readonly string[] {
  const { body } = api.handle({ method: "GET", path: policiesPath });
  const { items } = body as { readonly items: readonly PolicyObject[] };
  return items.flatMap(({ metadata, status }) => {
    const said = status?.conditions?.find(({ type }) => type === "SpotReady");
    return said === undefined ? [] : [`${metadata.name}: ${said.message}`];
  });
}

interface PolicyObject {
  readonly metadata: { readonly name: string };
  readonly status?: {
    readonly conditions?: readonly { readonly type: string; readonly message: string }[];
  };
}
