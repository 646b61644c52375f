import type { Millis } from "../time/time.ts";

/** Why a node leaves: by the plan, at a person's request, or because of a cloud's notice. */
export const causes = [
  "Planned",
  "Manual",
  "SpotInterruption",
  "RebalanceRecommendation",
  "ScheduledMaintenance",
  "LifecycleHook",
  "Preempted",
  "NodeShutdown",
] as const;

export type Cause = (typeof causes)[number];

/**
 * When an action is due. AtNotice: as soon as the departure starts, by a notice or by the plan;
 * BeforeDrain and AfterDrain: before and after the drain, if there is one; AtEnd: once the outcome
 * is known.
 */
export type ActionPoint = "AtNotice" | "BeforeDrain" | "AfterDrain" | "AtEnd";

/** One entry of `spec.actions`: what to do at a departure, and when. */
export interface Action {
  /** Unique within its policy. */
  readonly name: string;
  readonly at: ActionPoint;
  /** Absent: every cause. */
  readonly causes?: readonly Cause[] | undefined;
  /** The timeout of one attempt. */
  readonly timeoutMs: Millis;
  /** Attempts after the first. */
  readonly retries: number;
  /** The drain of a planned departure waits for it, and does not start if it fails. */
  readonly required: boolean;
  readonly how: ActionSpec;
}

/** A key of a Secret in the namespace of Lastcall. */
export interface SecretRef {
  readonly name: string;
  readonly key: string;
}

/**
 * What an action does. Every text marked as a template is a mustache template until it is rendered
 * for one departure (`core/action/template.ts`), and is sent as rendered.
 */
export type ActionSpec =
  | DeregisterTargets
  | ReplaceSecurityGroups
  | DetachInstance
  | SnsMessage
  | LambdaCall
  | AlertmanagerSilence
  | DatadogMute
  | MackerelStatus
  | SlackMessage
  | TeamsMessage
  | TelegramMessage
  | CloudEvent
  | HttpCall
  | UnknownAction;

export type ActionKind = ActionSpec["kind"];
export type ActionOf<Kind extends ActionKind> = Extract<ActionSpec, { kind: Kind }>;

export interface DeregisterTargets {
  readonly kind: "deregisterTargets";
  /** Whether the action completes only when no target is draining any more, or at its timeout. */
  readonly wait: boolean;
}

export interface ReplaceSecurityGroups {
  readonly kind: "replaceSecurityGroups";
  readonly groupIds: readonly string[];
}

/** Detaches the machine from its Auto Scaling group, so that a replacement starts at once. */
export interface DetachInstance {
  readonly kind: "detach";
  readonly decrementDesiredCapacity: boolean;
}

export interface SnsMessage {
  readonly kind: "sns";
  readonly topicArn: string;
  /** Template. */
  readonly subject: string;
  /** Template. */
  readonly message: string;
}

/** Invoked asynchronously, without waiting for a result. */
export interface LambdaCall {
  readonly kind: "lambda";
  /** A name or an ARN. */
  readonly functionName: string;
  /** Template of JSON; absent: `{instanceId, node, cause, deadline}`. */
  readonly payload?: string | undefined;
}

export interface AlertmanagerSilence {
  readonly kind: "alertmanagerSilence";
  readonly url: string;
  /** Alertmanager's matchers with templates in their values. */
  readonly matchers: readonly string[];
  readonly durationMs: Millis;
  /** Template. */
  readonly comment: string;
  /** A bearer token. */
  readonly secretRef?: SecretRef | undefined;
}

export interface DatadogMute {
  readonly kind: "datadogMute";
  readonly url: string;
  /** Template; the host's name in Datadog. */
  readonly host: string;
  readonly durationMs: Millis;
  readonly apiKey: SecretRef;
  readonly applicationKey: SecretRef;
}

export interface MackerelStatus {
  readonly kind: "mackerelStatus";
  readonly url: string;
  /** Template; the host's name or custom identifier. */
  readonly host: string;
  readonly status: "maintenance" | "standby" | "poweroff";
  readonly secretRef: SecretRef;
}

export interface SlackMessage {
  readonly kind: "slack";
  /** Through an incoming webhook or, with `channel`, the Web API. */
  readonly url?: string | undefined;
  readonly channel?: string | undefined;
  /** Template. */
  readonly message: string;
  /** With `channel` a bot token, otherwise the webhook's URL. */
  readonly secretRef?: SecretRef | undefined;
}

export interface TeamsMessage {
  readonly kind: "teams";
  readonly url?: string | undefined;
  /** Template. */
  readonly title: string;
  /** Template. */
  readonly message: string;
  /** The webhook's URL. */
  readonly secretRef?: SecretRef | undefined;
}

export interface TelegramMessage {
  readonly kind: "telegram";
  readonly url: string;
  readonly chatId: string;
  /** Template. */
  readonly message: string;
  /** The bot's token. */
  readonly secretRef: SecretRef;
}

export interface CloudEvent {
  readonly kind: "cloudEvents";
  readonly url: string;
  readonly type: string;
  /** Template. */
  readonly message: string;
  /** The key of the signature; absent: none. */
  readonly secretRef?: SecretRef | undefined;
  /** The facts of the departure in addition to the message; present once it is rendered. */
  readonly data?: Readonly<Record<string, string>> | undefined;
}

export interface HttpRequestSpec {
  /** Template except for its host. */
  readonly url: string;
  readonly method: "POST" | "PUT" | "PATCH" | "DELETE" | "GET";
  /** Template. */
  readonly body?: string | undefined;
}

export interface HttpCall extends HttpRequestSpec {
  readonly kind: "http";
  readonly contentType: string;
  readonly headers: readonly HttpHeader[];
  /** Sent when the departure is rolled back or withdrawn. */
  readonly undo?: HttpRequestSpec | undefined;
}

export interface HttpHeader {
  readonly name: string;
  /** The text before the secret, if there is one: `Bearer `. */
  readonly value: string;
  readonly secretRef?: SecretRef | undefined;
}

/** A type from a newer CRD that this version does not know. */
export interface UnknownAction {
  readonly kind: "unknown";
  /** The field as written in the policy. */
  readonly field: string;
}

const kinds: Readonly<Record<Exclude<ActionKind, "unknown">, true>> = {
  deregisterTargets: true,
  replaceSecurityGroups: true,
  detach: true,
  sns: true,
  lambda: true,
  alertmanagerSilence: true,
  datadogMute: true,
  mackerelStatus: true,
  slack: true,
  teams: true,
  telegram: true,
  cloudEvents: true,
  http: true,
};

/** Every type that this version knows, as written in a policy. */
export const actionKinds = Object.keys(kinds) as readonly (keyof typeof kinds)[];
