import { fieldsOf, listOf } from "../../core/json/json-field.ts";
import { isLastcallError } from "../../errors.ts";
import type { ArmClient } from "./arm-client.ts";

/**
 * Whether we may do `action` on a resource, by the list of permissions that Azure gives everybody
 * of their own. `Unknown` where the list itself is refused.
 */
export async function permissionOn(
  scope: string,
  { action, client }: { readonly action: string; readonly client: ArmClient },
  signal: AbortSignal,
): Promise<"Granted" | "Missing" | "Unknown"> {
  const call = {
    method: "GET",
    path: `${scope}/providers/Microsoft.Authorization/permissions`,
    apiVersion: "2022-04-01",
    action: `ask whether ${action} is granted`,
    permission: "Microsoft.Authorization/permissions/read",
  } as const;
  const answer = await client.sendPatiently(call, signal).catch(unlessRefused);
  if (answer?.kind !== "Found" || !Array.isArray(answer.body.value)) return "Unknown";
  const isGranted = answer.body.value
    .map(fieldsOf)
    .some(({ actions, notActions }) => names(actions, action) && !names(notActions, action));
  return isGranted ? "Granted" : "Missing";
}

/** Actions are compared without regard to case, and `*` stands for anything. */
function names(patterns: unknown, action: string): boolean {
  return listOf(patterns).some((pattern) => {
    const source = String(pattern).split("*").map(escaped).join(".*");
    return new RegExp(`^${source}$`, "i").test(action);
  });
}

function unlessRefused(error: unknown): undefined {
  const code = isLastcallError(error) ? error.code : undefined;
  if (code !== "CLOUD_RIGHT_MISSING" && code !== "CLOUD_REFUSED") throw error;
  return undefined;
}

/** `RegExp.escape` is newer than the oldest Node that is supported. */
function escaped(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}
