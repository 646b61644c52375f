import { describe, expect, it } from "vitest";
import type { KubeAnswer, KubeRequest } from "../../src/contracts/kube-api.ts";
import type { ClusterEvent } from "../../src/contracts/telemetry.ts";
import { LastcallError } from "../../src/errors.ts";
import { KubeEventSink } from "../../src/kube/event-sink.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { ScriptedApi } from "../support/scripted-api.ts";

const held: ClusterEvent = {
  type: "Warning",
  reason: "DrainBlocked",
  message: "held by its budget",
  about: { kind: "Pod", namespace: "shop", name: "web-0", uid: "p1" },
};

/** The nth request gets the nth answer, and later ones get the last. */
function sinkWith(...answers: readonly (KubeAnswer | Error)[]) {
  const sent: KubeRequest[] = [];
  const lost: string[] = [];
  const api = new ScriptedApi((request) => {
    sent.push(request);
    const answer = answers[Math.min(sent.length, answers.length) - 1] ?? { status: 201 };
    return answer as KubeAnswer;
  });
  const clock = new ManualClock();
  const onLost = (why: string) => void lost.push(why);
  const sink = new KubeEventSink({ api, clock, instance: "lastcall-0", onLost });
  const emit = async (event: ClusterEvent) => {
    sink.emit(event);
    await clock.advance(1000);
  };
  return { emit, sent, lost };
}

const made = { status: 201, body: {} };
const methods = (sent: readonly KubeRequest[]) => sent.map(({ method }) => method);

describe("an Event", () => {
  it("is written once, and repeated by its count", async () => {
    const { emit, sent } = sinkWith(made);
    await emit(held);
    await emit(held);
    expect(methods(sent)).toEqual(["POST", "PATCH"]);
    expect(sent[1]?.body).toMatchObject({ count: 2 });
  });

  // kubectl prints its message as it is, except for escape and carriage return.
  it("contains no characters that a terminal obeys or that reorder its message", async () => {
    const { emit, sent } = sinkWith(made);
    await emit({ ...held, message: "denied by \u202eevil\u001b[2J" });
    expect(sent[0]?.body).toMatchObject({ message: "denied by \ufffdevil\ufffd[2J" });
  });

  it.each<[string, KubeAnswer | Error]>([
    ["was refused", { status: 503, body: "" }],
    ["had no response", new LastcallError("API_UNREACHABLE", "it broke")],
  ])("is written at its repetition if the first write %s", async (_, first) => {
    const { emit, sent, lost } = sinkWith(first, made);
    await emit(held);
    await emit(held);
    expect(methods(sent)).toEqual(["POST", "POST"]);
    expect(lost).toHaveLength(1);
  });

  it("is written again if it was deleted", async () => {
    const { emit, sent } = sinkWith(made, { status: 404, body: {} }, made);
    await emit(held);
    await emit(held);
    await emit(held);
    expect(methods(sent)).toEqual(["POST", "PATCH", "POST"]);
  });

  it("has a valid name, however long the name of its object is", async () => {
    const { emit, sent } = sinkWith(made);
    // Wherever the name is cut, no part of it may end with a dash.
    const places = Array.from({ length: 20 }, (_, place) => 230 + place);
    for (const place of places) {
      const name = `${"a".repeat(place)}-${"b".repeat(252 - place)}`;
      await emit({ ...held, about: { kind: "Node", name, uid: `n${place}` } });
    }
    const names = sent.map(({ body }) => (body as { metadata: { name: string } }).metadata.name);
    expect(names).toHaveLength(places.length);
    for (const name of names) {
      expect(name.length).toBeLessThanOrEqual(253);
      expect(name).toMatch(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[0-9a-f]+){2}$/);
    }
  });
});
