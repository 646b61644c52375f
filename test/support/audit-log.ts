import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** One write that the API server answered, as its audit log tells it. */
export interface AuditEntry {
  readonly verb: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  readonly user: string;
  readonly code: number;
  /** When the request came and when its answer was complete, in microseconds since 1970. */
  readonly receivedAtUs: number;
  readonly answeredAtUs: number;
}

export interface AuditLog {
  /** For `apiServerFlags` of a control plane. */
  readonly flags: readonly string[];
  /** Every write so far, in the order of their answers. */
  read(): readonly AuditEntry[];
  remove(): void;
}

/** Reads are many and change nothing, so that only writes are kept. */
const policy = {
  apiVersion: "audit.k8s.io/v1",
  kind: "Policy",
  omitStages: ["RequestReceived"],
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
    read: () => readFileSync(logFile, "utf8").split("\n").flatMap(entryOf),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

function entryOf(line: string): AuditEntry[] {
  // The last line may still be in the making.
  if (!line.endsWith("}")) return [];
  const event = JSON.parse(line);
  const { resource = "", subresource = "", namespace = "", name = "" } = event.objectRef ?? {};
  return [
    {
      ...{ verb: event.verb, resource, subresource, namespace, name },
      user: event.user?.username ?? "",
      code: event.responseStatus?.code ?? 0,
      receivedAtUs: microsOf(event.requestReceivedTimestamp),
      answeredAtUs: microsOf(event.stageTimestamp),
    },
  ];
}

/** `2026-11-20T00:00:00.123456Z`: Date knows milliseconds only. */
function microsOf(text: string): number {
  const micros = /\.\d{3}(\d{3})/.exec(text)?.[1] ?? "0";
  return Date.parse(text) * 1000 + Number(micros);
}
