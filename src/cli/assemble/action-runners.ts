import { lookup } from "node:dns/promises";
import type { HostRule } from "../../actions/action-hosts.ts";
import type { AwsActionOptions } from "../../cloud/aws/actions/aws-runners.ts";
import type { ActionPorts, ActionRunner, ActionRunners } from "../../contracts/action-runner.ts";
import type { KubeApi } from "../../contracts/kube-api.ts";
import type { ActionKind } from "../../core/policy/action.ts";

export interface ActionPortOptions extends Omit<AwsActionOptions, "region"> {
  readonly api: KubeApi;
  /** The namespace of the Secrets. */
  readonly namespace: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** `--action-hosts`. */
  readonly allowed: readonly HostRule[];
}

/** Parses `--action-hosts` before the first request to the cluster. Throws CONFIG_INVALID. */
export async function actionHosts(text: string | undefined): Promise<readonly HostRule[]> {
  if (text === undefined) return [];
  const { parseActionHosts } = await import("../../actions/action-hosts.ts");
  return parseActionHosts(text);
}

/** Loads the code of an action only when a policy names its type. */
export function actionPorts(options: ActionPortOptions): ActionPorts {
  const { api } = options;
  return {
    runners: actionRunners(options),
    addresses: async (node, signal) => {
      const { machineAddresses } = await import("../../kube/node/machine-addresses.ts");
      return machineAddresses(api, node, signal);
    },
  };
}

function actionRunners(options: ActionPortOptions): ActionRunners {
  const loaded = new Map<ActionKind, Promise<ActionRunner | undefined>>();
  const load = (kind: ActionKind) => {
    const there = loaded.get(kind) ?? loadRunner(kind, options);
    loaded.set(kind, there);
    // If loading fails, the next call tries again.
    there.catch(() => loaded.delete(kind));
    return there;
  };
  return load as ActionRunners;
}

async function loadRunner(
  kind: ActionKind,
  options: ActionPortOptions,
): Promise<ActionRunner | undefined> {
  switch (kind) {
    case "unknown":
      return undefined;
    case "deregisterTargets":
    case "replaceSecurityGroups":
    case "detach":
    case "sns":
    case "lambda": {
      const { createAwsRunner } = await import("../../cloud/aws/actions/aws-runners.ts");
      const { AWS_REGION: region, AWS_DEFAULT_REGION: fallback } = options.env;
      return (await createAwsRunner(kind, {
        ...options,
        region: region ?? fallback,
      })) as ActionRunner;
    }
    default:
      return loadSink(kind, options);
  }
}

async function loadSink(
  kind: ActionKind,
  { api, namespace, clock, env, allowed }: ActionPortOptions,
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
