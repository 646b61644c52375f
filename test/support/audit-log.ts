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

/**
 * Reads are many and change nothing, so that only writes are kept: as they come, too, for a server
 * that is killed between the write and its answer tells of no answer.
 */
const policy = {
  apiVersion: "audit.k8s.io/v1",
  kind: "Policy",
  omitStages: ["ResponseStarted"],
  rules: [
    { level: "Metadata", verbs: ["create", "update", "patch", "delete", "deletecollection"] },
    { level: "None" },
  ],
};

/** An audit log for one control plane: who wrote what, told by the API server itself. */
export function createAuditLog(): AuditLog {
  const folder = mkdtempSync(join(tmpdir(), "lastcall-audit-"));
  const policyFile = join(folder, "policy.json");
  const logFile = join(folder, "audit.log");
  writeFileSync(policyFile, JSON.stringify(policy));
  writeFileSync(logFile, "");
  return {
    flags: [
      `--audit-policy-file=${policyFile}`,
      `--audit-log-path=${logFile}`,
      // One file, however much is written.
      "--audit-log-maxsize=0",
    ],
    read: () => entriesOf(readFileSync(logFile, "utf8")),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** The lines of an audit log, one entry for each request. */
export function entriesOf(log: string): readonly AuditEntry[] {
  // The last line may still be in the making.
  const events = log
    .split("\n")
    .filter((line) => line.endsWith("}"))
    .map((line) => JSON.parse(line));
  const answers = events.filter(({ stage }) => stage !== "RequestReceived");
  const answered = new Set(answers.map(({ auditID }) => auditID));
  const open = events.filter(({ auditID }) => !answered.has(auditID));
  return [...answers, ...open].map(entryOf);
}

// biome-ignore lint/suspicious/noExplicitAny: an event of audit.k8s.io/v1, as the API server writes it
function entryOf(event: any): AuditEntry {
  const { resource = "", subresource = "", namespace = "", name = "" } = event.objectRef ?? {};
  return {
    ...{ verb: event.verb, resource, subresource, namespace, name },
    user: event.user?.username ?? "",
    code: event.responseStatus?.code ?? unanswered,
    receivedAtUs: microsOf(event.requestReceivedTimestamp),
    answeredAtUs: microsOf(event.stageTimestamp),
  };
}

/** `2026-11-20T00:00:00.123456Z`: Date knows milliseconds only. */
function microsOf(text: string): number {
  const micros = /\.\d{3}(\d{3})/.exec(text)?.[1] ?? "0";
  return Date.parse(text) * 1000 + Number(micros);
}
