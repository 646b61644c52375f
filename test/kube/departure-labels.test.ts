import { describe, expect, it } from "vitest";
import type { KubeApi } from "../../src/contracts/kube-api.ts";
import type { Departure } from "../../src/core/departure/departure.ts";
import { KubeDepartureStore } from "../../src/kube/departure-store.ts";
import { departuresPath } from "../../src/kube/object/api-call.ts";
import { at } from "../core/fleet-builder.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { modelClusterApi } from "../support/model-cluster-api.ts";

const departAt = at("2026-11-20T12:00:00Z");
const longName = `${"a".repeat(60)}.${"b".repeat(60)}`;

async function namesOf(api: KubeApi, labelSelector: string): Promise<readonly string[]> {
  const { body } = await api.send({
    method: "GET",
    path: departuresPath,
    query: { labelSelector },
  });
  const { items } = body as { items: { metadata: { name: string } }[] };
  return items.map(({ metadata }) => metadata.name);
}

async function madeIn(store: KubeDepartureStore, node: string, policy?: string) {
  const made = await store.create({
    ...{ name: `${node.slice(0, 60)}-1`, node: { name: node, uid: `uid-${node}` } },
    ...{ cause: "Planned", source: "planner", policy, departAt },
    ...{ reason: "Spaced", message: "it leaves" },
  });
  return departureOf(made);
}

function departureOf(result: { readonly kind: string; readonly departure?: Departure }): Departure {
  if (result.departure === undefined) throw new Error(result.kind);
  return result.departure;
}

describe("kubectl get departures -l", () => {
  it.each([
    ["lastcall.dev/policy=spot", ["n1-1", "n2-1"]],
    ["lastcall.dev/policy in (spot, batch)", ["n1-1", "n2-1", "n3-1"]],
    ["lastcall.dev/node=n2", ["n2-1"]],
    ["lastcall.dev/policy=spot,lastcall.dev/node!=n1", ["n2-1"]],
    ["!lastcall.dev/policy", ["n4-1", `${longName.slice(0, 60)}-1`]],
  ])("%s", async (selector, names) => {
    const api = await modelClusterApi(new ManualClock());
    const store = new KubeDepartureStore(api);
    for (const [node, policy] of [
      ["n1", "spot"],
      ["n2", "spot"],
      ["n3", "batch"],
      ["n4", undefined],
      [longName, longName],
    ] as const) {
      await madeIn(store, node, policy);
    }
    expect((await namesOf(api, selector)).toSorted()).toEqual([...names].toSorted());
  });

  it("finds a departure under the policy that selects its node now, with no write of its own", async () => {
    const api = await modelClusterApi(new ManualClock());
    const store = new KubeDepartureStore(api);
    const made = await madeIn(store, "n1", "spot");
    const moved = departureOf(await store.move(made, { departAt, policy: "batch" }));
    expect(await namesOf(api, "lastcall.dev/policy=spot")).toEqual([]);
    expect(await namesOf(api, "lastcall.dev/policy=batch")).toEqual(["n1-1"]);
    await store.move(moved, { departAt, policy: longName });
    expect(await namesOf(api, "lastcall.dev/policy")).toEqual([]);
    expect(await namesOf(api, "lastcall.dev/node=n1")).toEqual(["n1-1"]);
  });

  it("finds what a person or an agent created once the controller has started or ended it", async () => {
    const api = await modelClusterApi(new ManualClock());
    const store = new KubeDepartureStore(api);
    const spec = { node: { name: "n1", uid: "u1" }, cause: "SpotInterruption" };
    const body = { apiVersion: "lastcall.dev/v1alpha1", kind: "Departure", spec };
    await api.send({
      ...{ method: "POST", path: departuresPath },
      body: { ...body, metadata: { name: "n1-1", labels: { team: "a" } } },
    });
    const found = departureOf(await store.read("n1-1"));
    const begun = departureOf(await store.finalize(found, "Add"));
    expect(await namesOf(api, "lastcall.dev/node=n1,team=a")).toEqual(["n1-1"]);
    const status = { ...begun.status, policy: "spot" };
    const known = departureOf(await store.record(begun, { status: () => status }));
    await store.finalize(known, "Remove");
    expect(await namesOf(api, "lastcall.dev/policy=spot,team=a")).toEqual(["n1-1"]);
  });

  it("does not find a policy that somebody made up, which keeps no departure from its writes", async () => {
    const api = await modelClusterApi(new ManualClock());
    const store = new KubeDepartureStore(api);
    for (const policy of ["the night shift", "-", "x-", `${"a".repeat(64)}`]) {
      const made = await madeIn(store, "n1", policy);
      const begun = departureOf(await store.finalize(made, "Add"));
      expect(await namesOf(api, "lastcall.dev/node=n1")).toEqual(["n1-1"]);
      expect(await namesOf(api, "lastcall.dev/policy")).toEqual([]);
      const free = departureOf(await store.finalize(begun, "Remove"));
      await store.remove(free);
    }
  });
});
