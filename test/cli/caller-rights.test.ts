import { expect, it } from "vitest";
import { callerRights } from "../../src/cli/board/caller-rights.ts";
import type { KubeRequest, KubeSender } from "../../src/contracts/kube-api.ts";
import { LastcallError } from "../../src/errors.ts";

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
