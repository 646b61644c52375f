import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { QueueClient, QueueMessage } from "../../src/cloud/aws/queue/message-handler.ts";
import { millis, seconds } from "../../src/core/time/time.ts";

/** An empty queue, and the senders' side of it. */
export interface QueueWorld {
  readonly client: QueueClient;
  send(text: string): Promise<void>;
  /** Lets time pass until a message that is hidden for one second becomes visible again. */
  passHidden(): Promise<void>;
  close(): Promise<void>;
}

/** What every queue that `SqsFeed` reads guarantees. */
export function queueClientContract(name: string, makeWorld: () => Promise<QueueWorld>): void {
  describe(`${name} as a QueueClient`, () => {
    let world: QueueWorld;
    const never = new AbortController().signal;

    beforeEach(async () => {
      world = await makeWorld();
    });
    afterEach(() => world.close());

    async function one(): Promise<QueueMessage> {
      const [message, ...others] = await world.client.receive(never);
      expect(others).toEqual([]);
      expect(message).toBeDefined();
      return message as QueueMessage;
    }

    it("returns a message as it was sent, whatever it contains", async () => {
      const text = '{"a": "ü \\u0000 <html>"}\n\t]]>';
      await world.send(text);
      expect(await one()).toMatchObject({ text, receipts: 1 });
    });

    it("returns a message that arrives while it waits", async () => {
      const receiving = one();
      await world.send("later");
      expect((await receiving).text).toBe("later");
    });

    it("returns a hidden message again with the same ID, and counts its receipts", async () => {
      await world.send("again");
      const first = await one();
      await world.client.hide([first], seconds(1));
      await world.passHidden();
      const second = await one();
      expect(second).toMatchObject({ id: first.id, text: "again", receipts: 2 });
      expect(second.sentAt).toBe(first.sentAt);
    });

    it("returns at once a message that is no longer hidden", async () => {
      await world.send("back");
      await world.client.hide([await one()], millis(0));
      expect((await one()).text).toBe("back");
    });

    it("does not return hidden or removed messages", async () => {
      await world.send("hidden");
      await world.send("removed");
      const messages = [await world.client.receive(never)].flat();
      while (messages.length < 2) messages.push(...(await world.client.receive(never)));
      await world.client.remove(messages.filter(({ text }) => text === "removed"));
      await world.send("new");
      expect((await one()).text).toBe("new");
    });

    it("accepts removing a message twice, and hiding a removed one", async () => {
      await world.send("once");
      const message = await one();
      await world.client.remove([message]);
      await world.client.remove([message]);
      await world.client.hide([message], seconds(5));
    });

    it("removes and shows all given messages, even if one is already gone", async () => {
      for (let count = 0; count < 25; count += 1) await world.send(`message ${count}`);
      const messages: QueueMessage[] = [];
      while (messages.length < 25) messages.push(...(await world.client.receive(never)));
      const [gone, ...rest] = messages as [QueueMessage, ...QueueMessage[]];
      await world.client.remove([gone]);
      await world.client.remove([gone, ...rest.slice(0, 23)]);
      await world.client.hide([gone, ...rest.slice(23)], millis(0));
      expect((await one()).id).toBe(rest.at(-1)?.id);
    });

    it("ends a wait with the signal's reason", async () => {
      const ending = new AbortController();
      const receiving = world.client.receive(ending.signal);
      const reason = new Error("enough");
      ending.abort(reason);
      await expect(receiving).rejects.toBe(reason);
    });
  });
}
