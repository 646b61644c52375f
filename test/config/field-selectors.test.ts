import { expect, it } from "vitest";
import type { Clock } from "../../src/contracts/clock.ts";
import { departuresPath } from "../../src/kube/object/api-call.ts";
import { modelClusterApi } from "../support/model-cluster-api.ts";

const clock = { now: () => Date.UTC(2026, 10, 20) } as unknown as Clock;

it.each([
  ["spec.policy=spot", ["n1", "n2"]],
  ["status.phase=Ended", ["n2", "n3"]],
  ["status.phase=Ended,status.outcome=Forced", ["n3"]],
  ["status.phase!=Ended", ["n1"]],
  ["spec.node.name=n2", ["n2"]],
  ["spec.cause=Manual", ["n3"]],
  ["status.policy=spot", ["n3"]],
])("kubectl get departures --field-selector %s", async (fieldSelector, names) => {
  const api = await modelClusterApi(clock);
  for (const [name, policy, cause, outcome] of [
    ["n1", "spot", "Planned", undefined],
    ["n2", "spot", "Planned", "Planned"],
    ["n3", undefined, "Manual", "Forced"],
  ] as const) {
    const metadata = { name };
    const body = {
      ...{ apiVersion: "lastcall.dev/v1alpha1", kind: "Departure", metadata },
      spec: { node: { name, uid: `uid-${name}` }, cause, policy },
    };
    const made = await api.send({ method: "POST", path: departuresPath, body });
    expect(made.status).toBe(201);
    if (outcome === undefined) continue;
    const patched = await api.send({
      ...{ method: "PATCH", path: `${departuresPath}/${name}/status` },
      ...{ patchType: "application/merge-patch+json" },
      body: {
        status: { phase: "Ended", outcome, ...(policy === undefined && { policy: "spot" }) },
      },
    });
    expect(patched.status).toBe(200);
  }
  const { body } = await api.send({
    method: "GET",
    path: departuresPath,
    query: { fieldSelector },
  });
  const { items } = body as { items: { metadata: { name: string } }[] };
  expect(items.map(({ metadata }) => metadata.name)).toEqual(names);
});
