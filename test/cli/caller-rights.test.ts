import { describe, expect, it } from "vitest";
import { callerRights, RightsWatch } from "../../src/cli/board/connection-watch.ts";
import type { KubeRequest, KubeSender } from "../../src/contracts/kube-api.ts";
import { seconds } from "../../src/core/time/time.ts";
import { LastcallError } from "../../src/errors.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { waitUntil } from "../support/wait-until.ts";

/** A server that allows these verbs on anything. */
function allowing(...verbs: readonly string[]): KubeSender {
  return {
    send: async ({ body }: KubeRequest) => {
      const { spec } = body as { spec: { resourceAttributes: { verb: string } } };
      const allowed = verbs.includes(spec.resourceAttributes.verb);
      return { status: 201, body: { status: { allowed } } };
    },
  };
}

it("who may only look may do nothing, and lacks nothing that is to be seen", async () => {
  const found = await callerRights(allowing("list"));
  expect(Object.values(found?.rights ?? {})).toEqual([false, false, false, false, false]);
  expect(found?.missing).toEqual([]);
});

it("each right is asked for by itself, and what cannot be seen is named one by one", async () => {
  const found = await callerRights(allowing("patch"));
  expect(found?.rights).toEqual({
    ...{ patchNodes: true, patchDepartures: true, patchPolicies: true },
    ...{ createDepartures: false, deleteDepartures: false },
  });
  expect(found?.missing).toEqual([
    expect.stringMatching(/^Cannot list pods: it is forbidden/),
    expect.stringMatching(/^Cannot list poddisruptionbudgets\.policy: it is forbidden/),
  ]);
});

it("a server that does not answer leaves open what may be done", async () => {
  const away = new LastcallError("API_UNREACHABLE", "Cannot reach the API server");
  expect(await callerRights({ send: () => Promise.reject(away) })).toBeUndefined();
});

describe("the rights of somebody who looks", () => {
  /** A server whose answers change, and that counts who asks. */
  function watched() {
    const clock = new ManualClock();
    const server = { verbs: ["list"], asked: 0 };
    const api: KubeSender = {
      send: (request) => {
        server.asked += 1;
        return allowing(...server.verbs).send(request);
      },
    };
    let changes = 0;
    const onChange = (): void => {
      changes += 1;
    };
    const rights = new RightsWatch({ api, clock, onChange });
    return { rights, clock, server, changes: () => changes };
  }

  it("are asked again when they look, after a while and not before", async () => {
    const { rights, clock, server, changes } = watched();
    await rights.ask();
    const [once] = [server.asked];
    server.verbs = ["list", "patch"];
    rights.look();
    expect(server.asked).toBe(once);
    clock.freezeFor(seconds(20));
    rights.look();
    rights.look();
    await waitUntil(async () => changes() === 2, { what: "they are known", timeoutMs: 1000 });
    expect(server.asked).toBe(2 * once);
    expect(rights.known().rights).toMatchObject({ patchNodes: true, createDepartures: false });
  });

  it("are not asked before the cluster has been there, and without a look never", () => {
    const { rights, clock, server } = watched();
    rights.look();
    clock.freezeFor(seconds(600));
    expect(server.asked).toBe(0);
  });
});
