import { seconds } from "../../src/core/time/time.ts";
import { FakeQueue } from "../support/fake-queue.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { queueClientContract } from "./queue-client.contract.ts";

queueClientContract("the in-memory queue", async () => {
  const clock = new ManualClock();
  const queue = new FakeQueue(clock);
  return {
    client: queue,
    send: async (text) => queue.send(text),
    passHidden: async () => clock.advance(seconds(1)),
    close: async () => {},
  };
});
