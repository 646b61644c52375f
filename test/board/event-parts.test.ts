import fc from "fast-check";
import { expect, it } from "vitest";
import { eventParts, jsonParts } from "../../src/board/board-routes.ts";
import { noRights, type StreamMessage } from "../../src/board/stream.ts";

it("the parts of a message are its JSON, whatever it contains", () => {
  const list = fc.array(fc.jsonValue(), { maxLength: 100 });
  const some = fc.oneof(fc.jsonValue(), list, fc.constant(undefined));
  const data = fc.dictionary(fc.string(), fc.oneof(some, fc.dictionary(fc.string(), some)));
  fc.assert(
    fc.property(fc.oneof(data, list), (value) => {
      expect([...jsonParts(value)].join("")).toBe(JSON.stringify(value));
    }),
  );
});

it("a picture of thousands of nodes is sent in small parts", () => {
  const rows = Array.from({ length: 5000 }, (_, place) => ({
    id: `n${place}`,
    says: "x".repeat(500),
  }));
  const message = {
    ...{ kind: "Picture", id: "r.1", clock: { at: 0, rate: 1 } },
    picture: {
      ...{ rows, past: [], policies: [] },
      fleet: { cluster: "c", rights: noRights, days: [], missing: [] },
    },
  } as unknown as StreamMessage;
  const parts = [...eventParts(message)];
  expect(Math.max(...parts.map(({ length }) => length))).toBeLessThan(50_000);
  expect(parts.join("")).toBe(`id: r.1\ndata: ${JSON.stringify(message)}\n\n`);
});
