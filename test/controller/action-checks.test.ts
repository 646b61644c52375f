import { describe, expect, it } from "vitest";
import { minutes, seconds } from "../../src/core/time/time.ts";
import { LastcallError } from "../../src/errors.ts";
import { silence, slack, useActionStage } from "../support/action-stage.ts";
import { policies } from "../support/model-world.ts";

const stage = useActionStage();
const never = new AbortController().signal;

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

function ready(): Condition | undefined {
  const status = stage.world.get(`${policies}/spot`)?.status;
  const { conditions = [] } = (status ?? {}) as { conditions?: readonly Condition[] };
  return conditions.find(({ type }) => type === "Ready");
}

const forbidden = {
  code: "ACTION_HOST_FORBIDDEN",
  field: "slack.url",
  found: "the host x.example:443, which --action-hosts does not allow",
  wanted: "a host that --action-hosts names",
} as const;

describe("the check of a policy's actions", () => {
  it("reports a problem by field and value before the first notice, until it is fixed", async () => {
    stage.tell.problem = forbidden;
    stage.start([
      { name: "mute", at: "AtNotice", ...silence },
      { name: "tell", at: "AtEnd", ...slack },
    ]);
    await stage.world.pass(seconds(10));
    expect(ready()).toMatchObject({
      status: "False",
      reason: "ActionInvalid",
      message:
        "spec.actions[1].slack.url: found the host x.example:443, which --action-hosts does not allow, expected a host that --action-hosts names (ACTION_HOST_FORBIDDEN)",
    });
    expect(stage.world.counted).toContain("lastcall_errors_total code=ACTION_HOST_FORBIDDEN");
    stage.tell.problem = undefined;
    await stage.world.pass(minutes(12));
    expect(ready()).toMatchObject({ status: "True", reason: "Understood" });
  });

  it("rejects a type of action that the controller does not support", async () => {
    stage.start([{ name: "new", at: "AtNotice", teams: { url: "https://x.example/" } }]);
    await stage.world.pass(seconds(10));
    expect(ready()).toMatchObject({ status: "False", reason: "ActionInvalid" });
    expect(ready()?.message).toContain("spec.actions[0].teams: found a type of action");
    expect(ready()?.message).toContain("ACTION_UNSUPPORTED");
  });

  it("rejects every action if the controller carries out none", async () => {
    const actions = [{ name: "tell", at: "AtEnd", ...slack }];
    stage.start(actions, {}, { actionPorts: undefined });
    await stage.world.pass(seconds(10));
    expect(ready()).toMatchObject({ status: "False", reason: "ActionInvalid" });
    expect(ready()?.message).toBe(
      "spec.actions[0].slack: found an action that this controller does not carry out, expected no actions, or the controller of lastcall run (ACTION_UNSUPPORTED)",
    );
  });

  it("leaves Ready Unknown until the first check is over", async () => {
    stage.tell.check = () => stage.world.clock.sleep(seconds(5), never).then(() => undefined);
    stage.start([{ name: "tell", at: "AtEnd", ...slack }]);
    await stage.world.pass(seconds(4));
    expect(ready()).toMatchObject({
      ...{ status: "Unknown", reason: "ActionsUnchecked" },
      message: "The actions of the policy have not been checked yet.",
    });
    await stage.world.pass(seconds(4));
    expect(ready()).toMatchObject({ status: "True", reason: "Understood" });
  });

  it("leaves Ready Unknown if a check fails, and names the field and the reason", async () => {
    stage.tell.check = async () => {
      throw new LastcallError("API_UNREACHABLE", "Cannot read Secret a: found no answer");
    };
    stage.start([
      { name: "mute", at: "AtNotice", ...silence },
      { name: "tell", at: "AtEnd", ...slack },
    ]);
    await stage.world.pass(seconds(10));
    expect(ready()).toMatchObject({
      ...{ status: "Unknown", reason: "ActionsUnchecked" },
      message:
        "spec.actions[1].slack could not be checked: Cannot read Secret a: found no answer (API_UNREACHABLE)",
    });
    expect(stage.world.counted).toContain("lastcall_errors_total code=API_UNREACHABLE");
    stage.mute.problem = forbidden;
    await stage.world.pass(minutes(2));
    expect(ready()).toMatchObject({ status: "False", reason: "ActionInvalid" });
    expect(ready()?.message).toMatch(/^spec.actions\[0\]\..*; spec.actions\[1\]\.slack could not/);
  });

  it("runs again as soon as the policy changes", async () => {
    stage.tell.problem = forbidden;
    stage.start([{ name: "tell", at: "AtEnd", ...slack }]);
    await stage.world.pass(seconds(10));
    expect(ready()?.status).toBe("False");
    stage.world.patchPolicy({ spec: { actions: [{ name: "mute", at: "AtNotice", ...silence }] } });
    await stage.world.pass(seconds(10));
    expect(ready()?.status).toBe("True");
  });

  it("runs again within a minute once the policy gets its first node", async () => {
    const inB = { key: "topology.kubernetes.io/zone", operator: "In", values: ["b"] };
    const nodeSelector = { nodeSelectorTerms: [{ matchExpressions: [inB] }] };
    stage.start([{ name: "tell", at: "AtEnd", ...slack }], { nodeSelector });
    await stage.world.pass(seconds(10));
    expect(ready()?.status).toBe("True");
    stage.tell.problem = forbidden;
    stage.world.addNode("n3", "b");
    await stage.world.pass(minutes(2));
    expect(ready()?.status).toBe("False");
  });

  it("does not keep a notice from draining the node", async () => {
    stage.tell.problem = forbidden;
    stage.start([{ name: "tell", at: "AtNotice", ...slack }]);
    await stage.giveNotice();
    await stage.world.pass(seconds(10));
    expect(stage.world.podsOn("n1")).toEqual([]);
  });

  it("calls no runner for a policy without actions, and keeps Ready True", async () => {
    stage.start([]);
    await stage.world.pass(minutes(20));
    expect(ready()).toMatchObject({ status: "True", reason: "Understood" });
    expect([...stage.mute.calls, ...stage.tell.calls]).toEqual([]);
  });
});

describe("a dry run", () => {
  const actions = [
    { name: "mute", at: "AtNotice", ...silence },
    { name: "spot", at: "AtEnd", causes: ["SpotInterruption"], ...slack },
  ];

  it("logs the actions that a planned departure would have, and carries none out", async () => {
    stage.start(actions, { lifetime: { max: "1h", reserve: "0s" } }, { dryRun: true });
    await stage.world.pass(minutes(90));
    const said = stage.world.logged.find((line) => line.includes("would-schedule"));
    expect(said).toContain('"actions":"mute (alertmanagerSilence, AtNotice)"');
    expect([...stage.mute.calls, ...stage.tell.calls]).toEqual([]);
  });

  it("set in the policy carries no action out at a notice, and the departure ends", async () => {
    stage.start(actions, { dryRun: true });
    await stage.giveNotice();
    await stage.world.pass(seconds(20));
    stage.deleteNode();
    await stage.world.pass(seconds(5));
    expect([...stage.mute.calls, ...stage.tell.calls]).toEqual([]);
    expect(stage.states).toEqual({});
  });
});
