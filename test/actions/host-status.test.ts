import { describe, expect, it } from "vitest";
import { actionRunnerContract, aTask } from "../contract/action-runner.contract.ts";
import { tooFast } from "./message-receivers.ts";
import { sinkWorld } from "./sink-world.ts";
import { datadog, mackerel } from "./status-receivers.ts";

const signal = new AbortController().signal;

actionRunnerContract("the datadogMute action", () => sinkWorld(datadog().receiver));

describe("a host in Datadog", () => {
  it("stays muted if somebody had muted it before", async () => {
    const { receiver, host } = datadog({ name: "n1", aliases: ["i-0abc"], is_muted: true });
    const world = await sinkWorld(receiver);
    const task = aTask(world.how);
    const undo = await world.runner.prepare(task, signal);
    expect(undo).toEqual({ host: "n1", wasMuted: true });
    await world.runner.apply({ ...task, undo }, signal);
    await world.runner.undo({ ...task, undo }, signal);
    expect(host.is_muted).toBe(true);
    expect(world.requests.map(({ method }) => method)).toEqual(["GET"]);
    await world.close();
  });

  it("is not said to be missing if the response is not Datadog's", async () => {
    const world = await sinkWorld({
      ...datadog().receiver,
      reply: () => ({ status: 200, body: {} }),
    });
    await expect(world.runner.prepare(aTask(world.how), signal)).rejects.toMatchObject({
      code: "ACTION_ANSWER_INVALID",
      message: "Cannot look for the host in Datadog: its response has no host_list",
    });
    await world.close();
  });

  it("is asked about again when Datadog says, if that was too fast", async () => {
    const world = await sinkWorld({ ...datadog().receiver, reply: () => tooFast.datadog });
    await expect(world.runner.prepare(aTask(world.how), signal)).rejects.toMatchObject({
      ...{ code: "ACTION_RATE_LIMITED", retryable: true, retryAfterMs: 30_000 },
    });
    await world.close();
  });

  it("that does not exist is named in the error", async () => {
    const world = await sinkWorld(datadog().receiver);
    const task = aTask({ ...world.how, host: "n2" });
    await expect(world.runner.prepare(task, signal)).rejects.toMatchObject({
      code: "ACTION_TARGET_UNKNOWN",
      message: "Cannot mute n2 in Datadog: there is no such host, correct datadogMute.host",
    });
    await world.close();
  });
});

actionRunnerContract("the mackerelStatus action", () => sinkWorld(mackerel().receiver));

describe("a host in Mackerel", () => {
  it("is found by its custom identifier, and gets its previous status back", async () => {
    const { receiver, host } = mackerel({ id: "3yAYEDLXKL5", name: "x", status: "standby" });
    const world = await sinkWorld(receiver);
    const task = aTask({ ...world.how, host: "i-0abc" });
    const undo = await world.runner.prepare(task, signal);
    expect(undo).toEqual({ hostId: "3yAYEDLXKL5", status: "standby" });
    await world.runner.apply({ ...task, undo }, signal);
    expect(host.status).toBe("maintenance");
    await world.runner.undo({ ...task, undo }, signal);
    expect(host.status).toBe("standby");
    await world.close();
  });
});
