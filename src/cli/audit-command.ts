import { runAudit } from "./audit.ts";
import type { CommandRun } from "./command-spec.ts";
import { connect } from "./connect.ts";
import { nodeFiles } from "./node-files.ts";
import { readCluster } from "./read-cluster.ts";
import { version } from "./version.ts";

/** Judges manifests, a recording of a cluster, or, where no file is named, the live cluster. */
export const runAuditCommand: CommandRun<"audit"> = async ({ options, io }) =>
  runAudit(
    {
      files: options.filename,
      from: options.from,
      platforms: options.platform,
      failOn: options.failOn,
      output: options.output,
      namespace: options.namespace,
      baseline: options.baseline,
      quiet: options.quiet,
      version,
    },
    {
      ...nodeFiles(io.files.stdinBytes()),
      stdout: io.out,
      stderr: io.err,
      isTty: io.isTerminal,
      colour: io.colour,
      readCluster: async (namespace) => {
        const { api, close } = await connect(options, io);
        try {
          return await readCluster({ api, namespace, budgets: "PlatformDefault" });
        } finally {
          close();
        }
      },
    },
  );
