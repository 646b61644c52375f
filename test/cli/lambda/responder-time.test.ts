import { describe, expect, it } from "vitest";
import { Responder } from "../../../src/cli/lambda/responder.ts";
import { seededRng } from "../../../src/core/chance/chance.ts";
import type { Action, ActionSpec } from "../../../src/core/policy/action.ts";
import { type Millis, minutes, plus, seconds } from "../../../src/core/time/time.ts";
import { FakeActionRunner } from "../../support/fake-action-runner.ts";
import { ManualClock } from "../../support/manual-clock.ts";

const never = new AbortController().signal;
const instanceId = "i-0123456789abcdef0";
const topicArn = "arn:aws:sns:eu-west-1:123456789012:spot";

function action(name: string, at: Action["at"], how: ActionSpec): Action {
  return { name, at, how, timeoutMs: seconds(60), retries: 3, required: false };
}

const sns = { kind: "sns", topicArn, subject: "{{node}}", message: "{{summary}}" } as const;

/** A responder for which Elastic Load Balancing does not respond and EC2 returns no name. */
function stage({ leftMs, noticeMs }: { readonly leftMs: Millis; readonly noticeMs: Millis }) {
  const clock = new ManualClock();
  const [targets, topic] = [new FakeActionRunner(), new FakeActionRunner("Message")];
  targets.latency = (signal) => clock.sleep(minutes(60), signal);
  const responder = new Responder({
    actions: [
      action("targets", "AtNotice", { kind: "deregisterTargets", wait: true }),
      action("tell", "AtEnd", sns),
    ],
    runners: (async (kind: string) => (kind === "sns" ? topic : targets)) as never,
    lookUp: { nodeName: () => new Promise(() => {}), addresses: async () => [] },
    ...{ clock, rng: seededRng(1) },
    log: { debug() {}, info() {}, warn() {}, error() {} },
  });
  const now = clock.now();
  const machine = {
    instanceId,
    region: undefined,
    cause: "SpotInterruption",
    noticedAt: now,
    byEvent: false,
    problems: [],
  } as const;
  const answered = responder.respond(
    { ...machine, deadlineAt: plus(now, noticeMs) },
    { endsAt: plus(now, leftMs), signal: never },
  );
  return { clock, answered, topic };
}

describe("the Lambda responder when an action takes all the time", () => {
  it.each([
    ["a minute and a half", seconds(90), seconds(85)],
    ["Lambda's own three seconds", seconds(1), seconds(0.6)],
  ])("reserves enough of %s to announce the result", async (_, leftMs, byMs) => {
    const { clock, answered, topic } = stage({ leftMs, noticeMs: seconds(120) });
    await clock.advance(byMs + seconds(0.1));
    expect(topic.calls).toContain("apply tell");
    expect(topic.tasks.at(-1)?.how).toMatchObject({
      message: expect.stringMatching(
        /targets \(deregisterTargets\) Failed \(ACTION_DEADLINE\).*the function ran out of time, set a longer timeout/,
      ),
    });
    const { actions } = await answered;
    expect(actions.map(({ name, state }) => `${name} ${state}`)).toEqual([
      ...["targets Failed", "tell Done"],
    ]);
  });

  it("names the departure's deadline if that passes first", async () => {
    const { clock, answered } = stage({ leftMs: seconds(108), noticeMs: seconds(20) });
    await clock.advance(seconds(21));
    const { actions } = await answered;
    expect(actions[0]).toMatchObject({
      result: "ACTION_DEADLINE",
      detail: expect.stringContaining("the deadline of the departure has passed"),
    });
  });
});
