import { instanceIdOf } from "../cluster/node.ts";
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
