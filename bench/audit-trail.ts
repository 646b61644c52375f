import { createReadStream, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

/**
 * One request that the API server has answered. Instants are in milliseconds, with microseconds as
 * fractions.
 */
export interface Answered {
  readonly user: string;
  readonly verb: string;
  readonly resource: string;
  readonly subresource: string;
  readonly name: string;
  readonly code: number;
  readonly receivedAt: number;
  readonly answeredAt: number;
}

export interface AuditTrail {
  /** For `apiServerFlags` of a control plane. */
  readonly flags: readonly string[];
  /** Every request of the user so far; a watch is included as soon as it is opened. */
  of(user: string): Promise<readonly Answered[]>;
  remove(): void;
}

/**
 * The API server's audit log: who requested what, and when. Every bench here takes its times from
 * it.
 */
export function createAuditTrail(users: readonly string[]): AuditTrail {
  const folder = mkdtempSync(join(tmpdir(), "lastcall-bench-audit-"));
  const policyFile = join(folder, "policy.json");
  const logFile = join(folder, "audit.log");
  const rules = [{ level: "Metadata", users, omitManagedFields: true }, { level: "None" }];
  const policy = { apiVersion: "audit.k8s.io/v1", kind: "Policy", rules };
  writeFileSync(
    policyFile,
    JSON.stringify({ ...policy, omitStages: ["RequestReceived", "Panic"] }),
  );
  writeFileSync(logFile, "");
  return {
    flags: [
      `--audit-policy-file=${policyFile}`,
      `--audit-log-path=${logFile}`,
      "--audit-log-maxsize=0",
    ],
    of: (user) => read(logFile, user),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

async function read(logFile: string, user: string): Promise<readonly Answered[]> {
  const found = new Map<string, Answered>();
  const lines = createInterface({ input: createReadStream(logFile, "utf8") });
  for await (const line of lines) {
    // The last line may be incomplete.
    if (!line.endsWith("}")) continue;
    const event = JSON.parse(line);
    // A watch is logged when it opens and again when it ends.
    if (event.user?.username === user && !found.has(event.auditID)) {
      found.set(event.auditID, answeredOf(event));
    }
  }
  return [...found.values()];
}

interface RawEvent {
  readonly verb: string;
  readonly user: { readonly username: string };
  readonly objectRef?: Readonly<Record<string, string>>;
  readonly responseStatus?: { readonly code?: number };
  readonly requestReceivedTimestamp: string;
  readonly stageTimestamp: string;
}

function answeredOf(event: RawEvent): Answered {
  const { resource = "", subresource = "", name = "" } = event.objectRef ?? {};
  return {
    ...{ verb: event.verb, resource, subresource, name, user: event.user.username },
    code: event.responseStatus?.code ?? 0,
    receivedAt: millisOf(event.requestReceivedTimestamp),
    answeredAt: millisOf(event.stageTimestamp),
  };
}

/** `2026-11-20T00:00:00.123456Z`: Date.parse drops the microseconds. */
function millisOf(text: string): number {
  const micros = /\.\d{3}(\d{3})/.exec(text)?.[1] ?? "0";
  return Date.parse(text) + Number(micros) / 1000;
}
