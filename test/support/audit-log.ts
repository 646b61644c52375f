import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** One write that came to the API server, as its audit log tells it. */
export interface AuditEntry {
  readonly verb: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  readonly user: string;
  /** `unanswered` until the answer is complete, and for good where the server was killed first. */
  readonly code: number;
  /**
   * When the request came and when its answer was complete, in microseconds since 1970; one time
   * for both where it is unanswered.
   */
  readonly receivedAtUs: number;
  readonly answeredAtUs: number;
  /** Of a deletion in Karpenter's group: the uid that the object had to have. */
  readonly preconditionUid?: string;
}

export interface AuditLog {
  /** For `apiServerFlags` of a control plane. */
  readonly flags: readonly string[];
  /** Every write so far, in the order of their answers; at the end those that have none. */
  read(): readonly AuditEntry[];
  remove(): void;
}

/** The code of a write that may have been done, but whose answer nobody has seen. */
export const unanswered = 0;

const writes = ["create", "update", "patch", "delete", "deletecollection"];

/**
 * Writes are kept as they come, too, for a server that is killed between the write and its answer
 * tells of no answer. Reads are many and change nothing: they are kept of ServiceAccounts, to see
 * which rights these use, and a watch as it begins, for its end may not come in a test.
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

/** An audit log for one control plane: who wrote what, told by the API server itself. */
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

/** Has an API server keep an audit log in this folder. */
export function auditFlags(folder: string): readonly string[] {
  const policyFile = join(folder, "audit-policy.json");
  const logFile = join(folder, "audit.log");
  writeFileSync(policyFile, JSON.stringify(policy));
  writeFileSync(logFile, "");
  return [
    `--audit-policy-file=${policyFile}`,
    `${logFlag}${logFile}`,
    // One file, however much is written.
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
  // The last line may still be in the making.
  const whole = log.split("\n").filter((line) => line.endsWith("}"));
  return whole.map((line) => JSON.parse(line));
}

/** The writes in an audit log, one entry for each request. */
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

/** `2026-11-20T00:00:00.123456Z`: Date knows milliseconds only. */
function microsOf(text: string): number {
  const micros = /\.\d{3}(\d{3})/.exec(text)?.[1] ?? "0";
  return Date.parse(text) * 1000 + Number(micros);
}
