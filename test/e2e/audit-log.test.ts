import { expect, it } from "vitest";
import { entriesOf, unanswered } from "../support/audit-log.ts";

const line = (auditID: string, stage: string, code?: number) =>
  JSON.stringify({
    ...{ auditID, stage, verb: "create", user: { username: "controller" } },
    objectRef: { resource: "pods", subresource: "eviction", namespace: "default", name: auditID },
    requestReceivedTimestamp: "1970-01-01T00:00:01.000002Z",
    stageTimestamp: "1970-01-01T00:00:01.500000Z",
    ...(code !== undefined && { responseStatus: { code } }),
  });

it("lists one entry per answered request, and unanswered requests last", () => {
  const log = [
    line("killed", "RequestReceived"),
    line("done", "RequestReceived"),
    line("done", "ResponseComplete", 201),
    // A line that is still being written.
    '{"auditID":"half","stage":"Requ',
  ].join("\n");
  expect(entriesOf(log).map(({ name, code }) => [name, code])).toEqual([
    ["done", 201],
    ["killed", unanswered],
  ]);
  expect(entriesOf(log)[0]).toMatchObject({ receivedAtUs: 1_000_002, answeredAtUs: 1_500_000 });
});
