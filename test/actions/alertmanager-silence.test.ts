import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { actionRunnerContract, aTask } from "../contract/action-runner.contract.ts";
import { secret, sinkWorld } from "./sink-world.ts";
import { alertmanager, type Silence, silenceId } from "./status-receivers.ts";

actionRunnerContract("the alertmanagerSilence action", () => sinkWorld(alertmanager()));

describe("a silence in Alertmanager", () => {
  const signal = new AbortController().signal;
  let receiver: ReturnType<typeof alertmanager>;
  let world: Awaited<ReturnType<typeof sinkWorld<"alertmanagerSilence">>>;

  beforeEach(async () => {
    receiver = alertmanager();
    world = await sinkWorld(receiver);
  });
  afterEach(() => world.close());

  it("has matchers in the API's form, its duration, and the key by which it is found", async () => {
    const task = aTask(world.how);
    const done = await world.runner.apply({ ...task, undo: { key: task.key } }, signal);
    expect(done.reference).toBe(silenceId(1));
    expect(receiver.silences[1]).toMatchObject({
      matchers: [
        { name: "instance", value: "n1:[0-9]+", isRegex: true, isEqual: true },
        { name: "job", value: 'a"b', isRegex: false, isEqual: false },
        { name: "team", value: "web", isRegex: false, isEqual: true },
      ],
      startsAt: "2026-11-24T12:00:00.000Z",
      endsAt: "2026-11-24T14:00:00.000Z",
      createdBy: "lastcall",
      comment: `n1 leaves [lastcall ${task.key}]`,
    });
    expect(world.requests.at(-1)?.headers.authorization).toBe(`Bearer ${secret}`);
  });

  it("reads the escapes of its matchers as Alertmanager does", async () => {
    const matchers = [
      ...['instance=~"n1\\.example:[0-9]+"', 'a="x\\ny"', 'b="x\\\\\\"y"'],
      ...["c=~n1\\.example", "d=x\\\\y", "e=", "f=x\\"],
    ];
    await world.runner.apply({ ...aTask({ ...world.how, matchers }), undo: {} }, signal);
    const sent = receiver.silences[1]?.matchers as readonly { readonly value: string }[];
    // As in github.com/prometheus/alertmanager/pkg/labels: what is no escape is kept as it is.
    expect(sent.map(({ value }) => value)).toEqual([
      ...["n1\\.example:[0-9]+", "x\ny", 'x\\"y'],
      ...["n1\\.example", "x\\y", "", "x\\"],
    ]);
  });

  it("is not created twice, unless it has expired", async () => {
    const task = { ...aTask(world.how), undo: {} };
    await world.runner.apply(task, signal);
    expect(await world.runner.apply(task, signal)).toMatchObject({ reference: silenceId(1) });
    (receiver.silences[1] as Silence).status = { state: "expired" };
    expect(await world.runner.apply(task, signal)).toMatchObject({ reference: silenceId(2) });
  });

  it("is not created twice if its matcher of the machine is a pattern", async () => {
    const task = aTask(world.how);
    const undo = await world.runner.prepare(task, signal);
    expect(undo).toMatchObject({ filter: 'instance=~"n1:[0-9]+"' });
    await world.runner.apply({ ...task, undo }, signal);
    const again = await world.runner.apply({ ...task, undo }, signal);
    expect(again).toMatchObject({ reference: silenceId(1) });
    expect(receiver.silences).toHaveLength(2);
  });

  it("is looked up only among the silences of its machine", async () => {
    const matchers = ['instance=~"n1\\.a:\\"x"', "team=web"];
    const task = aTask({ ...world.how, matchers });
    const undo = await world.runner.prepare(task, signal);
    await world.runner.apply({ ...task, undo }, signal);
    await world.runner.undo({ ...task, undo }, signal);
    const filters = world.requests.flatMap(({ method, query }) =>
      method === "GET" ? [query.get("filter")] : [],
    );
    expect(filters).toEqual(Array(2).fill('instance=~"n1\\\\.a:\\"x"'));
    expect(receiver.silences[1]?.status.state).toBe("expired");
  });

  it("is expired even if its matchers have changed since", async () => {
    const task = aTask(world.how);
    const undo = await world.runner.prepare(task, signal);
    const other = aTask({ ...world.how, matchers: ["instance=n1-SpotInterruption"] });
    await world.runner.apply({ ...other, undo }, signal);
    await world.runner.undo({ ...other, undo }, signal);
    expect(receiver.silences[1]?.status.state).toBe("expired");
  });

  it("of another departure or a person is not expired with it", async () => {
    await world.runner.apply({ ...aTask(world.how), undo: {} }, signal);
    const other = aTask(world.how, { key: "other/act" });
    await world.runner.apply({ ...other, undo: {} }, signal);
    await world.runner.undo({ ...other, undo: {} }, signal);
    expect(receiver.silences.map(({ status }) => status.state)).toEqual([
      "active",
      "active",
      "expired",
    ]);
  });
});
