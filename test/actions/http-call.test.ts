import { describe, expect, it } from "vitest";
import { sinkRunner } from "../../src/actions/sink-runners.ts";
import { instant } from "../../src/core/time/time.ts";
import { actionRunnerContract, aTask } from "../contract/action-runner.contract.ts";
import { sinkTools, startActionServer } from "../support/action-server.ts";
import { type Receiver, secret, secretRef, sinkWorld } from "./sink-world.ts";

const signal = new AbortController().signal;

/** A receiver that ignores a request whose `Idempotency-Key` it has seen. */
function inventory(): Receiver<"http"> {
  const leaving = new Set<string>();
  const seen = new Set<unknown>();
  return {
    sort: "Undoable",
    state: () => [...leaving],
    how: (url) => ({
      kind: "http",
      ...{ url: `${url}/hosts/n1`, method: "PUT", contentType: "application/json" },
      headers: [
        { name: "Authorization", value: "Bearer ", secretRef },
        { name: "X-Team", value: "web" },
      ],
      body: '{"state":"leaving"}',
      undo: { url: `${url}/hosts/n1`, method: "DELETE" },
    }),
    reply: ({ method, path, headers }) => {
      if (headers.authorization !== `Bearer ${secret}`) return { status: 401 };
      if (seen.has(headers["idempotency-key"])) return { status: 200 };
      seen.add(headers["idempotency-key"]);
      if (method === "PUT") leaving.add(path);
      else leaving.delete(path);
      return { status: 200 };
    },
  };
}

actionRunnerContract("the http action", () => sinkWorld(inventory()));

describe("an http action", () => {
  it("sends its headers, its body, and a key by which the receiver recognizes a repetition", async () => {
    const world = await sinkWorld(inventory());
    const task = aTask(world.how);
    await world.runner.apply({ ...task, undo: {} }, signal);
    expect(world.requests[0]).toMatchObject({
      ...{ method: "PUT", path: "/hosts/n1", body: '{"state":"leaving"}' },
      headers: {
        "content-type": "application/json",
        "x-team": "web",
        "idempotency-key": task.key,
      },
    });
    await world.close();
  });

  it("that runs again after it was undone is no repetition of the first run", async () => {
    const world = await sinkWorld(inventory());
    const run = async (time: string) => {
      const task = { ...aTask(world.how), startedAt: instant(Date.parse(time)) };
      const prepared = { ...task, undo: await world.runner.prepare(task, signal) };
      return {
        apply: () => world.runner.apply(prepared, signal),
        undo: () => world.runner.undo(prepared, signal),
      };
    };
    const [first, again] = [await run("2026-11-24T12:00:00Z"), await run("2026-11-24T13:00:00Z")];
    await first.apply();
    await first.undo();
    await again.apply();
    expect(world.state()).toEqual(["/hosts/n1"]);
    // The receiver may have got a request whose response was lost.
    await again.apply();
    await first.undo();
    expect(world.state()).toEqual(["/hosts/n1"]);
    await again.undo();
    expect(world.state()).toEqual([]);
    const keys = world.requests.map(({ headers }) => headers["idempotency-key"]);
    expect(new Set(keys).size).toBe(4);
    await world.close();
  });

  it("has one key for all runs if it cannot be undone, as for a failed one that runs again", async () => {
    const world = await sinkWorld(inventory());
    const { undo: _, ...how } = world.how;
    const task = { ...aTask(how), startedAt: instant(Date.UTC(2026, 10, 24)), undo: undefined };
    await world.runner.apply(task, signal);
    expect(world.requests[0]?.headers["idempotency-key"]).toBe(task.key);
    await world.close();
  });

  it("without an undo request is handled as a message", async () => {
    const world = await sinkWorld(inventory());
    const { undo: _, ...how } = world.how;
    expect(await world.runner.prepare(aTask(how), signal)).toBeUndefined();
    await world.close();
  });
});

describe("the check before a departure", () => {
  it("finds a host that is not allowed, in any field", async () => {
    const server = await startActionServer(() => ({ status: 200 }));
    const tools = sinkTools(server.host, { "lastcall-actions/token": "https://other.example/x" });
    const check = (how: Readonly<Record<string, unknown>>) =>
      sinkRunner(how.kind as "http", tools)?.check(how as never, signal);
    const forbidden = {
      code: "ACTION_HOST_FORBIDDEN",
      found: "the host other.example:443, which --action-hosts does not allow",
    };
    const base = { kind: "http", method: "POST", headers: [], contentType: "text/plain" };
    const url = "https://other.example/{{node}}";
    expect(await check({ ...base, url })).toMatchObject({ ...forbidden, field: "http.url" });
    const undo = { url, method: "POST" };
    expect(await check({ ...base, url: server.url, undo })).toMatchObject({
      ...forbidden,
      field: "http.undo.url",
    });
    // The address in a Secret is checked, but only its host is shown.
    expect(await check({ kind: "slack", message: "", secretRef })).toEqual({
      ...forbidden,
      field: "slack.secretRef",
      wanted: "a host that --action-hosts names",
    });
    expect(server.requests).toEqual([]);
    await server.close();
  });

  it("finds a missing Secret", async () => {
    const tools = sinkTools("other.example");
    const how = { kind: "telegram", url: "https://other.example", chatId: "1", message: "" };
    expect(
      await sinkRunner("telegram", tools)?.check({ ...how, secretRef } as never, signal),
    ).toEqual({
      code: "SECRET_MISSING",
      field: "telegram.secretRef",
      found:
        "Secret lastcall-actions, key token (Cannot read the key token of Secret lastcall/lastcall-actions: there is none)",
      wanted: "a Secret that Lastcall may read",
    });
  });
});
