import type { MachineState } from "../cluster/machine.ts";
import { existedAt } from "../cluster/machine-age.ts";
import type { NodeFacts } from "../cluster/node.ts";
import { type Departure, isNoticed } from "../departure/departure.ts";
import type { PhaseResult } from "../departure/ledger.ts";
import { inEnglish } from "../reason/english.ts";
import type { Instant } from "../time/time.ts";

/**
 * Whether only the cloud can say what has ended a departure: its Node is gone, or has another boot.
 * A notice that is not withdrawn stands, whatever the cloud shows, unless it is only the kubelet's:
 * a reboot that anybody makes begins with the same shutdown.
 */
export function isInDoubt({ event, reason }: PhaseResult, departure: Departure): boolean {
  const isReplaced = event === "MachineReplaced" && reason === "MachineReplaced";
  const stands = isNoticed(departure) && departure.withdrawnAt === undefined;
  const isCloudsWord = stands && departure.cause !== "NodeShutdown";
  if (isCloudsWord || !(isReplaced || event === "NodeGone")) return false;
  return departure.node.providerID !== undefined && departure.createdAt !== undefined;
}

/**
 * What shows that a user's request which has not started was about another machine from the start,
 * or that nothing shows its machine ever to have existed: then the cloud has taken none. `node` is
 * the Node of its name. A uid ends with its Node, and the API server lets nobody change a
 * providerID (kubernetes `pkg/apis/core/validation/validation.go`, ValidateNodeUpdate).
 */
export function strayRequest(
  { cause, node: asked, createdAt, noticedAt, status }: Departure,
  node: NodeFacts | undefined,
): string | undefined {
  const isOnlyAsked = cause === "Manual" && noticedAt === undefined;
  if (!isOnlyAsked || status.startedAt !== undefined) return undefined;
  const { name, uid, providerID } = asked;
  const isOlder =
    createdAt !== undefined && node?.createdAt !== undefined && node.createdAt < createdAt;
  if (isOlder && node.uid !== uid) {
    return inEnglish({ says: "detail.OtherUid", node: name, uid: node.uid });
  }
  if (isOlder && providerID !== undefined && providerID !== node.providerID) {
    const { providerID: known } = node;
    return inEnglish({ says: "detail.OtherProviderID", node: name, providerID: known });
  }
  if (node?.uid === uid || providerID !== undefined) return undefined;
  return inEnglish({ says: "detail.NoSuchNode", node: name, uid });
}

/**
 * What a cloud says of the machine. `Silent`: it has not answered. `NobodyToAsk`: no cloud is set
 * up here. Then the end of a Node is that of its machine: the cloud's node controller deletes the
 * Nodes of machines that no longer exist, and few people delete one. Source: k8s.io/cloud-provider
 * `controllers/nodelifecycle/node_lifecycle_controller.go`.
 */
export type CloudAnswer = MachineState | "Silent" | "NobodyToAsk";

/**
 * The same end in the light of what the cloud says. A machine that is gone was taken by the cloud;
 * if the cloud shows that it runs, it has only been rebooted, or somebody has deleted its Node. If
 * it shows neither, nobody knows, and the departure is over all the same.
 */
export function inTheLightOf<Result extends PhaseResult>(
  answer: CloudAnswer,
  found: Result,
  about: { readonly departure: Departure; readonly now: Instant },
): Result {
  switch (fateOf(answer, about)) {
    case "Taken":
      return found;
    case "Runs": {
      if (found.event === "MachineReplaced") return { ...found, reason: "MachineRebooted" };
      const detail = inEnglish({ says: "detail.NodeDeleted" });
      return { ...found, event: "Cancelled", reason: "CancelledByPerson", detail };
    }
    case "Unknown": {
      const reason = found.event === "NodeGone" ? "NodeGone" : "WrongMachine";
      const detail = inEnglish({ says: "detail.MachineUnknown" });
      return { ...found, event: "Cancelled", reason, detail };
    }
  }
}

function fateOf(
  answer: CloudAnswer,
  { departure, now }: { readonly departure: Departure; readonly now: Instant },
): "Taken" | "Runs" | "Unknown" {
  if (answer === "Silent") return "Unknown";
  if (answer === "NobodyToAsk" || answer.kind === "Absent" || !answer.running) return "Taken";
  const { bornAt, asOf } = answer;
  const { createdAt } = departure;
  if (bornAt === undefined || createdAt === undefined) return "Unknown";
  if (existedAt(createdAt, { bornAt, asOf }, now)) return "Runs";
  // By the two clocks themselves it is older: one of them was set since, and ages show nothing.
  return bornAt <= createdAt ? "Unknown" : "Taken";
}
