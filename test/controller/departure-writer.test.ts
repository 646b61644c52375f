import { expect, it } from "vitest";
import type { DepartureStore, StoreResult } from "../../src/contracts/cluster.ts";
import type { Telemetry } from "../../src/contracts/telemetry.ts";
import { DepartureWriter } from "../../src/controller/departure-writer.ts";
import type { Departure } from "../../src/core/departure/departure.ts";
import { aDeparture, aNode } from "../core/fleet-builder.ts";

const departure: Departure = { ...aDeparture(aNode("n1")), resourceVersion: "7" };
const message = "not this object";

/**
 * A store that answers each write with a conflict, and reads with these versions. `shown`: what the
 * watch shows meanwhile, which is the newest.
 */
function conflicting(versions: () => string, shown?: string) {
  const writes: string[] = [];
  const conflict = async ({ resourceVersion }: Departure): Promise<StoreResult> => {
    writes.push(resourceVersion);
    if (resourceVersion === shown) return { kind: "Done", departure };
    const newer = shown && { ...departure, resourceVersion: shown };
    return { kind: "Conflict", message, ...(newer && { newer }) };
  };
  const read = async (): Promise<StoreResult> => ({
    kind: "Done",
    departure: { ...departure, resourceVersion: versions() },
  });
  const store = { read, record: conflict, finalize: conflict } as unknown as DepartureStore;
  return { writer: new DepartureWriter(store, {} as Telemetry), writes };
}

const calls: readonly [string, (writer: DepartureWriter) => Promise<unknown>][] = [
  ["status", (writer) => writer.record(departure, ({ status }) => ({ ...status }))],
  ["finalizer", (writer) => writer.guard(departure, new AbortController().signal)],
];

it.each(calls)("a conflict of a %s that nobody else has changed is a refusal", async (_, call) => {
  const { writer, writes } = conflicting(() => "7");
  const refused = call(writer);
  await expect(refused).rejects.toMatchObject({ code: "CONFLICT", retryable: false });
  await expect(refused).rejects.toThrow(message);
  expect(writes).toEqual(["7"]);
});

it.each(calls)("a %s that others always change first is written later", async (_, call) => {
  let version = 7;
  const { writer, writes } = conflicting(() => {
    version += 1;
    return String(version);
  });
  await expect(call(writer)).rejects.toMatchObject({ code: "CONFLICT", retryable: true });
  expect(writes).toEqual(["7", "8", "9", "10", "11", "12"]);
});

it.each(calls)("a %s is written onto what the watch shows, without a read", async (_, call) => {
  const { writer, writes } = conflicting(() => expect.unreachable(), "9");
  await call(writer);
  expect(writes).toEqual(["7", "9"]);
});
