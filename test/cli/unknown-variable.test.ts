import { spawnSync } from "node:child_process";
import { expect, it } from "vitest";
import type { CommandIo } from "../../src/cli/command-line/command.ts";
import { runCommandLine } from "../../src/cli/command-line/command-line.ts";
import { createResponder } from "../../src/cli/lambda/create-responder.ts";
import { seededRng } from "../../src/core/chance/chance.ts";
import { realClock } from "../../src/runtime/real-clock.ts";

const sentence =
  "The environment variable LASTCALL_OUPUT is unknown and does nothing (did you mean LASTCALL_OUTPUT?)";

async function type(words: readonly string[], env: CommandIo["env"]) {
  const err: string[] = [];
  const io = {
    ...{ out: () => {}, err: (text: string) => void err.push(text), env },
    ...{ clock: realClock, signal: new AbortController().signal },
    files: { readText: () => Promise.reject(new Error("no such file")) },
  } as unknown as CommandIo;
  await runCommandLine(words, io);
  return err.join("");
}

it("a command names a misspelt variable", async () => {
  expect(await type(["version"], { LASTCALL_OUPUT: "json" })).toBe(`lastcall: ${sentence}\n`);
});

it("a command does not name it with --quiet", async () => {
  expect(await type(["version", "-q"], { LASTCALL_OUPUT: "json" })).toBe("");
});

it("a command names it beside the mistake that it may have caused", async () => {
  expect((await type(["agent"], { LASTCALL_NODENAME: "n1" })).split("\n")).toEqual([
    "lastcall: The environment variable LASTCALL_NODENAME is unknown and does nothing (did you mean LASTCALL_NODE_NAME?)",
    "lastcall: Cannot run lastcall agent: --node-name is required, set it or LASTCALL_NODE_NAME",
    "",
  ]);
});

it.each(["run", "agent --node-name n1"])("%s logs it before all else", async (line) => {
  const flags = ["--kubeconfig", "none"];
  const [first = ""] = (await type([...line.split(" "), ...flags], { LASTCALL_OUPUT: "x" })).split(
    "\n",
  );
  const logged = { level: "warn", event: "variable-unknown", problem: sentence };
  expect(JSON.parse(first)).toMatchObject(logged);
});

it("the entry point of the agent's image names it beside the mistake, too", () => {
  const entry = new URL("../../src/cli/agent-main.ts", import.meta.url).pathname;
  const env = { PATH: process.env.PATH, LASTCALL_NODENAME: "n1" };
  const { status, stderr } = spawnSync(process.execPath, [entry], { env, encoding: "utf8" });
  expect(status).toBe(2);
  expect(stderr.split("\n")).toEqual([
    "lastcall agent: The environment variable LASTCALL_NODENAME is unknown and does nothing (did you mean LASTCALL_NODE_NAME?)",
    "lastcall agent: Cannot run lastcall agent: --node-name is required, set it or LASTCALL_NODE_NAME",
    "",
  ]);
});

it("the Lambda responder logs it, and no variable that it reads", () => {
  const told: unknown[] = [];
  const warn = (event: string, fields: unknown) => void told.push([event, fields]);
  const log = { debug: () => {}, info: () => {}, warn, error: () => {} };
  const env = {
    ...{ LASTCALL_ACTIONS: "[]", LASTCALL_ACTION_HOST: "slack.com", LASTCALL_ACTION_HOSTS: "a" },
    ...{ LASTCALL_SECRET_SLACK_TOKEN: "x", LASTCALL_SECRETS: "{}", LASTCALL_AWS_MANAGED_TAG: "a" },
    ...{ LASTCALL_EVENT_FIELDS: "instanceId=id" },
  };
  createResponder({ env, clock: realClock, rng: seededRng(1), log });
  const problem =
    "The environment variable LASTCALL_ACTION_HOST is unknown and does nothing (did you mean LASTCALL_ACTION_HOSTS?)";
  expect(told).toEqual([["variable-unknown", { problem }]]);
});
