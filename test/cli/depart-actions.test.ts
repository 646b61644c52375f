import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { CommandIo } from "../../src/cli/command-line/command.ts";
import { runCommandLine } from "../../src/cli/command-line/command-line.ts";
import { seededRng } from "../../src/core/chance/chance.ts";
import { realClock } from "../../src/runtime/real-clock.ts";
import { type ModelServer, serveModel } from "../../src/sim/http/serve-model.ts";
import { type ActionServer, startActionServer } from "../support/action-server.ts";
import { departures, ModelWorld, nodes, spotPolicy } from "../support/model-world.ts";

let world: ModelWorld;
let model: ModelServer;
let receiver: ActionServer;
let folder: string;

beforeEach(async () => {
  world = new ModelWorld();
  world.addNode("n0", "a");
  receiver = await startActionServer(({ path }) => ({ status: path === "/broken" ? 400 : 200 }));
  const http = (path: string) => ({
    http: { url: `${receiver.url}/${path}`, body: '{"n":"{{node}}"}' },
  });
  const mute = { ...http("mute").http, undo: { url: `${receiver.url}/unmute` } };
  const actions = [
    { name: "end", at: "AtEnd", ...http("end") },
    { name: "mute", at: "AtNotice", causes: ["SpotInterruption", "Manual"], http: mute },
    { name: "planned", at: "AtNotice", causes: ["Planned"], ...http("planned") },
  ];
  spotPolicy(world, { actions });
  model = await serveModel({ api: world.api });
  folder = await mkdtemp(join(tmpdir(), "lastcall-depart-"));
  await writeFile(join(folder, "kubeconfig"), model.kubeconfig);
});

afterEach(async () => {
  await Promise.all([model.close(), receiver.close()]);
  await rm(folder, { recursive: true });
});

/** Interrupts the command. */
let interrupt = new AbortController();

async function depart(...args: readonly string[]) {
  interrupt = new AbortController();
  let [stdout, stderr] = ["", ""];
  const io: Partial<CommandIo> = {
    out: (text) => {
      stdout += text;
    },
    err: (text) => {
      stderr += text;
    },
    env: { KUBECONFIG: join(folder, "kubeconfig"), LASTCALL_ACTION_HOSTS: receiver.host },
    ...{ isTerminal: false, colour: false, columns: 80 },
    ...{ clock: realClock, rng: seededRng(1), signal: interrupt.signal },
  };
  const exit = await runCommandLine(["depart", "n0", ...args], io as CommandIo);
  return { exit, stdout, stderr };
}

const paths = () => receiver.requests.map(({ path }) => path);

describe("lastcall depart --only-actions", () => {
  it("runs the actions of the node's policy and changes nothing else", async () => {
    const { exit, stdout, stderr } = await depart("--only-actions");
    expect(exit).toBe(0);
    expect(paths()).toEqual(["/mute", "/end"]);
    expect(receiver.requests[0]?.body).toBe('{"n":"n0"}');
    expect(stdout.replaceAll(/in \d+\.\ds/g, "in 0.0s")).toBe(
      [
        `n0 AtEnd end (http) Done in 0.0s: POST to ${receiver.host}, answered with 200`,
        `n0 AtNotice mute (http) Done in 0.0s: POST to ${receiver.host}, answered with 200`,
        "n0 AtNotice planned (http) Skipped: not for the cause Manual",
        "",
      ].join("\n"),
    );
    expect(stderr).toBe(
      `lastcall: to undo mute of n0: {"method":"POST","url":"${receiver.url}/unmute"}\n`,
    );
    expect(world.list(departures)).toEqual([]);
    expect(world.get(`${nodes}/n0`)?.spec).not.toHaveProperty("unschedulable");
  });

  it("prints what has ended when it is interrupted", async () => {
    receiver.override = (response, { path }) => {
      if (path === "/mute") response.end();
      else interrupt.abort(new Error("stop"));
    };
    const { exit, stdout } = await depart("--only-actions");
    expect(exit).toBe(130);
    expect(stdout).toMatch(/^n0 AtNotice mute \(http\) Done in /m);
    expect(stdout).toContain(
      "n0 AtEnd end (http) Running: interrupted, whether it was carried out",
    );
  });

  it("sends nothing with --dry-run, and says what it would send", async () => {
    const { exit, stdout } = await depart("--only-actions", "--dry-run", "-o", "json");
    expect(exit).toBe(0);
    expect(paths()).toEqual([]);
    const { kind, items } = JSON.parse(stdout) as { kind: string; items: { actions: object[] }[] };
    expect(kind).toBe("ActionReport");
    expect(items[0]?.actions).toMatchObject([
      { name: "end", state: "Pending", detail: expect.stringContaining('{\\"n\\":\\"n0\\"}') },
      { name: "mute", state: "Pending", undo: { url: `${receiver.url}/unmute` } },
      { name: "planned", state: "Skipped" },
    ]);
  });

  it("shows with --dry-run what it would need to undo each action", async () => {
    const { stdout } = await depart("--only-actions", "--dry-run");
    expect(paths()).toEqual([]);
    expect(stdout).toMatch(
      /^n0 AtNotice mute \(http\) Pending: \{.*\}, to undo it: \{"method":"POST","url":".*unmute"\} \(dry run\)$/m,
    );
    expect(stdout).toMatch(/^n0 AtEnd end \(http\) Pending: \{.*\} \(dry run\)$/m);
  });

  it("sends nothing for a policy that has dryRun set", async () => {
    world.patchPolicy({ spec: { dryRun: true } });
    const { exit, stdout } = await depart("--only-actions");
    expect(exit).toBe(0);
    expect(paths()).toEqual([]);
    expect(stdout).toContain("n0 AtNotice mute (http) Skipped: the policy has dryRun set");
  });

  it("selects actions by --cause, which needs --only-actions", async () => {
    await depart("--only-actions", "--cause", "Planned");
    expect(paths()).toEqual(["/planned", "/end"]);
    const { exit, stderr } = await depart("--cause", "Planned");
    expect([exit, stderr]).toEqual([
      2,
      "lastcall: Cannot use --cause: it chooses among actions, add --only-actions\n",
    ]);
  });

  it("rejects an unknown cause", async () => {
    const { exit, stderr } = await depart("--only-actions", "--cause", "Spot");
    expect(exit).toBe(2);
    expect(stderr).toContain('Cannot use --cause "Spot": expected one of Planned, Manual');
    expect(paths()).toEqual([]);
  });

  it("reports a forbidden host in a dry run, and exits with 1 if an action fails", async () => {
    const forbidden = await depart("--only-actions", "--dry-run", "--action-hosts", "a.example");
    expect(forbidden.stdout).toContain("end (http) Failed ACTION_HOST_FORBIDDEN: http.url: found");
    expect(forbidden.exit).toBe(1);
    world.patchPolicy({
      spec: { actions: [{ name: "bad", at: "AtEnd", http: { url: `${receiver.url}/broken` } }] },
    });
    const { exit, stdout } = await depart("--only-actions");
    expect(exit).toBe(1);
    expect(stdout).toMatch(/^n0 AtEnd bad \(http\) Failed ACTION_REFUSED in /);
  });

  it.each([
    ["deregisterTargets", {}],
    ["replaceSecurityGroups", { groupIds: ["sg-0abc"] }],
    ["detach", {}],
  ])(
    "reports for %s that a machine is not on EC2, with --dry-run as without it",
    async (kind, how) => {
      world.patchPolicy({ spec: { actions: [{ name: "out", at: "AtNotice", [kind]: how }] } });
      const told = `n0 AtNotice out (${kind}) Failed ACTION_REFUSED: Cannot act on n0 in AWS: its providerID is gce://`;
      const dry = await depart("--only-actions", "--dry-run");
      expect(dry.stdout).toContain(told);
      expect(dry.exit).toBe(1);
      const { stdout } = await depart("--only-actions");
      expect(stdout.replace(/ in \d+\.\ds/, "")).toContain(told);
    },
  );

  it.each([
    ["--at", "2030-01-01T00:00:00Z"],
    ["--by", "2030-01-01T00:00:00Z"],
  ])("rejects %s, since the actions run now", async (flag, at) => {
    const { exit, stderr } = await depart("--only-actions", flag, at);
    expect(exit).toBe(2);
    expect(stderr).toContain(`Cannot use ${flag} with --only-actions`);
  });
});
