import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type CliResult, type ModelCli, modelCli } from "../support/model-cli.ts";
import { departures, ModelWorld } from "../support/model-world.ts";

let world: ModelWorld;
let cli: ModelCli;

beforeEach(async () => {
  world = new ModelWorld();
  for (const name of ["n1", "n2"]) world.addNode(name, "a");
  cli = await modelCli(world);
});

afterEach(() => cli.close());

function nameOf(node: string): string {
  return world.departureOf(node)?.metadata?.name ?? "";
}

/** As the controller writes it. */
function setStatus(node: string, status: object): void {
  const path = `${departures}/${nameOf(node)}/status`;
  const patchType = "application/merge-patch+json";
  world.api.handle({ method: "PATCH", path, patchType, body: { status } });
}

/** Waits, and does what follows each thing that is said, by the words in it. */
function depart(
  args: readonly string[],
  then: Readonly<Record<string, () => void>>,
  signal?: AbortSignal,
): Promise<CliResult> {
  const left = new Map(Object.entries(then));
  return cli.run(["depart", ...args, "--wait"], {
    ...(signal && { signal }),
    onErr: (text) => {
      for (const [said, act] of left) {
        if (!text.includes(said)) continue;
        left.delete(said);
        act();
      }
    },
  });
}

const draining = { phase: "Draining", drain: { total: 12, left: 3 } };

describe("lastcall depart --wait", () => {
  it("says that nobody leads, tells the progress, and ends with 0 as planned", async () => {
    const { exit, stdout, stderr } = await depart(["n1"], {
      "n1 Scheduled": () => setStatus("n1", draining),
      "3 of 12": () =>
        setStatus("n1", { phase: "Ended", outcome: "Planned", message: "Node n1 left as planned" }),
    });
    expect(exit).toBe(0);
    expect(stderr.split("\n")).toEqual([
      "lastcall: Nobody holds the Lease: no controller runs, or it runs without leader election",
      "lastcall: n1 Scheduled",
      "lastcall: n1 Draining, 3 of 12 pods still there",
      "lastcall: n1 Ended, Planned: Node n1 left as planned",
      "",
    ]);
    const name = nameOf("n1");
    expect(stdout).toMatch(new RegExp(`^departure/${name} created: .*\n`));
    expect(stdout).toContain(`departure/${name} ended: Planned: Node n1 left as planned\n`);
  });

  it.each([
    ["Forced", 3],
    ["Preempted", 3],
    ["Expired", 3],
    ["RolledBack", 3],
    ["Cancelled", 3],
    ["Failed", 1],
  ])("ends with the outcome %s of one of two nodes in %i", async (outcome, code) => {
    const ended = await depart(["n1", "n2", "-o", "json"], {
      "n2 Scheduled": () => {
        setStatus("n1", { phase: "Ended", outcome: "Planned" });
        setStatus("n2", { phase: "Ended", outcome });
      },
    });
    expect(ended.exit).toBe(code);
    expect(JSON.parse(ended.stdout)).toMatchObject({
      kind: "List",
      items: [{ status: { outcome: "Planned" } }, { status: { outcome } }],
    });
  });

  it("ends with 3 if the departure is deleted before it has begun", async () => {
    const { exit, stderr } = await depart(["n1"], {
      "n1 Scheduled": () => {
        world.api.handle({ method: "DELETE", path: `${departures}/${nameOf("n1")}` });
      },
    });
    expect(exit).toBe(3);
    expect(stderr).toMatch(/n1: departure n1-\w+ was deleted\n$/);
  });

  it("leaves the departure running on Ctrl-C, and says how to withdraw it", async () => {
    const over = new AbortController();
    const then = { "n1 Scheduled": () => over.abort() };
    const { exit, stderr } = await depart(["n1"], then, over.signal);
    expect(exit).toBe(130);
    expect(stderr).toMatch(
      /no longer waiting, interrupted: n1 is still to leave, .*withdraw with kubectl delete departure n1-\w+\n$/,
    );
    expect(world.list(departures)).toHaveLength(1);
  });

  it("ends with 1 after --timeout, and leaves the departures running", async () => {
    const { exit, stderr } = await depart(["n1", "n2", "--timeout", "1s"], {});
    expect(exit).toBe(1);
    expect(stderr).toMatch(
      /no longer waiting, --timeout 1s is over: n1, n2 are still to leave, .*\n$/,
    );
    expect(world.list(departures)).toHaveLength(2);
  });

  it.each([
    [["n1", "--dry-run"], "Cannot use --wait: it has no effect together with --dry-run"],
    [["n1", "--only-actions"], "Cannot use --wait: it has no effect together with --only-actions"],
  ])("refuses %j", async (args, says) => {
    const { exit, stderr } = await depart(args, {});
    expect(exit).toBe(2);
    expect(stderr).toContain(says);
  });
});

describe("lastcall depart", () => {
  it("says what a time of day was taken for, and which node has the labels", async () => {
    world.patchNode("n2", { metadata: { labels: { pool: "batch" } } });
    const args = ["depart", "-l", "pool=batch", "--at", "22:00", "--by", "06:00"];
    const { exit, stdout, stderr } = await cli.run(args);
    expect(exit).toBe(0);
    expect(stdout).toContain(
      "n2 leaves at 2026-11-20T21:00:00.000Z, by 2026-11-21T05:00:00.000Z\n",
    );
    // The model's day begins at midnight UTC, which is 01:00 in Berlin.
    expect(stderr.split("\n")).toEqual([
      "lastcall: --at is 22:00 Europe/Berlin (21:00Z), in 21h",
      "lastcall: --by is 2026-11-21 06:00 Europe/Berlin (05:00Z), in 29h",
      "",
    ]);
    expect(world.list(departures)).toHaveLength(1);
  });

  it.each([
    [2, ["n1", "--at", "tomorrow"], 'Cannot read --at: found "tomorrow", expected a time such as'],
    [2, ["n1", "--at", "22:00", "--by", "2h"], "the departure starts at 2026-11-20T21:00:00.000Z"],
    [2, ["-l", " "], "selects every node, expected labels such as pool=spot"],
    [1, ["-l", "pool=none"], "no node has the labels pool=none"],
    [2, ["n1", "-l", "pool=batch"], "expected one of the two"],
  ] as const)("exits with %i on %j and writes nothing", async (code, args, says) => {
    const { exit, stderr } = await cli.run(["depart", ...args]);
    expect(exit).toBe(code);
    expect(stderr).toContain(says);
    expect(world.list(departures)).toEqual([]);
  });
});
