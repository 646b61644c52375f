import type {
  Action,
  ActionOf,
  ActionPoint,
  ActionSpec,
  SecretRef,
} from "../../core/policy/action.ts";
import { actionKinds } from "../../core/policy/action.ts";
import type { Cause } from "../../core/policy/cause.ts";
import { spanOf } from "../schema/field-schema.ts";

type As<Kind extends ActionSpec["kind"]> = Omit<ActionOf<Kind>, "kind">;

/** The types of an action as they are written, once the schema has passed them. */
export interface WrittenActionKinds {
  readonly deregisterTargets: As<"deregisterTargets">;
  readonly replaceSecurityGroups: As<"replaceSecurityGroups">;
  readonly detach: As<"detach">;
  readonly sns: As<"sns">;
  readonly lambda: As<"lambda">;
  readonly alertmanagerSilence: Omit<As<"alertmanagerSilence">, "durationMs"> & {
    readonly duration: string;
  };
  readonly datadogMute: Omit<As<"datadogMute">, "durationMs" | "apiKey" | "applicationKey"> & {
    readonly duration: string;
    readonly apiKey: { readonly secretRef: SecretRef };
    readonly applicationKey: { readonly secretRef: SecretRef };
  };
  readonly mackerelStatus: As<"mackerelStatus">;
  readonly slack: As<"slack">;
  readonly teams: As<"teams">;
  readonly telegram: As<"telegram">;
  readonly cloudEvents: Omit<As<"cloudEvents">, "type"> & { readonly type?: string };
  readonly http: As<"http">;
}

/** An entry of `spec.actions` as it is written; one of the types is there. */
export interface WrittenAction extends Partial<WrittenActionKinds> {
  readonly name: string;
  readonly at: ActionPoint;
  readonly causes?: readonly Cause[];
  readonly timeout: string;
  readonly retries: number;
  readonly required: boolean;
  /** A field that this version does not know, and a newer CRD has let in: its type, no doubt. */
  readonly newerType?: string;
}

export function actionOf(written: WrittenAction): Action {
  const { name, at, causes, timeout, retries, required } = written;
  return {
    ...{ name, at, retries, required },
    ...(causes && { causes }),
    timeoutMs: spanOf(timeout),
    how: specOf(written),
  };
}

function specOf(written: WrittenAction): ActionSpec {
  const { alertmanagerSilence, datadogMute, cloudEvents } = written;
  if (alertmanagerSilence !== undefined) {
    const { duration, ...rest } = alertmanagerSilence;
    return { kind: "alertmanagerSilence", ...rest, durationMs: spanOf(duration) };
  }
  if (datadogMute !== undefined) {
    const { duration, apiKey, applicationKey, ...rest } = datadogMute;
    const keys = { apiKey: apiKey.secretRef, applicationKey: applicationKey.secretRef };
    return { kind: "datadogMute", ...rest, ...keys, durationMs: spanOf(duration) };
  }
  if (cloudEvents !== undefined) {
    return { kind: "cloudEvents", type: "dev.lastcall.departure", ...cloudEvents };
  }
  const kind = actionKinds.find((one) => written[one] !== undefined);
  if (kind === undefined) return { kind: "unknown", field: written.newerType ?? "" };
  // What is left is written as core has it.
  return { kind, ...written[kind] } as ActionSpec;
}
