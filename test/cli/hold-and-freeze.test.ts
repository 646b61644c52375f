import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type ModelCli, modelCli } from "../support/model-cli.ts";
import { departures, ModelWorld, nodes, policies, spotPolicy } from "../support/model-world.ts";

let world: ModelWorld;
let cli: ModelCli;

// The model's day begins at midnight UTC, which is 01:00 in Berlin.
beforeEach(async () => {
  world = new ModelWorld();
  for (const name of ["n1", "n2"]) world.addNode(name, "a");
  spotPolicy(world, { lifetime: { max: "24h" } });
  cli = await modelCli(world);
});

afterEach(() => cli.close());

const annotationsOf = (name: string) => world.get(`${nodes}/${name}`)?.metadata?.annotations ?? {};
const freezeOf = (name: string): unknown => {
  const { gates } = (world.get(`${policies}/${name}`)?.spec ?? {}) as {
    gates?: { freezeUntil?: string };
  };
  return gates?.freezeUntil;
};

describe("lastcall hold", () => {
  it("holds nodes until a time of this computer's zone, which it says back", async () => {
    const { exit, stdout, stderr } = await cli.run(["hold", "n1", "--until", "22:00"]);
    expect({ exit, stdout }).toEqual({
      exit: 0,
      stdout: "n1 is on hold until 2026-11-20T21:00:00Z\n",
    });
    expect(stderr).toMatch(/^lastcall: until 22:00 Europe\/Berlin \(21:00Z\), in 21h\n/);
    expect(stderr).toContain("lastcall: A notice from the cloud still drains a node on hold\n");
    expect(annotationsOf("n1")["lastcall.dev/hold"]).toBe("2026-11-20T21:00:00Z");
  });

  it("warns of the deadline that ends the hold all the same", async () => {
    const { stderr } = await cli.run(["hold", "n1", "--for", "30h", "--dry-run"]);
    expect(stderr).toContain("n1 leaves at its deadline 2026-11-20T23:30:00Z even so");
    expect((await cli.run(["hold", "n1", "--dry-run"])).stderr).toContain(
      "The lifetime.max of n1 by policy spot ends at 2026-11-21T00:00:00Z even so",
    );
    expect(annotationsOf("n1")["lastcall.dev/hold"]).toBeUndefined();
  });

  it("chooses nodes by labels, and removes the holds of those that have one", async () => {
    world.patchNode("n2", { metadata: { labels: { pool: "batch" } } });
    const held = await cli.run(["hold", "-l", "pool=batch"]);
    expect(held.stdout).toMatch(/^n2 has no planned departure while .*lastcall\.dev\/hold\n$/);
    const { exit, stdout, stderr } = await cli.run(["hold", "n1", "n2", "--undo"]);
    expect({ exit, stdout }).toEqual({
      exit: 0,
      stdout: "n2 is planned again like any other node\n",
    });
    expect(stderr).toBe("lastcall: n1 has no lastcall.dev/hold to remove\n");
    expect(annotationsOf("n2")["lastcall.dev/hold"]).toBeUndefined();
  });

  it.each([
    [2, [], "no argument was given, expected NODE… or -l SELECTOR"],
    [2, ["n1", "-l", "a=b"], "found n1 and -l a=b, expected one of the two"],
    [2, ["-l", " , "], "selects every node, expected labels such as pool=spot"],
    [1, ["-l", "pool=none"], "no node has the labels pool=none"],
    [1, ["n1", "n11"], "there is no such node"],
    [2, ["n1", "--for", "4 hours"], 'found "4 hours" (4h?), expected a duration'],
    [2, ["n1", "--for", "4h", "--until", "22:00"], "remove one of the two"],
    [2, ["n1", "--until", "2020-01-01T00:00:00Z"], "it is in the past"],
  ] as const)("exits with %i on %j and writes nothing", async (code, args, says) => {
    const { exit, stdout, stderr } = await cli.run(["hold", ...args]);
    expect({ exit, stdout }).toEqual({ exit: code, stdout: "" });
    expect(stderr).toContain(says);
    expect(annotationsOf("n1")["lastcall.dev/hold"]).toBeUndefined();
  });

  it.each([
    ["hold", []],
    ["depart", []],
    ["depart", ["--only-actions"]],
    ["drain-plan", []],
  ])(
    "like lastcall %s %j, says that a node has left and its name is not taken yet",
    async (...row) => {
      const [command, options] = row;
      const was = (name: string, uid: string, createdAt: string) =>
        world.create(departures, {
          ...{ apiVersion: "lastcall.dev/v1alpha1", kind: "Departure" },
          metadata: { name, creationTimestamp: createdAt },
          spec: { node: { name: "n3", uid }, cause: "Planned", source: "plan" },
        });
      was("n3-00000002", "u2", "2026-11-19T12:00:00Z");
      was("n3-00000001", "u1", "2026-11-18T12:00:00Z");
      const { exit, stdout, stderr } = await cli.run([command, "n3", ...options]);
      expect({ exit, stdout }).toEqual({ exit: 1, stdout: "" });
      expect(stderr).toMatch(
        /there is no such node( among 2 nodes)? now, it has left with the departure n3-0/,
      );
      expect(stderr).not.toContain("did you mean");
    },
  );

  it("prints data with -o json", async () => {
    const { stdout } = await cli.run(["hold", "n1", "-o", "json", "--dry-run"]);
    expect(JSON.parse(stdout)).toMatchObject({
      ...{ kind: "ActReport", dryRun: true },
      items: [
        {
          target: "node/n1",
          says: [
            expect.stringContaining("no planned departure"),
            expect.anything(),
            expect.anything(),
          ],
        },
      ],
    });
  });
});

describe("lastcall freeze", () => {
  beforeEach(() => {
    spotPolicy(world, { nodeSelector: { nodeSelectorTerms: [] } }, "other");
  });

  it("freezes every policy, and says which nodes leave all the same", async () => {
    const { exit, stdout, stderr } = await cli.run(["freeze", "--all", "--for", "24h"]);
    expect(exit).toBe(0);
    expect(stdout.split("\n")).toEqual([
      expect.stringMatching(/^No planned departure of policy other starts before 2026-11-21T/),
      expect.stringMatching(/^No planned departure of policy spot starts before 2026-11-21T/),
      "",
    ]);
    expect(stderr).toContain(
      "2 nodes leave at their deadlines even so, the first at 2026-11-20T23:30:00Z: n1",
    );
    for (const name of ["spot", "other"]) {
      expect(freezeOf(name)).toMatch(/^2026-11-21T00:00:\d\d\.000Z$/);
    }
    expect((await cli.run(["freeze", "--policy", "spot", "--undo"])).stdout).toBe(
      "Planned departures of policy spot may start again\n",
    );
    expect([freezeOf("spot"), freezeOf("other")]).toEqual([undefined, expect.any(String)]);
    const again = await cli.run(["freeze", "--all", "--undo"]);
    expect(again.stderr).toBe("lastcall: Policy spot is not frozen\n");
    expect(freezeOf("other")).toBeUndefined();
  });

  it("counts no node that is on hold for good, or in a dry run, among those that leave", async () => {
    const says = async () => (await cli.run(["freeze", "--all", "--for", "24h"])).stderr;
    world.patchNode("n1", { metadata: { annotations: { "lastcall.dev/hold": "true" } } });
    expect(await says()).toMatch(/n2 leaves at its deadline \S+ even so/);
    world.patchPolicy({ spec: { dryRun: true } });
    expect(await says()).not.toContain("even so");
  });

  it("leaves a policy that cannot be read, and says so", async () => {
    spotPolicy(world, { lifetime: { max: "1d" } }, "bad");
    const { exit, stderr } = await cli.run(["freeze", "--all", "--until", "2h"]);
    expect(exit).toBe(0);
    expect(stderr).toContain("Policy bad cannot be read");
    expect(freezeOf("spot")).toMatch(/^2026-11-20T02:00:\d\d\.000Z$/);
    expect(freezeOf("bad")).toBeUndefined();
  });

  it.each([
    [2, ["--until", "22:00"], "no policy was given, expected --policy NAME or --all"],
    [2, ["--all"], "no end was given, expected --until TIME, --for DURATION or --undo"],
    [2, ["--all", "--policy", "spot", "--undo"], "remove one of the two"],
    [1, ["--policy", "spott", "--for", "1h"], "there is no policy spott (did you mean spot?)"],
  ] as const)("exits with %i on %j and writes nothing", async (code, args, says) => {
    const { exit, stdout, stderr } = await cli.run(["freeze", ...args]);
    expect({ exit, stdout }).toEqual({ exit: code, stdout: "" });
    expect(stderr).toContain(says);
    expect(freezeOf("spot")).toBeUndefined();
  });
});
