import { createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { ActionKind } from "../../src/core/policy/action.ts";
import { actionRunnerContract, aTask } from "../contract/action-runner.contract.ts";
import {
  cloudEvents,
  message,
  slackBot,
  slackWebhook,
  teams,
  teamsConnector,
  telegram,
  tooFast,
  undelivered,
} from "./message-receivers.ts";
import { type Receiver, secret, sinkWorld } from "./sink-world.ts";

const signal = new AbortController().signal;
actionRunnerContract("the slack action of a bot", () => sinkWorld(slackBot()));
actionRunnerContract("the slack action with a webhook", () => sinkWorld(slackWebhook));

it("asks for the channel if the secret of a slack action is a bot's token", async () => {
  const world = await sinkWorld({ ...slackWebhook, secret: () => "xoxb-1-2" });
  const problem = await world.runner.check(world.how, new AbortController().signal);
  expect(problem).toEqual({
    ...{ code: "SECRET_MISSING", field: "slack.secretRef" },
    found: "Secret lastcall-actions, key token: no http or https address",
    wanted: "the address of an incoming webhook, or for a bot's token the field slack.channel, too",
  });
  await world.close();
});
actionRunnerContract("the teams action", () => sinkWorld(teams));
actionRunnerContract("the teams action with a connector", () => sinkWorld(teamsConnector));
actionRunnerContract("the telegram action", () => sinkWorld(telegram));
actionRunnerContract("the cloudEvents action", () => sinkWorld(cloudEvents));

async function sent<Kind extends ActionKind>(
  receiver: Receiver<Kind>,
  earlier: { readonly kind: ActionKind; readonly reference: string }[] = [],
) {
  const world = await sinkWorld(receiver);
  try {
    const named = earlier.map((one) => ({ name: "first", ...one }));
    const task = aTask(world.how, { earlier: named });
    const done = await world.runner.apply({ ...task, undo: undefined }, signal);
    const request = world.requests[0];
    return { done, request, body: JSON.parse(request?.body ?? "{}") as Record<string, unknown> };
  } finally {
    await world.close();
  }
}

describe("a message", () => {
  it("of Slack's bot starts a thread, and a later one in the same channel replies to it", async () => {
    const first = await sent(slackBot());
    expect(first.body).toEqual({ channel: "C012", text: message });
    expect(first.done.reference).toBe("C012/1700000000.000001");
    const later = await sent(slackBot(), [
      { kind: "telegram", reference: "C012/7" },
      { kind: "slack", reference: "C999/1.1" },
      { kind: "slack", reference: "C012/1.2" },
      { kind: "slack", reference: "C012/1.3" },
    ]);
    expect(later.body).toMatchObject({ thread_ts: "1.2" });
  });

  it.each([
    ["channel_not_found", "ACTION_TARGET_UNKNOWN", false],
    ["not_in_channel", "ACTION_TARGET_UNKNOWN", false],
    ["missing_scope", "ACTION_RIGHT_MISSING", false],
    ["token_revoked", "ACTION_RIGHT_MISSING", false],
    ["ratelimited", "ACTION_RATE_LIMITED", true],
    ["internal_error", "ACTION_UNREACHABLE", true],
    ["msg_too_long", "ACTION_REFUSED", false],
  ])(
    "that Slack rejects with %s is %s, although its status is 200",
    async (error, code, retryable) => {
      await expect(sent(slackBot(error))).rejects.toMatchObject({ code, retryable });
    },
  );

  it("of Teams is a card that keeps its lines", async () => {
    const { body } = await sent(teams);
    expect(body).toMatchObject({
      type: "message",
      attachments: [
        {
          contentType: "application/vnd.microsoft.card.adaptive",
          content: {
            type: "AdaptiveCard",
            body: [{ text: "n1 SpotInterruption" }, { text: "n1 leaves\n\n12:00 cordoned" }],
          },
        },
      ],
    });
  });

  it("of Telegram replies to the first one", async () => {
    const { body, done } = await sent(telegram, [{ kind: "telegram", reference: "-1001/41" }]);
    expect(body).toMatchObject({ chat_id: "-1001", reply_parameters: { message_id: 41 } });
    expect(done.reference).toBe("-1001/42");
  });

  const steps = Array.from({ length: 3000 }, (_, place) => `12:00 pod ${place} of größe "L" left`);
  const long = ["n1 leaves", ...steps, "pods: 3000 in all"].join("\n");
  const lengthOf = (text: string) => text.length;

  it.each([
    ["Slack's bot", slackBot(), /"text":(".*")}$/, lengthOf, 40_000],
    ["Slack's webhook", slackWebhook, /"text":(".*")}$/, lengthOf, 40_000],
    ["Telegram", telegram, /"text":(".*")}$/, lengthOf, 4096],
    ["Teams", teams, /"text":("n1 leaves.*"),"wrap"/, undefined, 20_000],
    ["Teams' connector", teamsConnector, /"text":("n1 leaves.*"),"wrap"/, undefined, 20_000],
    ["a CloudEvents receiver", cloudEvents, /"message":(".*")}}$/, undefined, 64 * 1024],
  ] as const)(
    "of %s is as long as the receiver allows, and says how much is left out",
    async (_, receiver, field, sizeOf, most) => {
      const { how } = receiver as Receiver<"telegram">;
      const given = { ...receiver, how: (url: string) => ({ ...how(url), message: long }) };
      const { request } = await sent(given as unknown as Receiver<ActionKind>);
      const text = String(JSON.parse(field.exec(request?.body ?? "")?.[1] ?? '""'));
      const size = sizeOf?.(text) ?? Buffer.byteLength(request?.body ?? "");
      expect(size).toBeLessThanOrEqual(most);
      expect(size).toBeGreaterThan(most - 200);
      const lines = text.split(/\n+/);
      expect([lines[0], lines.at(-1)]).toEqual(["n1 leaves", "pods: 3000 in all"]);
      const left = Number(/^… and (\d+) more lines$/.exec(lines.at(-2) ?? "")?.[1]);
      expect(lines.length - 3 + left).toBe(3000);
    },
  );

  it.each([413, 500])(
    "that Teams' connector did not deliver, by %i, has failed, although its status is 200",
    async (status) => {
      const reply = () => ({ status: 200, body: undelivered(status) });
      await expect(sent({ ...teamsConnector, reply })).rejects.toThrow(`found status ${status}`);
    },
  );

  it.each([
    ["Slack's bot", slackBot(), tooFast.slack, 30_000],
    ["Slack's webhook", slackWebhook, tooFast.slack, 30_000],
    ["Telegram", telegram, tooFast.telegram, 30_000],
    ["Teams", teams, tooFast.teams, 30_000],
    ["Teams' connector", teamsConnector, tooFast.teamsConnector, undefined],
  ] as const)(
    "that %s receives too fast is sent again when it says",
    async (_, receiver, answer, retryAfterMs) => {
      const refusing = { ...receiver, reply: () => answer } as unknown as Receiver<ActionKind>;
      const fault = { code: "ACTION_RATE_LIMITED", retryable: true, retryAfterMs };
      await expect(sent(refusing)).rejects.toMatchObject(fault);
    },
  );

  it("as a CloudEvent has the required attributes, and a signature of Standard Webhooks", async () => {
    const { body, request } = await sent(cloudEvents);
    expect(request?.headers["content-type"]).toMatch(/^application\/cloudevents\+json/);
    expect(body).toEqual({
      specversion: "1.0",
      id: "2b9e5d3c-0000-4000-8000-000000000001/act",
      source: "/lastcall/departures/n1-2b9e5d3c",
      ...{ type: "dev.lastcall.departure", subject: "n1", time: "2026-11-24T12:00:00.000Z" },
      datacontenttype: "application/json",
      data: { node: "n1", cause: "SpotInterruption", action: "act", message },
    });
    const { "webhook-id": id, "webhook-timestamp": at } = request?.headers ?? {};
    // The time of the clock above in seconds: 2026-11-24T12:00:00Z.
    expect(at).toBe("1795521600");
    const hmac = createHmac("sha256", secret).update(`${id}.${at}.${request?.body}`);
    expect(request?.headers["webhook-signature"]).toBe(`v1,${hmac.digest("base64")}`);
  });

  it("with a key in the form of Standard Webhooks is signed with the decoded key", async () => {
    const key = Buffer.from("0123456789abcdef");
    const receiver = { ...cloudEvents, secret: () => `whsec_${key.toString("base64")}` };
    const { request } = await sent(receiver);
    const { "webhook-id": id, "webhook-timestamp": at } = request?.headers ?? {};
    const hmac = createHmac("sha256", key).update(`${id}.${at}.${request?.body}`);
    expect(request?.headers["webhook-signature"]).toBe(`v1,${hmac.digest("base64")}`);
  });

  it.each([
    ["its token", telegram, `123:${secret}`],
    ["its address", slackWebhook, secret],
    ["part of its address", teams, secret],
  ] as const)(
    "that fails does not show %s, even if the receiver repeats it",
    async (_, receiver, hidden) => {
      const world = await sinkWorld<ActionKind>({
        ...(receiver as unknown as Receiver<ActionKind>),
        reply: ({ path, query }) => ({ status: 400, body: `${query} ${path}`.slice(-50) }),
      });
      const task = { ...aTask(world.how), undo: undefined };
      const fault = await world.runner.apply(task, signal).catch((error: unknown) => error);
      expect((fault as Error).message).toMatch(/found status 400$/);
      expect((fault as Error).message).not.toContain(hidden);
      await world.close();
    },
  );
});
