import type { KubeApi } from "../../contracts/kube-api.ts";
import type { Policy } from "../../core/policy/policy.ts";
import { spotNodes, type WorkloadFacts } from "../../doctor/facts.ts";
import { doctorReport, isRefused } from "../../doctor/report.ts";
import { NodeClaimReleaser } from "../../kube/node-claim-releaser.ts";
import { cloudParts } from "../assemble/cloud-parts.ts";
import { connect } from "../cluster/connect.ts";
import type { CommandInput, CommandRun } from "../command-line/command-spec.ts";
import { printData } from "../command-line/print-data.ts";
import { doctorTable } from "../doctor/doctor-table.ts";
import { gatherFacts, type Outside } from "../doctor/gather-facts.ts";
import { machineFacts } from "../doctor/machine-facts.ts";

type Input = CommandInput<"doctor">;

/** Whether all is set up right; with a check that failed the answer is 3. Changes nothing. */
export const runDoctor: CommandRun<"doctor"> = async (input) => {
  const { options, io } = input;
  const { api, close } = await connect(options, io);
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

/** The clouds and the queue, asked as the controller would ask them. */
function outsideOf({ options, io }: Input, api: KubeApi): Outside {
  return {
    machines: async (facts) => {
      const spot = spotNodes(facts);
      const policies: readonly Policy[] =
        facts.policies.kind === "Known" ? facts.policies.value.policies : [];
      if (spot.kind === "Unknown") return [];
      const { releaserFor } = await cloudParts(
        {
          ...options,
          // No feed is wanted: the queue is looked at by itself, and nothing is taken out of it.
          ...{
            sqsQueueUrl: undefined,
            sqsReceivers: 1,
            sqsUnknown: "Leave",
            sqsCompleteHooks: false,
          },
        },
        io,
      );
      const nodeClaims = new NodeClaimReleaser({ api, ...io });
      return machineFacts(spot.value, policies, {
        releaserFor: (machine) =>
          machine.mode === "NodeClaim" ? nodeClaims : releaserFor(machine),
        io,
      });
    },
    queue: (controller, signal) => queueFacts(options.sqsQueueUrl, controller, { io, signal }),
  };
}

async function queueFacts(
  named: string | undefined,
  controller: WorkloadFacts | undefined,
  { io, signal }: { readonly io: Input["io"]; readonly signal: AbortSignal },
) {
  const url = named ?? controller?.options["sqs-queue-url"];
  if (url === undefined) return undefined;
  const { SqsClient } = await import("../../cloud/aws/queue/sqs-client.ts");
  const hasEndpoint = (io.env.AWS_ENDPOINT_URL_SQS ?? io.env.AWS_ENDPOINT_URL ?? "") !== "";
  return new SqsClient({ url, clock: io.clock, hasEndpoint }).depth(signal);
}
