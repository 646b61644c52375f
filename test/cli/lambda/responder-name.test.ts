import { describe, expect, it } from "vitest";
import { Responder } from "../../../src/cli/lambda/responder.ts";
import { seededRng } from "../../../src/core/chance/chance.ts";
import type { Action, ActionSpec } from "../../../src/core/policy/action.ts";
import { seconds } from "../../../src/core/time/time.ts";
import { FakeActionRunner } from "../../support/fake-action-runner.ts";
import { ManualClock } from "../../support/manual-clock.ts";

const never = new AbortController().signal;
const instanceId = "i-0123456789abcdef0";
const topicArn = "arn:aws:sns:eu-west-1:123456789012:spot";

function action(name: string, at: Action["at"], how: ActionSpec): Action {
  return { name, at, how, timeoutMs: seconds(30), retries: 0, required: false };
}

/** A responder whose lookup of the Node's name ends as the test decides. */
function stage(nodeName: () => Promise<string | undefined>) {
  const clock = new ManualClock();
  const runner = new FakeActionRunner("Message");
  const warned: string[] = [];
  const responder = new Responder({
    actions: [
      action("targets", "AtNotice", { kind: "deregisterTargets", wait: true }),
      action("quarantine", "AtNotice", { kind: "replaceSecurityGroups", groupIds: ["sg-0abc"] }),
      action("detach", "AtNotice", { kind: "detach", decrementDesiredCapacity: false }),
      action("tell", "AtNotice", {
        ...{ kind: "sns", topicArn, subject: "{{node}}", message: "{{summary}}" },
      }),
    ],
    runners: (async () => runner) as never,
    lookUp: { nodeName, addresses: async () => [] },
    ...{ clock, rng: seededRng(1) },
    log: { debug() {}, info() {}, warn: (event) => warned.push(event), error() {} },
  });
  const answered = responder.respond(
    {
      ...{ instanceId, region: undefined, cause: "SpotInterruption", noticedAt: clock.now() },
      ...{ byEvent: false, problems: [] },
    },
    { endsAt: undefined, signal: never },
  );
  const applied = () => runner.calls.filter((call) => call.startsWith("apply"));
  const subject = () => runner.tasks.flatMap(({ how }) => (how.kind === "sns" ? how.subject : []));
  return { clock, answered, applied, subject, warned };
}

const byInstance = ["apply targets", "apply quarantine", "apply detach"];

describe("the Lambda responder without a node name", () => {
  it("acts on the instance ID at once, and announces the ID if no name comes in 10 s", async () => {
    const { clock, answered, applied, subject, warned } = stage(() => new Promise(() => {}));
    await clock.advance(0);
    expect(applied()).toEqual(byInstance);
    await clock.advance(9_999);
    expect(applied()).toEqual(byInstance);
    await clock.advance(1);
    const { summary, actions } = await answered;
    expect(actions.map(({ state }) => state)).toEqual(["Done", "Done", "Done", "Done"]);
    expect(subject().at(-1)).toBe(instanceId);
    expect(summary).toContain(`${instanceId} leaves: SpotInterruption`);
    expect(warned).toEqual(["node-unknown"]);
  });

  it.each([
    ["fails", () => Promise.reject(new Error("denied")), instanceId, ["node-unknown"]],
    ["finds no instance", async () => undefined, instanceId, []],
    ["finds its name", async () => "ip-10-0-1-7", "ip-10-0-1-7", []],
  ])("waits no longer if the lookup %s", async (_, nodeName, name, expected) => {
    const { clock, answered, subject, warned } = stage(nodeName);
    await clock.advance(0);
    expect((await answered).summary).toContain(`${name} leaves`);
    expect(subject().at(-1)).toBe(name);
    expect(warned).toEqual(expected);
  });
});
