import { expect, it } from "vitest";
import { createResponder } from "../../../src/cli/lambda/create-responder.ts";
import { parseEventFields, readInvocation } from "../../../src/cli/lambda/read-invocation.ts";
import { seededRng } from "../../../src/core/chance/chance.ts";
import { instant } from "../../../src/core/time/time.ts";
import { realClock } from "../../../src/runtime/real-clock.ts";

const at = instant(1_795_132_800_000);
const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

it("names LASTCALL_EVENT_FIELDS and the path at which an invocation has no instance id", () => {
  const fields = parseEventFields("instanceId=spot.name");
  expect(() => readInvocation({ spot: { id: "i-0abc" } }, { at, fields })).toThrow(
    /, and LASTCALL_EVENT_FIELDS finds no instanceId at spot.name/,
  );
});

it("refuses LASTCALL_EVENT_FIELDS with two equals signs in a field", () => {
  expect(() => parseEventFields("instanceId=spot.id=x")).toThrow(
    /^Cannot use LASTCALL_EVENT_FIELDS: found "instanceId=spot.id=x", expected instanceId/,
  );
});

it("says that LASTCALL_SECRETS is not JSON", async () => {
  const secretRef = { name: "slack", key: "token" };
  const tell = { name: "tell", at: "AtEnd", slack: { channel: "C1", secretRef } };
  const env = {
    LASTCALL_ACTIONS: JSON.stringify([tell]),
    LASTCALL_SECRETS: "{LASTCALL_SECRET_SLACK_TOKEN: x}",
    LASTCALL_ACTION_HOSTS: "slack.com",
  };
  const responder = createResponder({ env, clock: realClock, rng: seededRng(1), log });
  const { machines } = readInvocation({ instanceId: "i-0123456789abcdef0", node: "n1" }, { at });
  const [machine] = machines;
  if (machine === undefined) throw new Error("the invocation names a machine");
  const { signal } = new AbortController();
  const { actions } = await responder.respond(machine, { endsAt: undefined, signal });
  expect(actions[0]).toMatchObject({
    result: "SECRET_MISSING",
    detail: expect.stringMatching(/in the JSON of LASTCALL_SECRETS, which is not a JSON object$/),
  });
});
