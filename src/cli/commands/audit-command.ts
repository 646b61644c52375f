import type { Clock } from "../../contracts/clock.ts";
import type { KubeApi } from "../../contracts/kube-api.ts";
import type { KubeAccess } from "../../kube/access/kube-access.ts";
import { connect } from "../cluster/connect.ts";
import { type AskKubelet, proxiedKubelet } from "../cluster/kubelet-budgets.ts";
import { readCluster } from "../cluster/read-cluster.ts";
import type { CommandRun } from "../command-line/command-spec.ts";
import { nodeFiles } from "../input/node-files.ts";
import { runAudit } from "./audit.ts";
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
      templatePaths: options.templatePath,
      quiet: options.quiet,
      version,
    },
    {
      ...nodeFiles(io.files.stdinBytes()),
      stdout: io.out,
      stderr: io.err,
      isTty: io.isTerminal,
      colour: io.colour,
      readCluster: async (wanted) => {
        const { api, access, close } = await connect(options, io);
        try {
          const askKubelet = await kubeletsOf(options, { api, access, clock: io.clock });
          return await readCluster({ api, ...wanted, askKubelet, signal: io.signal });
        } finally {
          close();
        }
      },
    },
  );

/** How kubelets are asked for their budgets; undefined where they are not. */
async function kubeletsOf(
  { askKubelets, kubeletInsecureTls }: Parameters<typeof runAuditCommand>[0]["options"],
  {
    api,
    access,
    clock,
  }: { readonly api: KubeApi; readonly access: KubeAccess; readonly clock: Clock },
): Promise<AskKubelet | undefined> {
  if (askKubelets === "never") return undefined;
  if (askKubelets === "proxy") return proxiedKubelet(api);
  const { directKubelet } = await import("../cluster/direct-kubelet.ts");
  const certificate = kubeletInsecureTls ? "Unverified" : "Verified";
  return directKubelet(access, { clock, certificate });
}
