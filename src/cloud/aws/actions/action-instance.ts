import type { ActionProblem, ActionTask } from "../../../contracts/action-runner.ts";
import { LastcallError } from "../../../errors.ts";
import { asFault } from "../aws-fault.ts";
import { findInstanceRef, type InstanceRef, instanceIdOf } from "../instance-id.ts";

/** The instance that an action is about. Throws where the departing machine is not EC2's. */
export function instanceOf({ target }: Pick<ActionTask, "target">): InstanceRef {
  const found = target.providerID === undefined ? undefined : findInstanceRef(target.providerID);
  if (found !== undefined) return found;
  const instanceId = instanceIdOf(target.instanceId);
  if (instanceId !== undefined) return { instanceId, region: undefined };
  throw new LastcallError(
    "ACTION_REFUSED",
    `Cannot act on ${target.node} in AWS: its providerID is ${target.providerID ?? "missing"}, expected an instance of EC2, such as aws:///eu-west-1a/i-0abc`,
  );
}

/**
 * What a look at AWS says about a field of an action. Throws where nobody can be asked now, or the
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
    // "Cannot <action>: found <what>, expected <what>".
    const [, found = message, wanted = "what AWS accepts"] =
      /: (?:found )?(.*), (?:expected )?([^,]*)$/s.exec(message) ?? [];
    return { code, field, found, wanted };
  }
}
