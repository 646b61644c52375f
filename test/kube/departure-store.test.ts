import { describe, expect, it } from "vitest";
import type { KubeRequest } from "../../src/contracts/kube-api.ts";
import { plus, seconds } from "../../src/core/time/time.ts";
import { KubeDepartureStore } from "../../src/kube/departure-store.ts";
import { aDeparture, aNode, at } from "../core/fleet-builder.ts";

const noticedAt = at("2026-11-20T12:00:00Z");
const order = {
  name: "n1-01234567",
  node: { name: "n1", uid: "0123456789abcdef" },
  cause: "SpotInterruption",
  source: "aws/queue/spot-interruption/event-1",
  reason: "Noticed",
  message: "n1 leaves because the cloud interrupts it.",
} as const;

/** What the store sends, to a server that has it in another version by now. */
function sentBy(write: (store: KubeDepartureStore) => Promise<unknown>): Promise<KubeRequest> {
  return new Promise((resolve, reject) => {
    const send = async (request: KubeRequest) => {
      resolve(request);
      return { status: 409, body: {} };
    };
    const watch = () => {
      throw new Error("nothing is watched");
    };
    write(new KubeDepartureStore({ send, watch })).catch(reject);
  });
}

describe("in a rush, the write", () => {
  it("that makes a departure of a notice comes first, since its node is not cordoned before", async () => {
    const request = await sentBy((store) => store.create({ ...order, noticedAt }));
    expect(request).toMatchObject({ method: "POST", urgency: "First" });
  });

  it("that forces a departure comes first, too", async () => {
    const word = { noticedAt, deadlineAt: plus(noticedAt, seconds(120)), source: order.source };
    const request = await sentBy((store) => store.notice(aDeparture(aNode("n1")), word));
    expect(request).toMatchObject({ method: "PATCH", urgency: "First" });
  });

  it("that plans a departure stands back", async () => {
    const request = await sentBy((store) => store.create({ ...order, cause: "Planned" }));
    expect(request).toMatchObject({ method: "POST", urgency: "Later" });
  });

  it("of a status stands back until it is told to hurry, and says what is so as it goes out", async () => {
    const departure = aDeparture(aNode("n1"));
    const hurry = new AbortController().signal;
    let message = "as it was made";
    const status = () => ({ ...departure.status, message });
    const record = await sentBy((store) => store.record(departure, { status, hurry }));
    expect(record).toMatchObject({ method: "PATCH", urgency: "Later", hurry });
    message = "as it goes out";
    expect(record.bodyAtTurn?.()).toMatchObject({ status: { message: "as it goes out" } });
  });
});
