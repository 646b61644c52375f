import { AutoScalingClient, CompleteLifecycleActionCommand } from "@aws-sdk/client-auto-scaling";
import type { HookEnd, LifecycleHooks } from "../../contracts/lifecycle-hooks.ts";
import type { LifecycleHook } from "../../core/notice/lifecycle-hook.ts";
import { type Millis, seconds } from "../../core/time/time.ts";
import { faultOfAws } from "./aws-fault.ts";
import { clientSettings } from "./client-settings.ts";

const answerLimitMs: Millis = seconds(10);

/** EC2 Auto Scaling, with credentials, region and endpoint as AWS' client finds them. */
export class AutoScaling implements LifecycleHooks {
  readonly #client: AutoScalingClient;

  /** `region`: where the groups are; absent: the environment says it. */
  constructor({ region }: { readonly region: string | undefined }) {
    this.#client = new AutoScalingClient(clientSettings({ region, answerLimitMs }));
  }

  async complete(
    { group, name, machine, token }: LifecycleHook,
    signal: AbortSignal,
  ): Promise<HookEnd> {
    const command = new CompleteLifecycleActionCommand({
      AutoScalingGroupName: group,
      LifecycleHookName: name,
      LifecycleActionToken: token,
      InstanceId: machine,
      LifecycleActionResult: "CONTINUE",
    });
    try {
      await this.#client.send(command, { abortSignal: signal });
      return "Completed";
    } catch (error) {
      signal.throwIfAborted();
      const end = endOf(error);
      if (end !== undefined) return end;
      throw faultOfAws(error, {
        action: `complete the lifecycle hook ${name} of the group ${group}`,
        permission: "autoscaling:CompleteLifecycleAction on the group",
        service: "EC2 Auto Scaling",
        wanted: "a group that has this hook",
      });
    }
  }
}

/**
 * Auto Scaling has one code for all that it refuses, and says "No active Lifecycle Action found …" or
 * "… name not found" with it. Undefined: it has not refused.
 */
function endOf(error: unknown): HookEnd | undefined {
  const { name, message } = error as { readonly name?: unknown; readonly message?: unknown };
  if (name !== "ValidationError" || typeof message !== "string") return undefined;
  if (/no active lifecycle action/i.test(message)) return "Over";
  return /not found/i.test(message) ? "NotFound" : undefined;
}
