import { beforeEach, expect, it } from "vitest";
import type { KubeSender } from "../../src/contracts/kube-api.ts";
import { KubeOperatorWrites } from "../../src/kube/departure-store.ts";
import { ModelWorld, nodes } from "../support/model-world.ts";

let world: ModelWorld;
let writes: KubeOperatorWrites;
let userInfo: object;

beforeEach(() => {
  world = new ModelWorld();
  world.addNode("n1", "a");
  userInfo = { username: "eve@example.org" };
  const api: KubeSender = {
    send: (request) =>
      request.path === "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        ? Promise.resolve({ status: 201, body: { status: { userInfo } } })
        : world.api.send(request),
  };
  writes = new KubeOperatorWrites(api);
});

const metadataOf = () => world.get(`${nodes}/n1`)?.metadata;
const hold = (seen: string | null, value: string | null) =>
  writes.hold({ name: "n1", uid: metadataOf()?.uid ?? "", seen }, value);

it("writes who set a hold next to it, and removes that with it", async () => {
  expect(await hold(null, "true")).toEqual({ kind: "Done" });
  expect(metadataOf()?.annotations).toMatchObject({
    "lastcall.dev/hold": "true",
    "lastcall.dev/hold-by": "eve@example.org",
  });
  expect(await hold("true", null)).toEqual({ kind: "Done" });
  expect(metadataOf()?.annotations ?? {}).not.toHaveProperty("lastcall.dev/hold-by");
});

it("leaves no name from before if the API server does not say who sets the hold", async () => {
  await hold(null, "true");
  userInfo = {};
  expect(await hold("true", "4h")).toEqual({ kind: "Done" });
  expect(metadataOf()?.annotations).toMatchObject({ "lastcall.dev/hold": "4h" });
  expect(metadataOf()?.annotations).not.toHaveProperty("lastcall.dev/hold-by");
});
