import type { NodeIdentity } from "../cluster/node.ts";

/** For `kubectl get departures -l`; nothing reads them. Why there are no more: ADR 0022. */
export const nodeLabel = "lastcall.dev/node";
export const policyLabel = "lastcall.dev/policy";

/**
 * What the API server accepts as the value of a label. A name may be longer, and what a person
 * wrote into a Departure may be anything.
 */
const labelValue = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;

/** The labels by which a Departure is selected: the names that can be the value of one. */
export function departureLabels(
  node: NodeIdentity,
  policy: string | undefined,
): Readonly<Record<string, string>> {
  const names = { [nodeLabel]: node.name, [policyLabel]: policy };
  return Object.fromEntries(
    Object.entries(names).flatMap(([label, name]) =>
      name !== undefined && labelValue.test(name) ? [[label, name]] : [],
    ),
  );
}
