import { describe, expect, it } from "vitest";
import { fieldsOf, parseJson } from "../../src/core/json/json-field.ts";
import { minutes } from "../../src/core/time/time.ts";
import { actionRunnerContract, aTask } from "../contract/action-runner.contract.ts";
import { type Receiver, secret, secretRef, sinkWorld } from "./sink-world.ts";

const signal = new AbortController().signal;

function datadog(host = { name: "n1", aliases: ["i-0abc"], is_muted: false }) {
  const receiver: Receiver<"datadogMute"> = {
    sort: "Undoable",
    how: (url) => ({
      kind: "datadogMute",
      ...{ url, host: "i-0abc", durationMs: minutes(60) },
      ...{ apiKey: secretRef, applicationKey: secretRef },
    }),
    state: () => host,
    reply: ({ method, path, headers, body }) => {
      if (headers["dd-api-key"] !== secret || headers["dd-application-key"] !== secret) {
        return { status: 403, body: { errors: ["Forbidden"] } };
      }
      if (method === "GET" && path === "/api/v1/hosts") {
        return { status: 200, body: { host_list: [{ name: "n10", aliases: [] }, host] } };
      }
      if (path === "/api/v1/host/n1/mute") {
        if (host.is_muted && fieldsOf(parseJson(body)?.value).override !== true) {
          return { status: 400, body: { errors: ["Host is already muted"] } };
        }
        host.is_muted = true;
        return { status: 200, body: { action: "Muted" } };
      }
      if (path !== "/api/v1/host/n1/unmute") return { status: 404, body: {} };
      if (!host.is_muted) return { status: 400, body: { errors: ["Host is not muted"] } };
      host.is_muted = false;
      return { status: 200, body: { action: "Unmuted" } };
    },
  };
  return { receiver, host };
}

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

function mackerel(host = { id: "3yAYEDLXKL5", name: "n1", status: "working" }) {
  const receiver: Receiver<"mackerelStatus"> = {
    sort: "Undoable",
    how: (url) => ({ kind: "mackerelStatus", url, host: "n1", status: "maintenance", secretRef }),
    state: () => host,
    reply: ({ method, path, headers, query, body }) => {
      if (headers["x-api-key"] !== secret) return { status: 403, body: {} };
      if (method === "GET" && path === "/api/v0/hosts") {
        const isMeant =
          query.get("name") === host.name || query.get("customIdentifier") === "i-0abc";
        return { status: 200, body: { hosts: isMeant ? [host] : [] } };
      }
      if (path !== `/api/v0/hosts/${host.id}/status`) return { status: 404, body: {} };
      host.status = (JSON.parse(body) as { status: string }).status;
      return { status: 200, body: { success: true } };
    },
  };
  return { receiver, host };
}

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
