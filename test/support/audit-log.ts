import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** One write to the API server, according to its audit log. */
export interface AuditEntry {
  readonly verb: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  readonly user: string;
  /** `unanswered` until the response is complete, and forever if the server was killed before. */
  readonly code: number;
  /**
   * When the request arrived and when its response was complete, in microseconds since 1970; both
   * the same if there was no response.
   */
  readonly receivedAtUs: number;
  readonly answeredAtUs: number;
  /** For a deletion in Karpenter's group: the uid that its precondition requires. */
  readonly preconditionUid?: string;
}

export interface AuditLog {
  /** For `apiServerFlags` of a control plane. */
  readonly flags: readonly string[];
  /** Every write so far, in the order of the responses; those without a response come last. */
  read(): readonly AuditEntry[];
  remove(): void;
}

/** The code of a write that may have been carried out, but whose response nobody has seen. */
export const unanswered = 0;

const writes = ["create", "update", "patch", "delete", "deletecollection"];

/**
 * Writes are also logged when they arrive, because a server that is killed between the write and
 * its response logs no response. Reads are numerous and change nothing. Only those of
 * ServiceAccounts are logged, to show which permissions they use, and watches are logged at their
 * start, since they may not end during a test.
 */
const policy = {
  apiVersion: "audit.k8s.io/v1",
  kind: "Policy",
  rules: [
    {
      ...{ level: "Request", verbs: ["delete"], resources: [{ group: "karpenter.sh" }] },
      omitStages: ["ResponseStarted"],
    },
    { level: "Metadata", verbs: writes, omitStages: ["ResponseStarted"] },
    { level: "None", userGroups: ["system:serviceaccounts:kube-system"] },
    {
      ...{ level: "Metadata", userGroups: ["system:serviceaccounts"] },
      ...{ verbs: ["get", "list"], omitStages: ["RequestReceived", "ResponseStarted"] },
    },
    {
      ...{ level: "Metadata", userGroups: ["system:serviceaccounts"] },
      ...{ verbs: ["watch"], omitStages: ["RequestReceived", "ResponseComplete"] },
    },
    { level: "None" },
  ],
};

/** An audit log for one control plane: who wrote what, recorded by the API server itself. */
export function createAuditLog(): AuditLog {
  const folder = mkdtempSync(join(tmpdir(), "lastcall-audit-"));
  const flags = auditFlags(folder);
  return {
    flags,
    read: () => entriesOf(readFileSync(auditFileOf(flags) ?? "", "utf8")),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

const logFlag = "--audit-log-path=";

/** The flags that make an API server write an audit log into this folder. */
export function auditFlags(folder: string): readonly string[] {
  const policyFile = join(folder, "audit-policy.json");
  const logFile = join(folder, "audit.log");
  writeFileSync(policyFile, JSON.stringify(policy));
  writeFileSync(logFile, "");
  return [
    `--audit-policy-file=${policyFile}`,
    `${logFlag}${logFile}`,
    // A single file, however large.
    "--audit-log-maxsize=0",
  ];
}

export function auditFileOf(flags: readonly string[]): string | undefined {
  return flags.find((flag) => flag.startsWith(logFlag))?.slice(logFlag.length);
}

/** An event of audit.k8s.io/v1, as the API server writes it. */
// biome-ignore lint/suspicious/noExplicitAny: of its many fields a few are read, each in one place
export type AuditEvent = any;

export function eventsOf(log: string): readonly AuditEvent[] {
  // The last line may be incomplete.
  const whole = log.split("\n").filter((line) => line.endsWith("}"));
  return whole.map((line) => JSON.parse(line));
}

/** The writes in an audit log, one entry per request. */
export function entriesOf(log: string): readonly AuditEntry[] {
  const events = eventsOf(log).filter(({ verb }) => writes.includes(verb));
  const answers = events.filter(({ stage }) => stage !== "RequestReceived");
  const answered = new Set(answers.map(({ auditID }) => auditID));
  const open = events.filter(({ auditID }) => !answered.has(auditID));
  return [...answers, ...open].map(entryOf);
}

function entryOf(event: AuditEvent): AuditEntry {
  const { resource = "", subresource = "", namespace = "", name = "" } = event.objectRef ?? {};
  const preconditionUid = event.requestObject?.preconditions?.uid;
  return {
    ...{ verb: event.verb, resource, subresource, namespace, name },
    user: event.user?.username ?? "",
    code: event.responseStatus?.code ?? unanswered,
    receivedAtUs: microsOf(event.requestReceivedTimestamp),
    answeredAtUs: microsOf(event.stageTimestamp),
    ...(preconditionUid !== undefined && { preconditionUid }),
  };
}

/** `2026-11-20T00:00:00.123456Z`: Date supports only milliseconds. */
function microsOf(text: string): number {
  const micros = /\.\d{3}(\d{3})/.exec(text)?.[1] ?? "0";
  return Date.parse(text) * 1000 + Number(micros);
}
