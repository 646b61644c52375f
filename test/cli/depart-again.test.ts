import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type ModelCli, modelCli } from "../support/model-cli.ts";
import { departures, ModelWorld, nodes, spotPolicy } from "../support/model-world.ts";

let world: ModelWorld;
let cli: ModelCli;

// The model's day begins at midnight UTC, and so does the machine of each node.
beforeEach(async () => {
  world = new ModelWorld();
  for (const name of ["n1", "n2"]) world.addNode(name, "a");
  spotPolicy(world, { lifetime: { max: "24h", reserve: "30m" } });
  cli = await modelCli(world);
});

afterEach(() => cli.close());

const day = (time: string) => `2026-11-20T${time}:00.000Z`;
const timesOf = () =>
  world.list(departures).map(({ spec }) => {
    const { departAt, deadlineAt } = spec as { departAt?: string; deadlineAt?: string };
    return { departAt, deadlineAt };
  });
const depart = (...args: readonly string[]) => cli.run(["depart", "n1", ...args]);

describe("lastcall depart of a node that has been requested to leave", () => {
  beforeEach(() => depart("--at", day("10:00")));

  it("keeps its start if only a deadline is given", async () => {
    const dry = await depart("--by", day("12:00"), "--dry-run");
    expect(dry.stdout).toMatch(/ moved: n1 leaves at 2026-11-20T10:00:00.000Z, by 2026-11-20T12/);
    expect(timesOf()).toEqual([{ departAt: day("10:00"), deadlineAt: undefined }]);
    expect((await depart("--by", day("12:00"))).exit).toBe(0);
    expect(timesOf()).toEqual([{ departAt: day("10:00"), deadlineAt: day("12:00") }]);
  });

  it("keeps its deadline if only a start is given", async () => {
    await depart("--by", day("12:00"));
    await depart("--at", day("11:00"));
    expect(timesOf()).toEqual([{ departAt: day("11:00"), deadlineAt: day("12:00") }]);
  });

  it.each([
    ["is the new start", "12:00"],
    ["has passed by the new start", "13:00"],
  ])(
    "says that its deadline is dropped if it %s, in a dry run and in the answer",
    async (_, at) => {
      await depart("--by", day("12:00"));
      for (const args of [["--dry-run"], []]) {
        const { exit, stdout, stderr } = await depart("--at", day(at), ...args);
        expect(exit).toBe(0);
        expect(stdout).toMatch(/ moved: n1 leaves at \S+( \(dry run\))?\n$/);
        expect(stderr).toBe(
          "lastcall: n1 was requested to leave by 2026-11-20T12:00:00Z: that deadline is dropped, since it is over when the departure starts; to set another, add --by\n",
        );
      }
      expect(timesOf()).toEqual([{ departAt: day(at), deadlineAt: undefined }]);
    },
  );

  it.each([
    ["before its deadline", ["--at", day("11:00")]],
    ["with a deadline of its own", ["--at", day("13:00"), "--by", day("14:00")]],
  ])("says nothing of its deadline if the new start is %s", async (_, args) => {
    await depart("--by", day("12:00"));
    expect((await depart(...args)).stderr).toBe("");
  });

  it("is refused a deadline before its start, and nothing is written", async () => {
    const { exit, stdout, stderr } = await depart("n2", "--by", day("09:00"));
    expect({ exit, stdout }).toEqual({ exit: 2, stdout: "" });
    expect(stderr).toBe(
      `lastcall: Cannot use --by ${day("09:00")}: n1 has been requested to leave at ${day("10:00")}, set an earlier --at as well, or --at now\n`,
    );
    expect(timesOf()).toEqual([{ departAt: day("10:00"), deadlineAt: undefined }]);
  });

  it("starts now if that is asked for", async () => {
    await depart("--at", "now", "--by", day("09:00"));
    expect(timesOf()).toEqual([
      { departAt: expect.stringMatching(/^2026-11-20T00:00/), deadlineAt: day("09:00") },
    ]);
    await depart("--at", day("08:00"));
    await depart();
    expect(timesOf()).toMatchObject([{ departAt: expect.stringMatching(/^2026-11-20T00:00/) }]);
  });
});

describe("lastcall depart --by", () => {
  const says =
    "lastcall: n1 may not have until 2026-11-21T02:00:00Z: its deadline is 2026-11-20T23:30:00Z, and its lifetime.max by policy spot ends at 2026-11-21T00:00:00Z\n";

  it("says when the machine ends earlier, in a dry run and in the answer", async () => {
    for (const args of [["--dry-run"], []]) {
      const { exit, stdout, stderr } = await depart("--by", "2026-11-21T02:00:00Z", ...args);
      expect(exit).toBe(0);
      expect(stderr).toBe(says);
      expect(stdout).toContain(
        ", by 2026-11-21T02:00:00.000Z (its machine may end at 2026-11-21T00:00:00.000Z)",
      );
    }
  });

  it("says nothing of a deadline that the machine reaches", async () => {
    const { stdout, stderr } = await depart("--by", day("23:30"));
    expect(stderr).toBe("");
    expect(stdout).toMatch(/, by 2026-11-20T23:30:00.000Z\n$/);
  });

  it("says when the cloud takes the machine of a node that leaves already", async () => {
    const uid = world.get(`${nodes}/n1`)?.metadata?.uid ?? "";
    world.create(departures, {
      ...{ apiVersion: "lastcall.dev/v1alpha1", kind: "Departure", metadata: { name: "notice" } },
      spec: {
        ...{ node: { name: "n1", uid }, cause: "SpotInterruption", source: "cloud" },
        ...{ noticedAt: day("00:00"), deadlineAt: day("00:02") },
      },
    });
    const { stdout, stderr } = await depart("--by", "2h");
    expect(stdout).toBe(
      `departure/notice unchanged: n1 is leaving on a notice, phase Scheduled, by ${day("00:02")}\n`,
    );
    expect(stderr).toContain("n1 is already leaving (Scheduled): --by is not applied\n");
  });

  it("says when the cloud takes a machine of which nothing has started to leave", async () => {
    const uid = world.get(`${nodes}/n1`)?.metadata?.uid ?? "";
    world.create(departures, {
      ...{ apiVersion: "lastcall.dev/v1alpha1", kind: "Departure", metadata: { name: "notice" } },
      spec: {
        ...{ node: { name: "n1", uid }, cause: "ScheduledMaintenance", source: "cloud" },
        ...{ noticedAt: day("00:00"), deadlineAt: day("06:00") },
      },
    });
    world.api.handle({
      ...{ method: "PATCH", path: `${departures}/notice/status` },
      patchType: "application/merge-patch+json",
      body: { status: { phase: "Held" } },
    });
    const { stderr } = await depart("--by", day("08:00"));
    expect(stderr).toBe(
      "lastcall: n1 may not have until 2026-11-20T08:00:00Z: the cloud takes its machine at 2026-11-20T06:00:00Z\n",
    );
  });
});
