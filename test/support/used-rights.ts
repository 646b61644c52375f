import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { type AuditEvent, auditFileOf, auditFlags, eventsOf } from "./audit-log.ts";

/** One kind of request that a ServiceAccount made, according to the API server's audit log. */
export interface UsedRight {
  /** The test file that made it. */
  readonly file: string;
  readonly user: string;
  /** The program that made the request; the tests' own probes have no name. */
  readonly userAgent: string;
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource: string;
  /** Empty for cluster-wide requests. */
  readonly namespace: string;
  /** Only if a permission is limited to one object by name. */
  readonly name: string;
  readonly allowed: boolean;
  /** Whether it created an object: a patch that does so also needs the permission to create. */
  readonly created: boolean;
}

/** Where a run of the end-to-end tests records the permissions that it used; unset: nowhere. */
const notesVariable = "E2E_RIGHTS_NOTES";
const fileVariable = "E2E_TEST_FILE";

/** Runs once around all end-to-end tests. */
export function setup(): () => void {
  const folder = mkdtempSync(join(tmpdir(), "lastcall-used-rights-"));
  process.env[notesVariable] = process.env.E2E_USED_RIGHTS ?? join(folder, "notes");
  return () => rmSync(folder, { recursive: true, force: true });
}

/** Records that a test file has run, even if it starts no control plane. */
export function announceTestFile(path: string): void {
  process.env[fileVariable] = basename(path);
  write([{ file: basename(path) }]);
}

/** Adds an audit log to this control plane's flags, unless it has one or nothing is recorded. */
export function withAudit(flags: readonly string[], folder: string): readonly string[] {
  if (process.env[notesVariable] === undefined || auditFileOf(flags) !== undefined) return flags;
  return [...flags, ...auditFlags(folder)];
}

/** Records the requests that ServiceAccounts made to a control plane that is stopping. */
export function noteUsedRights(flags: readonly string[]): void {
  const log = auditFileOf(flags);
  if (log === undefined || process.env[notesVariable] === undefined || !existsSync(log)) return;
  const used = eventsOf(readFileSync(log, "utf8")).flatMap(usedRight);
  const kinds = new Map(used.map((one) => [JSON.stringify(one), one]));
  write([...kinds.values()]);
}

export interface Notes {
  readonly files: ReadonlySet<string>;
  readonly used: readonly UsedRight[];
}

/** What this run has recorded so far. */
export function readNotes(): Notes {
  const path = process.env[notesVariable];
  const text = path === undefined || !existsSync(path) ? "" : readFileSync(path, "utf8");
  const lines = text.split("\n").filter((line) => line !== "");
  const notes = lines.map((line) => JSON.parse(line) as Partial<UsedRight>);
  return {
    files: new Set(notes.map(({ file }) => file ?? "")),
    used: notes.filter((note): note is UsedRight => note.user !== undefined),
  };
}

function write(notes: readonly object[]): void {
  const path = process.env[notesVariable];
  if (path === undefined || notes.length === 0) return;
  appendFileSync(path, notes.map((note) => `${JSON.stringify(note)}\n`).join(""));
}

const ours = /^system:serviceaccount:(?!kube-system:)/;
const named: readonly unknown[] = ["leases", "secrets"];

function usedRight(event: AuditEvent): readonly UsedRight[] {
  const { user, verb, userAgent = "", objectRef, annotations = {}, stage } = event;
  if (stage === "RequestReceived" || objectRef === undefined || !ours.test(user?.username))
    return [];
  const { apiGroup = "", resource, subresource = "", namespace = "", name = "" } = objectRef;
  const right = { verb, group: apiGroup, resource, subresource, namespace };
  const decision = annotations["authorization.k8s.io/decision"];
  return [
    {
      file: process.env[fileVariable] ?? "",
      ...{ user: user.username, userAgent, ...right },
      name: named.includes(resource) ? name : "",
      allowed: decision === "allow",
      created: event.responseStatus?.code === 201,
    },
  ];
}
