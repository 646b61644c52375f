import { type Fields, trimmedTextOf } from "../../core/json/json-field.ts";
import type { LifecycleHook } from "../../core/notice/lifecycle-hook.ts";
import type { Instant } from "../../core/time/time.ts";
import { instanceIdOf } from "./instance-id.ts";

/** The transitions at which a group waits, to and from a warm pool by the same names. */
const transitions: Readonly<Record<string, LifecycleHook["transition"]>> = {
  "autoscaling:EC2_INSTANCE_LAUNCHING": "Launching",
  "autoscaling:EC2_INSTANCE_TERMINATING": "Terminating",
};

/** The transition that a hook's message names; undefined for any other. */
export function transitionOf(detail: Fields): LifecycleHook["transition"] | undefined {
  const named = trimmedTextOf(detail.LifecycleTransition) ?? "";
  return Object.hasOwn(transitions, named) ? transitions[named] : undefined;
}

/**
 * What a group needs to be told to go on; undefined where the message lacks some of it. Source: EC2
 * Auto Scaling "Lifecycle action event types and patterns".
 */
export function hookOf(detail: Fields, at: Instant): LifecycleHook | undefined {
  const transition = transitionOf(detail);
  const machine = instanceIdOf(detail.EC2InstanceId);
  const group = nameOf(detail.AutoScalingGroupName);
  const name = nameOf(detail.LifecycleHookName);
  if (!(transition && machine && group && name)) return undefined;
  return { transition, machine, group, name, token: nameOf(detail.LifecycleActionToken), at };
}

/** Auto Scaling takes no longer names. */
function nameOf(value: unknown): string | undefined {
  const name = trimmedTextOf(value);
  return name !== undefined && name.length <= 255 ? name : undefined;
}
