import type { ActionProblem, ActionTask } from "../../../contracts/action-runner.ts";
import { LastcallError } from "../../../errors.ts";
import { asFault } from "../aws-client.ts";
import { findInstanceRef, type InRegion, type InstanceRef, instanceIdOf } from "../ec2-machine.ts";

/** The instances that may depart, to be looked up in advance. */
export type KnownInstances = () => readonly InstanceRef[];

/** The instance of an action. Throws if the departing machine is not an EC2 instance. */
export function instanceOf({ target }: Pick<ActionTask, "target">): InstanceRef {
  const found = target.providerID === undefined ? undefined : findInstanceRef(target.providerID);
  if (found !== undefined) return found;
  const instanceId = instanceIdOf(target.instanceId);
  if (instanceId !== undefined) return { instanceId, region: undefined };
  throw new LastcallError(
    "ACTION_REFUSED",
    `Cannot act on ${target.node} in AWS: its providerID is ${target.providerID ?? "missing"}, expected an EC2 instance, such as aws:///eu-west-1a/i-0123456789abcdef0`,
  );
}

/**
 * The problem that AWS reports for a field of an action. Throws if AWS cannot be reached, or the
 * signal's reason when it aborts.
 */
export async function problemOf(
  field: string,
  signal: AbortSignal,
  look: () => Promise<void>,
): Promise<ActionProblem | undefined> {
  try {
    await look();
    return undefined;
  } catch (error) {
    signal.throwIfAborted();
    const { code, message, retryable } = asFault(error);
    if (retryable) throw error;
    // "Cannot <action>: found <what>, expected <what>", or with what to do instead of the last.
    const told = /: (?:found )?(.*), expected (.*)$/s.exec(message);
    const [, found = message, wanted = "what AWS accepts"] =
      told ?? /: (?:found )?(.*), ([^,]*)$/s.exec(message) ?? [];
    return { code, field, found, wanted };
  }
}

/** Creates one client per region, on first use. */
export function oneEach<Client>(make: InRegion<Client>): InRegion<Client> {
  const clients = new Map<string | undefined, Client>();
  return (region) => {
    const client = clients.get(region) ?? make(region);
    clients.set(region, client);
    return client;
  };
}

/**
 * Returns `eu-west-1` for `arn:aws:sns:eu-west-1:123456789012:spot`; undefined for a plain name.
 */
export function regionOfArn(arn: string): string | undefined {
  return /^arn:[^:]+:[^:]+:([a-z0-9-]+):/.exec(arn)?.[1];
}
