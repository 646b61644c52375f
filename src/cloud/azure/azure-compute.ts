import type { Clock } from "../../contracts/clock.ts";
import type { InstanceReleaser } from "../../contracts/instance-releaser.ts";
import type { LaunchTimes } from "../../contracts/launch-times.ts";
import type { Rng } from "../../core/chance/rng.ts";
import { LastcallError } from "../../errors.ts";
import { parseApiEndpoint } from "../release/api-endpoint.ts";
import { AksPools, type AksPoolsOptions } from "./aks-pools.ts";
import { AksReleaser } from "./aks-releaser.ts";
import { ArmClient } from "./arm-client.ts";
import { azureTokens } from "./azure-auth.ts";
import { resourceManagerOf } from "./azure-cloud.ts";
import { AzureLaunchTimes } from "./azure-launch-times.ts";

export interface AzureSettings {
  /** The value of `--azure-endpoint`. */
  readonly endpoint?: string | undefined;
  /** The value of `--aks-cluster`. */
  readonly cluster?: string | undefined;
  /** The value of `--azure-delete-instances`. */
  readonly deleteInstances: boolean;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly fetch: typeof fetch;
  readonly clock: Clock;
  readonly rng: Rng;
}

/** What the controller has of Azure; all over one client and one set of credentials. */
export interface AzureCompute {
  readonly releaser: InstanceReleaser;
  readonly launchTimes: LaunchTimes;
}

/**
 * Puts the parts together; nothing is sent yet. Throws CONFIG_INVALID for an option that cannot be
 * one.
 */
export function createAzureCompute(settings: AzureSettings): AzureCompute {
  const { env, fetch, clock, rng } = settings;
  const manager = settings.endpoint ?? resourceManagerOf(env.AZURE_AUTHORITY_HOST);
  const endpoint = parseApiEndpoint("--azure-endpoint", manager);
  const tokens = azureTokens({ endpoint, env, fetch });
  const client = new ArmClient({ endpoint, tokens, fetch, clock, rng });
  const pools = new AksPools({ client, cluster: parseCluster(settings.cluster) });
  const pastAks = settings.deleteInstances ? "Allowed" : "Refused";
  return {
    releaser: new AksReleaser({ client, pools, pastAks, clock, rng }),
    launchTimes: new AzureLaunchTimes(client),
  };
}

function parseCluster(text: string | undefined): AksPoolsOptions["cluster"] {
  if (text === undefined) return undefined;
  const [, group, name] = /^([-\w.()]+)\/([-\w]+)$/.exec(text) ?? [];
  if (group !== undefined && name !== undefined) return { group, name };
  throw new LastcallError(
    "CONFIG_INVALID",
    `Cannot use --aks-cluster: found ${JSON.stringify(text)}, expected GROUP/NAME`,
  );
}
