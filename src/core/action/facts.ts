import { type NodeIdentity, parseProviderId } from "../cluster/node.ts";
import { cloudDeadline, type Departure } from "../departure/departure.ts";
import { formatInstant } from "../time/time.ts";
import { departureSummary } from "./summary.ts";
import type { TemplateFacts } from "./template.ts";

/** What the templates of a departure's actions may name, as it is now. */
export function templateFacts(departure: Departure, policy: string): TemplateFacts {
  const { node, cause, status, name } = departure;
  const deadlineAt = cloudDeadline(departure) ?? departure.deadlineAt;
  return {
    node: node.name,
    instanceId: instanceIdOf(node) ?? "",
    providerID: node.providerID ?? "",
    cause,
    deadline: deadlineAt === undefined ? "" : formatInstant(deadlineAt),
    outcome: status.outcome ?? "",
    policy,
    departure: name,
    summary: departureSummary(departure),
  };
}

/** The machine as its cloud names it; undefined where the providerID is of no known form. */
export function instanceIdOf({ providerID }: Pick<NodeIdentity, "providerID">): string | undefined {
  const machine = providerID === undefined ? undefined : parseProviderId(providerID);
  switch (machine?.cloud) {
    case "aws":
      return machine.instanceId;
    case "gcp":
      return machine.instance;
    case "azure":
      return machine.resourceId.split("/").at(-1);
    default:
      return undefined;
  }
}
