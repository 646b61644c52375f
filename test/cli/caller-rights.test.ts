import { describe, expect, it } from "vitest";
import { callerRights, RightsWatch } from "../../src/cli/board/connection-watch.ts";
import type { KubeRequest, KubeSender } from "../../src/contracts/kube-api.ts";
import { seconds } from "../../src/core/time/time.ts";
import { LastcallError } from "../../src/errors.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { waitUntil } from "../support/wait-until.ts";

/** An API server that allows these verbs on every resource. */
function allowing(...verbs: readonly string[]): KubeSender {
  return {
    send: async ({ body }: KubeRequest) => {
      const { spec } = body as { spec: { resourceAttributes: { verb: string } } };
      const allowed = verbs.includes(spec.resourceAttributes.verb);
      return { status: 201, body: { status: { allowed } } };
    },
  };
}

it("a caller who may only list has no right to act, and can see everything", async () => {
  const found = await callerRights(allowing("list"));
  expect(Object.values(found?.rights ?? {})).toEqual([false, false, false, false, false]);
  expect(found?.missing).toEqual([]);
});

it("each right is reviewed separately, and each forbidden list is named", async () => {
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

it("the caller's rights are unknown if the server does not respond", async () => {
  const away = new LastcallError("API_UNREACHABLE", "Cannot reach the API server");
  expect(await callerRights({ send: () => Promise.reject(away) })).toBeUndefined();
});

describe("RightsWatch", () => {
  /** A server whose answers can change, and that counts requests. */
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

  it("reviews the rights again when a page looks 20 s later, but not at once", async () => {
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

  it("reviews nothing until the rights were asked for once", () => {
    const { rights, clock, server } = watched();
    rights.look();
    clock.freezeFor(seconds(600));
    expect(server.asked).toBe(0);
  });
});
