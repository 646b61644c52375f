import { request } from "node:http";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { seededRng } from "../../../src/core/chance/chance.ts";
import { hours, instant, minutes, seconds } from "../../../src/core/time/time.ts";
import { eventLoopTurn } from "../../../src/runtime/real-clock.ts";
import { ModelApi } from "../../../src/sim/api/model-api.ts";
import { type ModelServer, serveModel } from "../../../src/sim/http/serve-model.ts";
import { humanDuration, readJsonPath } from "../../../src/sim/http/table.ts";
import { VirtualClock } from "../../../src/sim/time/virtual-clock.ts";

const asTable = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

let clock: VirtualClock;
let api: ModelApi;
let server: ModelServer;

beforeEach(async () => {
  const startAt = instant(Date.UTC(2026, 10, 20));
  clock = new VirtualClock({ startAt, settle: eventLoopTurn });
  api = new ModelApi({ clock, rng: seededRng(1) });
  server = await serveModel({ api });
});
afterEach(() => server.close());

interface Table {
  readonly columnDefinitions: readonly { readonly name: string; readonly priority: number }[];
  readonly rows: readonly { readonly cells: readonly unknown[] }[];
}

async function table(path: string): Promise<Table> {
  const answer = await fetch(server.url + path, { headers: { accept: asTable } });
  return (await answer.json()) as Table;
}

function node(name: string): object {
  const conditions = [{ type: "Ready", status: "True" }];
  return { metadata: { name }, status: { conditions, nodeInfo: { kubeletVersion: "v1.36.3" } } };
}

describe("the HTTP server of the model", () => {
  it("answers requests as the model does", async () => {
    const made = await fetch(`${server.url}/api/v1/nodes`, {
      method: "POST",
      body: JSON.stringify(node("n1")),
    });
    expect(made.status).toBe(201);
    const again = await fetch(`${server.url}/api/v1/nodes/n2`);
    expect([again.status, await again.json()]).toMatchObject([404, { reason: "NotFound" }]);
  });

  it("returns a Table if requested, with ages by the model's clock", async () => {
    api.handle({ method: "POST", path: "/api/v1/nodes", body: node("n1") });
    api.handle({
      method: "PATCH",
      path: "/api/v1/nodes/n1",
      body: { spec: { unschedulable: true } },
    });
    await clock.advance(hours(3));
    const { columnDefinitions, rows } = await table("/api/v1/nodes");
    const shown = columnDefinitions.filter((column) => column.priority === 0);
    expect(shown.map((column) => column.name)).toEqual([
      "Name",
      "Status",
      "Roles",
      "Age",
      "Version",
    ]);
    expect(rows[0]?.cells.slice(0, 5)).toEqual([
      "n1",
      "Ready,SchedulingDisabled",
      "<none>",
      "3h",
      "v1.36.3",
    ]);
  });

  it("prints custom resources with the columns of their definition", async () => {
    const schema = {
      openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
    };
    const additionalPrinterColumns = [
      { name: "Phase", type: "string", jsonPath: ".status.phase" },
      { name: "Departs", type: "date", jsonPath: ".spec.departAt" },
    ];
    const version = { name: "v1", served: true, storage: true, schema, additionalPrinterColumns };
    const names = { kind: "Leaving", plural: "leavings" };
    api.handle({
      method: "POST",
      path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
      body: {
        metadata: { name: "leavings.x.dev" },
        spec: { group: "x.dev", scope: "Cluster", names, versions: [version] },
      },
    });
    api.handle({
      method: "POST",
      path: "/apis/x.dev/v1/leavings",
      body: {
        apiVersion: "x.dev/v1",
        kind: "Leaving",
        metadata: { name: "n1" },
        spec: { departAt: "2026-11-20T00:00:00Z" },
        status: { phase: "Draining" },
      },
    });
    await clock.advance(minutes(5));
    const { rows } = await table("/apis/x.dev/v1/leavings");
    expect(rows[0]?.cells).toEqual(["n1", "Draining", "5m"]);
  });

  it("streams a watch line by line until the client disconnects", async () => {
    const abort = new AbortController();
    const path = "/api/v1/nodes?watch=true&resourceVersion=1";
    const answer = await fetch(server.url + path, { signal: abort.signal });
    const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
    api.handle({ method: "POST", path: "/api/v1/nodes", body: node("n1") });
    const { value } = (await reader?.read()) ?? {};
    expect(JSON.parse(value ?? "")).toMatchObject({
      type: "ADDED",
      object: { kind: "Node", metadata: { name: "n1" } },
    });
    abort.abort();
  });

  it("answers a watch of an unknown resource with 404 instead of a stream", async () => {
    const answer = await fetch(`${server.url}/api/v1/things?watch=true`);
    expect(answer.status).toBe(404);
  });

  it.each([
    ["a web page", { origin: "https://example.com" }],
    ["a host name that resolves to loopback", { host: "rebound.example.com" }],
  ])("rejects requests from %s", async (_what, headers) => {
    const status = await new Promise((resolve, reject) => {
      request(`${server.url}/api/v1/nodes`, { headers }, (answer) => {
        answer.resume();
        resolve(answer.statusCode);
      })
        .on("error", reject)
        .end();
    });
    expect(status).toBe(403);
  });

  it.each([
    ["not JSON", "{", "application/json", 400],
    ["more than 3 MiB", "x".repeat(3 * 1024 * 1024 + 1), "application/json", 413],
    ["protobuf of an unknown kind", "k8s", "application/vnd.kubernetes.protobuf", 415],
  ])("rejects a body that is %s", async (_what, body, contentType, status) => {
    const answer = await fetch(`${server.url}/api/v1/nodes`, {
      method: "POST",
      body,
      headers: { "content-type": contentType },
    });
    expect(answer.status).toBe(status);
  });

  it("reports that its port is taken", async () => {
    const port = Number(new URL(server.url).port);
    await expect(serveModel({ api, port })).rejects.toMatchObject({ code: "PORT_TAKEN" });
  });
});

describe("humanDuration", () => {
  it.each([
    [0, "0s"],
    [119, "119s"],
    [120, "2m"],
    [330, "5m30s"],
    [600, "10m"],
    [3 * 3600 - 1, "179m"],
    [3 * 3600, "3h"],
    [7 * 3600 + 60, "7h1m"],
    [26 * 3600, "26h"],
    [52 * 3600, "2d4h"],
    [30 * 86400, "30d"],
    [800 * 86400, "2y70d"],
    [-5, "<invalid>"],
  ])("writes %d seconds as %s", (span, text) => {
    expect(humanDuration(seconds(span))).toBe(text);
  });
});

describe("readJsonPath", () => {
  const object = {
    metadata: { labels: { "example.com/a": "1" } },
    status: {
      conditions: [
        { type: "A", status: "x" },
        { type: "B", status: "y" },
      ],
    },
  };

  it.each([
    [".status.conditions[1].status", "y"],
    ['.status.conditions[?(@.type=="A")].status', "x"],
    [".metadata.labels.example\\.com/a", "1"],
    [".metadata.labels['example.com/a']", "1"],
    [".status.nothing.there", undefined],
  ])("reads %s", (path, value) => {
    expect(readJsonPath(object, path)).toBe(value);
  });
});
