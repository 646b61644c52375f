import { lookup } from "node:dns/promises";
import type { HostRule } from "../../actions/action-hosts.ts";
import type { AwsActionOptions } from "../../cloud/aws/actions/aws-runners.ts";
import type { ActionPorts, ActionRunner, ActionRunners } from "../../contracts/action-runner.ts";
import type { KubeApi } from "../../contracts/kube-api.ts";
import type { ActionKind } from "../../core/policy/action.ts";

export interface ActionParts extends Omit<AwsActionOptions, "region"> {
  readonly api: KubeApi;
  /** Where the Secrets are. */
  readonly namespace: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** `--action-hosts`. */
  readonly allowed: readonly HostRule[];
}

/** Reads `--action-hosts` before the cluster is asked anything. Throws CONFIG_INVALID. */
export async function actionHosts(text: string | undefined): Promise<readonly HostRule[]> {
  if (text === undefined) return [];
  const { parseActionHosts } = await import("../../actions/action-hosts.ts");
  return parseActionHosts(text);
}

/** Whatever carries actions out is loaded when a policy names its kind, and not before. */
export function actionPorts(parts: ActionParts): ActionPorts {
  const { api } = parts;
  return {
    runners: actionRunners(parts),
    addresses: async (node, signal) => {
      const { machineAddresses } = await import("../../kube/node/machine-addresses.ts");
      return machineAddresses(api, node, signal);
    },
  };
}

function actionRunners(parts: ActionParts): ActionRunners {
  const loaded = new Map<ActionKind, Promise<ActionRunner | undefined>>();
  const load = (kind: ActionKind) => {
    const there = loaded.get(kind) ?? loadRunner(kind, parts);
    loaded.set(kind, there);
    // What could not be loaded now is tried again.
    there.catch(() => loaded.delete(kind));
    return there;
  };
  return load as ActionRunners;
}

async function loadRunner(kind: ActionKind, parts: ActionParts): Promise<ActionRunner | undefined> {
  switch (kind) {
    case "unknown":
      return undefined;
    case "deregisterTargets":
    case "replaceSecurityGroups":
    case "detach":
    case "sns":
    case "lambda": {
      const { createAwsRunner } = await import("../../cloud/aws/actions/aws-runners.ts");
      const { AWS_REGION: region, AWS_DEFAULT_REGION: fallback } = parts.env;
      return (await createAwsRunner(kind, {
        ...parts,
        region: region ?? fallback,
      })) as ActionRunner;
    }
    default:
      return loadSink(kind, parts);
  }
}

async function loadSink(
  kind: ActionKind,
  { api, namespace, clock, env, allowed }: ActionParts,
): Promise<ActionRunner | undefined> {
  const [{ sinkRunner }, { HttpSender }, { KubeSecretReader }] = await Promise.all([
    import("../../actions/sink-runners.ts"),
    import("../../actions/http-sender.ts"),
    import("../../kube/secret-reader.ts"),
  ]);
  const resolve = (host: string) => lookup(host, { all: true });
  const sender = new HttpSender({ allowed, env, resolve });
  return sinkRunner(kind, { sender, secrets: new KubeSecretReader(api, namespace), clock });
}
