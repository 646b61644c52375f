/**
 * Actions around a departure on a real control plane, with the controller's own permissions: a
 * silence, a Slack thread and a signed webhook; a controller that is killed in between; a withdrawn
 * notice; and policies whose actions cannot work.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type ActionServer,
  type ReceivedRequest,
  startActionServer,
} from "../support/action-server.ts";
import type { LastcallProcess } from "../support/lastcall-process.ts";
import { FleetWorld } from "./fleet-world.ts";
import { mustRun } from "./must-run.ts";
import { makeDeparture, noticeOf } from "./raw-departure.ts";

interface Silence {
  readonly id: string;
  readonly comment: string;
  readonly matchers: readonly { readonly value: string }[];
  status: { state: string };
}

interface NodeSpec {
  readonly unschedulable?: boolean;
  readonly taints?: readonly object[];
}

interface Recorded {
  readonly name: string;
  readonly state: string;
  readonly attempts: number;
  readonly result?: string;
  readonly detail?: string;
  readonly undo?: object;
}

const token = "xoxb-e2e-t0ken";
const departures = "/apis/lastcall.dev/v1alpha1/departures";
const merge = "application/merge-patch+json";

const silences: Silence[] = [];
let alertmanager: ActionServer;
let slack: ActionServer;
let webhook: ActionServer;
let world: FleetWorld;
let controller: LastcallProcess;
let kubeconfig: string;

function answerSilences({ method, path, body }: ReceivedRequest) {
  if (method === "GET") return { status: 200, body: silences };
  if (method === "POST") {
    const id = `silence-${silences.length}`;
    silences.push({ ...(JSON.parse(body) as Silence), id, status: { state: "active" } });
    return { status: 200, body: { silenceID: id } };
  }
  const found = silences.find(({ id }) => path.endsWith(`/${id}`));
  if (found !== undefined) found.status = { state: "expired" };
  return { status: found === undefined ? 404 : 200 };
}

let messages = 0;

function answerSlack({ headers }: ReceivedRequest) {
  if (headers.authorization !== `Bearer ${token}`) {
    return { status: 200, body: { ok: false, error: "invalid_auth" } };
  }
  messages += 1;
  return { status: 200, body: { ok: true, ts: `1700000000.${messages}` } };
}

beforeAll(async () => {
  alertmanager = await startActionServer(answerSilences);
  slack = await startActionServer(answerSlack);
  webhook = await startActionServer(() => ({ status: 202 }));
  world = await FleetWorld.start();
  kubeconfig = await world.controllerKubeconfig();
  await mustRun(world.plane, ["apply", "-f", "-"], {
    ...{ apiVersion: "v1", kind: "Secret" },
    metadata: { name: "lastcall-actions", namespace: "lastcall" },
    stringData: { slack: `${token}\n`, hmac: "key" },
  });
  await world.applyPolicy({ actions: actions() });
  controller = await startController();
});

afterAll(async () => {
  await world?.stop();
  await Promise.all([alertmanager?.close(), slack?.close(), webhook?.close()]);
});

function startController(): Promise<LastcallProcess> {
  const hosts = [alertmanager, slack, webhook].map(({ host }) => host).join(",");
  return world.startController(kubeconfig, ["--action-hosts", hosts]);
}

function actions(): readonly object[] {
  const secretOf = (key: string) => ({ name: "lastcall-actions", key });
  const channel = { url: slack.url, channel: "C012", secretRef: secretOf("slack") };
  return [
    {
      ...{ name: "mute", at: "AtNotice" },
      alertmanagerSilence: { url: alertmanager.url, matchers: ['instance=~"{{node}}:.*"'] },
    },
    { name: "tell", at: "AtNotice", slack: { ...channel, message: "{{node}} {{cause}}" } },
    { name: "planned", at: "AtNotice", causes: ["Planned"], slack: channel },
    {
      ...{ name: "broken", at: "BeforeDrain", retries: 1, timeout: "2s" },
      http: { url: `${webhook.url}/broken/{{node}}`, body: '{"node":"{{node}}"}' },
    },
    { name: "told", at: "AtEnd", slack: channel },
    {
      ...{ name: "event", at: "AtEnd" },
      cloudEvents: { url: `${webhook.url}/events`, secretRef: secretOf("hmac") },
    },
  ];
}

async function statusOf(name: string) {
  const { body } = await world.plane.request({ path: `${departures}/${name}` });
  return body.status as {
    readonly phase?: string;
    readonly outcome?: string;
    readonly actions?: readonly Recorded[];
  };
}

async function statesOf(name: string): Promise<Readonly<Record<string, string>>> {
  const { actions: records = [] } = (await statusOf(name)) ?? {};
  return Object.fromEntries(records.map((one) => [one.name, one.state]));
}

function bodiesOf(server: ActionServer, path: string): readonly Record<string, unknown>[] {
  return server.requests
    .filter((request) => request.path.startsWith(path))
    .map(({ body }) => JSON.parse(body) as Record<string, unknown>);
}

async function isDrained(name: string): Promise<boolean> {
  return (await statusOf(name))?.phase === "Releasing";
}

async function takeMachine(node: string): Promise<void> {
  await world.plane.request({ method: "DELETE", path: `/api/v1/nodes/${node}` });
}

describe("a node under notice", () => {
  let name: string;

  test("is silenced and announced; an action for planned departures is skipped", async () => {
    ({ name } = await makeDeparture(world.plane, "spot-1", { spec: noticeOf(120) }));
    await world.until("its node is drained", () => isDrained(name));
    await world.until("its actions have ended", async () => {
      const { broken } = await statesOf(name);
      return broken === "Done" || broken === "Failed";
    });
    expect(await statesOf(name)).toEqual({
      ...{ mute: "Done", tell: "Done", planned: "Skipped", broken: "Done" },
      ...{ told: "Pending", event: "Pending" },
    });
    expect(silences).toMatchObject([
      { matchers: [{ value: "spot-1:.*" }], status: { state: "active" } },
    ]);
    expect(bodiesOf(slack, "/chat.postMessage")).toEqual([
      { channel: "C012", text: "spot-1 SpotInterruption" },
    ]);
  });

  test("is summed up in the Slack thread and a signed event once its machine is gone", async () => {
    await takeMachine("spot-1");
    await world.until("all has been told", async () => {
      const { told, event } = await statesOf(name);
      return told === "Done" && event === "Done";
    });
    const last = bodiesOf(slack, "/chat.postMessage").at(-1);
    expect(last?.thread_ts).toBe("1700000000.1");
    expect(last?.text).toMatch(/^spot-1 has left: SpotInterruption.*outcome Preempted\n/);
    expect(last?.text).toMatch(/action mute \(alertmanagerSilence\) Done in \d/);
    expect(last?.text).toMatch(/pods: \d+ in total, \d+ evicted/);
    expect(bodiesOf(webhook, "/events")).toMatchObject([
      {
        ...{ specversion: "1.0", type: "dev.lastcall.departure", subject: "spot-1" },
        data: { node: "spot-1", outcome: "Preempted", departure: name },
      },
    ]);
    expect(webhook.requests.at(-1)?.headers["webhook-signature"]).toMatch(/^v1,/);
    expect(controller.log()).not.toContain(token);
  });
});

describe("a controller that is killed while an action is running", () => {
  test("is succeeded by one that completes the rest and retries only the message", async () => {
    const sent = slack.requests.length;
    let isAsked = false;
    slack.override = () => {
      isAsked = true;
    };
    const { name } = await makeDeparture(world.plane, "spot-2", { spec: noticeOf(120) });
    await world.until("the silence is written down, and Slack does not answer", async () => {
      const states = await statesOf(name);
      return isAsked && states.mute === "Done" && states.tell === "Running";
    });
    await controller.kill();
    slack.override = undefined;
    controller = await startController();
    await world.until("the message is sent", async () => (await statesOf(name)).tell === "Done");
    const records = (await statusOf(name)).actions ?? [];
    expect(records.find((one) => one.name === "tell")?.attempts).toBe(2);
    expect(silences.filter(({ comment }) => comment.includes("spot-2"))).toHaveLength(1);
    expect(slack.requests).toHaveLength(sent + 1);
    await world.until("its node is drained", () => isDrained(name));
    await takeMachine("spot-2");
    await world.until("all has been told", async () => (await statesOf(name)).told === "Done");
  });
});

describe("a withdrawn notice", () => {
  const specOf = async (node: string): Promise<NodeSpec> =>
    (await world.plane.request({ path: `/api/v1/nodes/${node}` })).body.spec;

  test("expires the silence and uncordons the node", async () => {
    const { name } = await makeDeparture(world.plane, "spot-3", { spec: noticeOf(120) });
    await world.until("it is muted", async () => (await statesOf(name)).mute === "Done");
    const ours = () => silences.filter(({ comment }) => comment.includes("spot-3"));
    expect(ours().map(({ status }) => status.state)).toEqual(["active"]);
    // The node lifecycle controller would have added `timeAdded`.
    const cordonTaint = { key: "node.kubernetes.io/unschedulable", effect: "NoSchedule" };
    expect((await specOf("spot-3")).taints).toContainEqual(cordonTaint);
    const withdrawnAt = new Date().toISOString();
    await world.plane.request({
      ...{ method: "PATCH", path: `${departures}/${name}`, contentType: merge },
      body: { spec: { withdrawnAt } },
    });
    await world.until("it is over and told", async () => (await statesOf(name)).told === "Done");
    expect(ours().map(({ status }) => status.state)).toEqual(["expired"]);
    expect(await statusOf(name)).toMatchObject({ phase: "Ended", outcome: "Cancelled" });
    expect((await statesOf(name)).mute).toBe("Undone");
    const { unschedulable, taints = [] } = await specOf("spot-3");
    expect(unschedulable).toBeUndefined();
    expect(taints).toEqual([]);
  });
});

describe("a policy whose action cannot work", () => {
  async function readiness(): Promise<{ readonly status?: string; readonly message?: string }> {
    const path = "/apis/lastcall.dev/v1alpha1/departurepolicies/spot";
    const { body } = await world.plane.request({ path });
    const conditions: readonly { type: string; status?: string; message?: string }[] =
      body.status?.conditions ?? [];
    return conditions.find(({ type }) => type === "Ready") ?? {};
  }

  test.each([
    ["a host that is not allowed", { cloudEvents: { url: "https://other.example/x" } }],
    [
      "a Secret that may not be read",
      { cloudEvents: { url: "WEBHOOK", secretRef: { name: "others", key: "k" } } },
    ],
    [
      "a missing key",
      { cloudEvents: { url: "WEBHOOK", secretRef: { name: "lastcall-actions", key: "no" } } },
    ],
  ])("is reported as not ready before any notice: %s", async (_, action) => {
    const written = JSON.stringify(action).replace("WEBHOOK", webhook.url);
    const bad = { name: "bad", at: "AtEnd", ...(JSON.parse(written) as object) };
    await world.applyPolicy({ actions: [bad] });
    const found = await world.until("the policy is not ready", async () => {
      const ready = await readiness();
      return ready.status === "False" && ready;
    });
    expect(found.message).toMatch(/^spec\.actions\[0\]\.cloudEvents\.(url|secretRef): found /);
    await world.applyPolicy({ actions: [] });
    await world.until("it is ready", async () => (await readiness()).status === "True");
  });
});
