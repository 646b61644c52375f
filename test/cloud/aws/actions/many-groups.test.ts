import { expect, it } from "vitest";
import { TargetRunner } from "../../../../src/cloud/aws/actions/deregister-targets.ts";
import { TargetIndex } from "../../../../src/cloud/aws/actions/target-index.ts";
import type {
  ReadingListener,
  RegisterEnd,
  Registered,
  TrafficGroup,
  TrafficGroups,
} from "../../../../src/cloud/aws/actions/traffic-groups.ts";
import { type ActionEnd, carryOut } from "../../../../src/controller/action/action-attempt.ts";
import { seededRng } from "../../../../src/core/chance/chance.ts";
import type { Fields } from "../../../../src/core/json/json-field.ts";
import { millis, minutes, seconds } from "../../../../src/core/time/time.ts";
import { aTask } from "../../../contract/action-runner.contract.ts";
import { ManualClock } from "../../../support/manual-clock.ts";

const never = new AbortController().signal;
const instanceId = "i-00000000000000001";

/** A region whose groups are slow to read, since AWS throttles many requests. */
class SlowGroups implements TrafficGroups {
  readonly kind = "TargetGroup";
  readonly clock: ManualClock;
  readonly names: readonly string[];
  /** The groups that hold the machine. */
  readonly holding: ReadonlySet<string>;
  readonly left: { readonly name: string; readonly atMs: number }[] = [];
  isListed = true;

  constructor(clock: ManualClock, count: number, holding: readonly number[]) {
    this.clock = clock;
    this.names = Array.from({ length: count }, (_, place) => `group-${place}`);
    this.holding = new Set(holding.map((place) => `group-${place}`));
  }

  async read({ onListed, onRead }: ReadingListener): Promise<readonly Registered[]> {
    if (!this.isListed) await this.clock.sleep(minutes(60));
    onListed?.(this.names.length);
    const read: Registered[] = [];
    for (const id of this.names) {
      await this.clock.sleep(millis(100));
      const group: TrafficGroup = { kind: this.kind, id, byAddress: false, isOwned: false };
      const targets = this.holding.has(id) ? [{ id: instanceId, port: 80 }] : [];
      read.push({ group, targets });
      onRead?.({ group, targets });
    }
    return read;
  }

  async deregister(name: string): Promise<void> {
    this.left.push({ name, atMs: this.clock.monotonic() });
  }

  async register(): Promise<RegisterEnd> {
    return "Registered";
  }

  async remaining(): Promise<readonly []> {
    return [];
  }
}

/** Deregisters the machine; returns the outcome, its duration and the recorded undo data. */
async function takeOut(
  groups: SlowGroups,
  clock: ManualClock,
): Promise<{ readonly end: ActionEnd; readonly ms: number; readonly undo: Fields | undefined }> {
  const network = { interfacesOf: async () => [], instance: async () => undefined };
  const index = new TargetIndex({
    ...{ kinds: [groups], network, machines: () => [] },
    ...{ believedMs: minutes(5), clock, rng: seededRng(1) },
  });
  const traffic = { index, kinds: [groups], instances: network };
  const runner = new TargetRunner({ trafficIn: () => traffic, clock, rng: seededRng(1) });
  const { endsAt: _, ...task } = aTask({ kind: "deregisterTargets", wait: false });
  const target = { ...task.target, providerID: `aws:///eu-west-1a/${instanceId}` };
  const action = { name: "targets", at: "AtNotice", how: task.how, required: false } as const;
  const state: { end?: ActionEnd; undo?: Fields } = {};
  const ended = carryOut(
    // A policy's defaults.
    { ...action, timeoutMs: seconds(10), retries: 3 },
    { ...task, target },
    {
      ...{ clock, rng: seededRng(1), runner: runner as never, signal: never },
      deadlineAt: () => undefined,
      keep: async (undo) => {
        state.undo = undo;
      },
    },
  ).then((end) => {
    state.end = end;
  });
  while (state.end === undefined) await clock.advance(100);
  await ended;
  return { end: state.end, ms: clock.monotonic(), undo: state.undo };
}

it("a machine leaves each of 300 groups once it is read, over several attempts", async () => {
  const clock = new ManualClock();
  const groups = new SlowGroups(clock, 300, [10, 60, 299]);
  const { end, undo } = await takeOut(groups, clock);
  expect(end).toMatchObject({ kind: "Done", done: { detail: "deregistered from 3 groups" } });
  expect(groups.left.map(({ name }) => name)).toEqual(["group-10", "group-60", "group-299"]);
  const readAtMs = [1_100, 6_100, 30_000];
  for (const [place, { atMs }] of groups.left.entries()) {
    expect(atMs - (readAtMs[place] ?? 0)).toBeGreaterThanOrEqual(0);
    expect(atMs - (readAtMs[place] ?? 0)).toBeLessThanOrEqual(2000);
  }
  expect(undo).toMatchObject({ targets: [{}, {}, {}] });
});

it("a machine in too many groups to read leaves those that are read, and counts them", async () => {
  const clock = new ManualClock();
  const groups = new SlowGroups(clock, 2000, [10, 60, 1999]);
  const { end, ms } = await takeOut(groups, clock);
  expect(end).toMatchObject({ kind: "Failed", code: "ACTION_TIMEOUT", attempts: 4 });
  const [, read] = /: (\d+) of 2000 were read, set a longer timeout for the action/.exec(
    (end as { detail: string }).detail,
  ) ?? ["", ""];
  expect(Number(read)).toBeGreaterThan(350);
  expect(groups.left.map(({ name }) => name)).toEqual(["group-10", "group-60"]);
  expect(ms).toBeLessThan(seconds(60));
});

it("a longer timeout is not suggested if the groups were not even listed", async () => {
  const clock = new ManualClock();
  const groups = new SlowGroups(clock, 3, [1]);
  groups.isListed = false;
  const { end } = await takeOut(groups, clock);
  expect(end).toMatchObject({
    ...{ kind: "Failed", code: "ACTION_TIMEOUT" },
    detail: expect.stringMatching(/has not listed them yet$/),
  });
});
