import type { KubeApi } from "../../contracts/kube-api.ts";
import type { Policy } from "../../core/policy/policy.ts";
import { type CheckStatus, optionOf, spotNodes, type WorkloadFacts } from "../../doctor/facts.ts";
import {
  type DoctorReport,
  doctorReport,
  isRefused,
  type ReportedCheck,
} from "../../doctor/report.ts";
import { LastcallError } from "../../errors.ts";
import { NodeClaimReleaser } from "../../kube/node-claim-releaser.ts";
import { cloudPorts } from "../assemble/controller-ports.ts";
import { connect } from "../cluster/connect.ts";
import {
  type CommandInput,
  type CommandIo,
  type CommandRun,
  printData,
} from "../command-line/command.ts";
import { folded } from "../command-line/terminal.ts";
import { gatherFacts, type Outside } from "../doctor/gather-facts.ts";
import { machineFacts, orphanMachines } from "../doctor/machine-facts.ts";

type DoctorInput = CommandInput<"doctor">;

/**
 * Checks whether everything is set up correctly. The exit code is 3 if a check failed. Changes
 * nothing.
 */
export const runDoctor: CommandRun<"doctor"> = async (input) => {
  const { options, io } = input;
  const { api, close } = await connect({ ...options, signal: io.signal }, io);
  if (io.isTerminal && !options.quiet) io.err("Asking the cluster and the clouds …\n");
  try {
    const outside = outsideOf(input, api);
    const facts = await gatherFacts({ api, io, namespace: options.namespace, outside });
    const report = doctorReport(facts);
    if (options.output === "table") io.out(doctorTable(report, io));
    else await printData(report, options.output, io);
    return isRefused(report, options.failOn) ? 3 : 0;
  } finally {
    close();
  }
};

/** The clouds and the queue, contacted as the controller would contact them. */
function outsideOf({ options, io }: DoctorInput, api: KubeApi): Outside {
  const clouds = () =>
    cloudPorts(
      {
        ...options,
        // No feed: the queue's attributes are read, but no message is received.
        ...{
          sqsQueueUrl: undefined,
          sqsReceivers: 1,
          sqsUnknown: "Leave",
          sqsCompleteHooks: false,
        },
      },
      io,
    );
  return {
    machines: async (facts) => {
      const spot = spotNodes(facts);
      const policies: readonly Policy[] =
        facts.policies.kind === "Known" ? facts.policies.value.policies : [];
      if (spot.kind === "Unknown") return [];
      const { releaserFor } = await clouds();
      const nodeClaims = new NodeClaimReleaser({ api, ...io });
      return machineFacts(spot.value, policies, {
        releaserFor: (machine) =>
          machine.mode === "NodeClaim" ? nodeClaims : releaserFor(machine),
        io,
      });
    },
    orphans: async (beside, nodes, signal) =>
      orphanMachines({ beside, nodes }, { ...(await clouds()), io }, signal),
    queue: (controller, signal) => queueFacts(options.sqsQueueUrl, controller, { io, signal }),
  };
}

async function queueFacts(
  named: string | undefined,
  controller: WorkloadFacts | undefined,
  { io, signal }: { readonly io: DoctorInput["io"]; readonly signal: AbortSignal },
) {
  const set = controller === undefined ? undefined : optionOf(controller, "sqs-queue-url");
  if (named === undefined && set?.kind === "Unknown") {
    throw new LastcallError("CONFIG_INVALID", `${set.why}: name the queue with --sqs-queue-url`);
  }
  const url = named ?? (set?.kind === "Known" ? set.value : undefined);
  if (url === undefined) return undefined;
  const { SqsClient } = await import("../../cloud/aws/queue/sqs-client.ts");
  const hasEndpoint = (io.env.AWS_ENDPOINT_URL_SQS ?? io.env.AWS_ENDPOINT_URL ?? "") !== "";
  return new SqsClient({ url, clock: io.clock, hasEndpoint }).depth(signal);
}

const colours: Readonly<Record<CheckStatus, number>> = { Pass: 32, Warn: 33, Fail: 31, Skip: 90 };
const leastWidth = 30;

/** Skipped for the same reason, more checks than this are printed as one. */
const sameSkips = 3;

/**
 * The report as text: one line per check, wrapped at the width of the terminal, and a summary. Many
 * checks that are skipped for the same reason, such as an API server that does not respond, are one
 * line.
 */
export function doctorTable(
  { checks, summary }: DoctorReport,
  { colour, columns }: Pick<CommandIo, "colour" | "columns">,
): string {
  const skips = Map.groupBy(
    checks.filter(({ status }) => status === "Skip"),
    ({ message }) => message,
  );
  const shown = checks.flatMap((check) => {
    const same = check.status === "Skip" ? (skips.get(check.message) ?? []) : [];
    if (same.length <= sameSkips) return check;
    return check === same[0] ? { ...check, id: `${same.length} checks` } : [];
  });
  const idWidth = Math.max(...checks.map(({ id }) => id.length));
  const indent = " ".repeat("PASS  ".length + idWidth + 2);
  const width = Math.max(leastWidth, columns - indent.length);
  const line = (check: ReportedCheck) => {
    const word = check.status.toUpperCase();
    const tinted = colour ? `\u001b[${colours[check.status]}m${word}\u001b[0m` : word;
    const texts = [
      ...folded(check.message, width),
      ...(check.fix === null ? [] : folded(`fix: ${check.fix}`, width)),
    ];
    return `${tinted}  ${check.id.padEnd(idWidth)}  ${texts.join(`\n${indent}`)}\n`;
  };
  const { Pass: passed, Warn: warned, Fail: failed, Skip: skipped } = summary;
  const sum = `${passed} passed, ${warned} warned, ${failed} failed, ${skipped} skipped`;
  return `${shown.map(line).join("")}\n${sum}\n`;
}
