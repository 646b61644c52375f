import type { KubeObject } from "../../src/contracts/kube-api.ts";

/** Where a policy can be created. */
interface PolicyWorld {
  create(path: string, body: KubeObject): KubeObject;
}

export function spotPolicy(
  world: PolicyWorld,
  spec: Readonly<Record<string, unknown>>,
  name = "spot",
): void {
  world.create("/apis/lastcall.dev/v1alpha1/departurepolicies", {
    apiVersion: "lastcall.dev/v1alpha1",
    ...{ kind: "DeparturePolicy", metadata: { name } },
    spec,
  });
}
