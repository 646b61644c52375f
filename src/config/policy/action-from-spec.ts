import type { Action, ActionOf, ActionSpec } from "../../core/policy/action.ts";
import { actionKinds } from "../../core/policy/action.ts";
import type { WrittenActionKinds } from "../schema/action-kind-schema.ts";
import type { WrittenAction } from "../schema/action-schema.ts";
import { spanOf } from "../schema/field-schema.ts";

/** A type of action as it is written and as core has it, as far as both are to be the same. */
interface Pairs {
  readonly alertmanagerSilence: [
    Omit<WrittenActionKinds["alertmanagerSilence"], "duration">,
    Omit<ActionOf<"alertmanagerSilence">, "durationMs">,
  ];
  readonly datadogMute: [
    Omit<WrittenActionKinds["datadogMute"], "duration" | "apiKey" | "applicationKey">,
    Omit<ActionOf<"datadogMute">, "durationMs" | "apiKey" | "applicationKey">,
  ];
  readonly cloudEvents: [
    Omit<WrittenActionKinds["cloudEvents"], "type">,
    Omit<ActionOf<"cloudEvents">, "type" | "data">,
  ];
}
type PairOf<Kind extends keyof WrittenActionKinds> = Kind extends keyof Pairs
  ? Pairs[Kind]
  : [WrittenActionKinds[Kind], ActionOf<Kind>];

/** What may be left out is the same whether or not it may be written as undefined. */
type Plain<T> = T extends readonly (infer Item)[]
  ? readonly Plain<Item>[]
  : T extends object
    ? { readonly [Name in keyof T]: Plain<Exclude<T[Name], undefined>> }
    : T;
type Same<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

/** The types whose fields core has otherwise than the schema: none, or it does not compile. */
type Drifted = {
  [Kind in keyof WrittenActionKinds]: Same<
    Plain<PairOf<Kind>[0]>,
    Plain<Omit<PairOf<Kind>[1], "kind">>
  > extends true
    ? never
    : Kind;
}[keyof WrittenActionKinds];
type UnlessDrifted<Kinds extends never, Spec> = [Kinds] extends [never] ? Spec : never;

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
  return { kind, ...written[kind] } as UnlessDrifted<Drifted, ActionSpec>;
}
