import { beforeEach, describe, expect, it } from "vitest";
import { TargetRunner } from "../../../../src/cloud/aws/actions/deregister-targets.ts";
import { TargetIndex } from "../../../../src/cloud/aws/actions/target-index.ts";
import type { Target, TrafficGroups } from "../../../../src/cloud/aws/actions/traffic-groups.ts";
import { seededRng } from "../../../../src/core/chance/chance.ts";
import { LastcallError } from "../../../../src/errors.ts";
import { aTask } from "../../../contract/action-runner.contract.ts";
import { ManualClock } from "../../../support/manual-clock.ts";

const never = new AbortController().signal;
const instanceId = "i-0123456789abcdef0";
const onRecord = (...ids: readonly string[]) => ({
  targets: ids.map((id) => ({ targetGroupArn: "web", id, port: 80 })),
});

describe("a machine whose departure is cancelled", () => {
  let asked: string[];
  let sent: PromiseWithResolvers<void>;
  let addresses: () => Promise<{ node: string[]; pods: string[] }>;
  let classicFault: LastcallError | undefined;
  let runner: TargetRunner;

  beforeEach(() => {
    asked = [];
    sent = Promise.withResolvers();
    addresses = async () => ({ node: [], pods: [] });
    classicFault = undefined;
    const group = { kind: "TargetGroup", id: "web", byAddress: false, isOwned: false } as const;
    const registered: readonly Target[] = [{ id: instanceId, port: 80 }];
    const kindOf = (kind: TrafficGroups["kind"], own: Partial<TrafficGroups>): TrafficGroups => ({
      kind,
      read: async () => [],
      deregister: async () => {},
      register: async () => "Registered",
      remaining: async () => [],
      ...own,
    });
    const kinds = [
      kindOf("TargetGroup", {
        read: async () => {
          asked.push("read");
          return [{ group, targets: registered }];
        },
        deregister: async () => {
          asked.push("asked");
          await sent.promise;
          asked.push("deregistered");
        },
        register: async (_, targets) => {
          asked.push(`registered ${targets.map(({ id }) => id).join(" ")}`);
          return "Registered";
        },
      }),
      kindOf("Classic", {
        read: async () => {
          if (classicFault !== undefined) throw classicFault;
          return [];
        },
      }),
    ];
    const clock = new ManualClock();
    const instance = { instanceId, state: "running" };
    const network = { interfacesOf: async () => [], instance: async () => instance as never };
    const index = new TargetIndex({
      ...{ kinds, network, machines: () => [], clock, rng: seededRng(1) },
    });
    const traffic = { index, kinds, instances: network };
    runner = new TargetRunner({ trafficIn: () => traffic, clock, rng: seededRng(1) });
  });

  function task(...ids: readonly string[]) {
    const { target, ...rest } = aTask({ kind: "deregisterTargets", wait: false });
    const its = { ...target, providerID: `aws:///eu-west-1a/${instanceId}`, addresses };
    return { ...rest, target: its, undo: onRecord(...ids) };
  }

  it("is registered again only after the request that deregistered it has ended", async () => {
    const over = new AbortController();
    const applied = runner.apply(task(instanceId), over.signal);
    await expect.poll(() => asked).toEqual(["asked", "read"]);
    over.abort(new Error("the departure is rolled back"));
    await expect(applied).rejects.toThrow("rolled back");
    const undone = runner.undo(task(instanceId), never);
    // Everything that does not wait for the request has happened by now.
    await new Promise((resolve) => setImmediate(resolve));
    expect(asked).not.toContain(`registered ${instanceId}`);
    sent.resolve();
    await undone;
    expect(asked).toContain(`registered ${instanceId}`);
    expect(asked.indexOf("deregistered")).toBeLessThan(asked.indexOf(`registered ${instanceId}`));
  });

  it("is not reported as restored while its addresses cannot be looked up", async () => {
    const unreachable = new LastcallError("API_UNREACHABLE", "Cannot list pods: no answer");
    addresses = () => Promise.reject(unreachable);
    await expect(runner.undo(task(instanceId, "10.0.0.7"), never)).rejects.toBe(unreachable);
    expect(asked).toContain(`registered ${instanceId}`);
    await expect(runner.undo(task(instanceId), never)).resolves.toBeDefined();
  });

  it("leaves the known groups without another read if another kind may not be read", async () => {
    classicFault = new LastcallError("CLOUD_RIGHT_MISSING", "Cannot read classic load balancers");
    sent.resolve();
    for (const _ of ["first", "second", "third"]) {
      await expect(runner.apply(task(instanceId), never)).rejects.toBe(classicFault);
    }
    expect(asked.filter((one) => one === "read")).toHaveLength(1);
    expect(asked.filter((one) => one === "deregistered")).toHaveLength(3);
  });
});
