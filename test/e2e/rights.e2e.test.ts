/**
 * Compares what RBAC grants to each identity of Lastcall with what the other files used, according
 * to the API server's audit logs. Nothing that they used is missing, whichever ran; that nothing is
 * granted that is not used shows only after all of them, as in `npm run e2e:all`. It runs last
 * (vitest.e2e.config.ts).
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { readNotes, type UsedRight } from "../support/used-rights.ts";
import { setupRights } from "./setup-rights.ts";

const deploy = join(import.meta.dirname, "..", "..", "deploy");
const own = "rights.e2e.test.ts";

interface GrantedRight {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource: string;
  /** The namespace of the permission; empty: the whole cluster. */
  readonly namespace: string;
  readonly name: string | undefined;
}

interface Identity {
  readonly what: string;
  readonly users: readonly string[];
  /** What these files grant; `others` is what optional files grant to the same identity. */
  readonly granted: readonly GrantedRight[];
  readonly others: readonly GrantedRight[];
}

const account = (name: string, namespace = "lastcall") =>
  `system:serviceaccount:${namespace}:${name}`;
const controller = [
  account("lastcall"),
  // As the values of the article about the killer name it.
  account("gke-preemptible-killer", "gke-vm-killer"),
];
const agent = [account("lastcall-agent")];
const [base, restart, notices, cordon, drain] = [
  ...["base", "restart-owner", "agent", "agent-fallback/cordon", "agent-fallback/drain"],
].map((folder) => grantedBy(join(deploy, folder, "rbac.yaml"))) as Rights[];
type Rights = readonly GrantedRight[];

const identities: readonly Identity[] = [
  identity("controller", controller, [base], [restart]),
  identity("controller with deploy/restart-owner", controller, [restart], [base]),
  identity("agent", agent, [notices], [cordon, drain]),
  identity("agent with fallback Cordon", agent, [cordon], [notices, drain]),
  identity("agent with fallback Drain", agent, [drain], [notices, cordon]),
  ...setupRights.map(({ name, kind, rules }) => {
    const rights = rules.flatMap((rule) => rightsOf(rule, kind === "Role" ? "lastcall" : ""));
    return identity(`setup ${name}`, [account(`setup-${name}`)], [rights], []);
  }),
];

function identity(
  what: string,
  users: readonly string[],
  granted: readonly (Rights | undefined)[],
  others: readonly (Rights | undefined)[],
): Identity {
  const all = (rights: readonly (Rights | undefined)[]) => rights.flatMap((some = []) => some);
  return { what, users, granted: all(granted), others: all(others) };
}

/** Requests that a test provokes although nothing should grant them. */
const refusedOnPurpose: readonly (readonly [file: string, rights: RegExp])[] = [
  // Doctor runs with the controller's own account, which may not read everything.
  ["doctor.e2e.test.ts", /^(get|list) |^create subjectaccessreviews/],
  // So does drain-plan there, which looks for namespaces that are being deleted.
  ["bad-input.e2e.test.ts", /^list namespaces$/],
  // And so does run, outside of a pod: who leads in other namespaces, the account may not know.
  ["bad-input.e2e.test.ts", /^list leases\.coordination\.k8s\.io lastcall$/],
  // kubectl tells a missing object from one in a missing namespace, if it may: cli-runtime,
  // pkg/resource/visitor.go.
  ["setup-rights.e2e.test.ts", /^get namespaces$/],
  // An action's secretRef names a Secret that the controller may not read.
  ["actions.e2e.test.ts", /^get secrets others$/],
];

function isOnPurpose(one: UsedRight): boolean {
  const here = refusedOnPurpose.filter(([file]) => file === one.file);
  return !one.allowed && here.some(([, rights]) => rights.test(nameOf(one)));
}

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

function rightsOf(rule: Rule, namespace = ""): Rights {
  const { apiGroups, resources, verbs, resourceNames = [undefined] } = rule;
  const places = apiGroups.flatMap((group) =>
    resources.map((full) => ({ group, full, parts: full.split("/") })),
  );
  return places.flatMap(({ group, parts: [resource = "", subresource = ""] }) =>
    verbs.flatMap((verb) =>
      resourceNames.map((name) => ({ verb, group, resource, subresource, namespace, name })),
    ),
  );
}

function grantedBy(file: string): Rights {
  const roles = parseAllDocuments(readFileSync(file, "utf8")).map((one) => one.toJS());
  return roles.flatMap(({ kind, metadata, rules = [] }) =>
    (rules as Rule[]).flatMap((rule) => {
      expect(["Role", "ClusterRole"]).toContain(kind);
      return rightsOf(rule, kind === "Role" ? metadata.namespace : "");
    }),
  );
}

/**
 * Whoever creates an admission policy must have the permission to read its parameters. They send no
 * such request, but the API server requires it.
 */
function isDemandedBy(used: UsedRight, { verb, resource }: GrantedRight): boolean {
  if (used.resource !== "validatingadmissionpolicies" || !used.created) return false;
  return verb === "get" && resource === "configmaps";
}

function covers(right: GrantedRight, used: UsedRight): boolean {
  if (isDemandedBy(used, right)) return true;
  return (
    (right.verb === used.verb || (right.verb === "create" && used.created)) &&
    right.group === used.group &&
    right.resource === used.resource &&
    right.subresource === used.subresource &&
    (right.namespace === "" || isOwnNamespace(right, used)) &&
    (right.name === undefined || right.name === used.name)
  );
}

/** The chart chooses the namespace of an identity. */
function isOwnNamespace({ namespace }: GrantedRight, used: UsedRight): boolean {
  return used.namespace === namespace || used.user.split(":")[2] === used.namespace;
}

/** Whether a program sent it: requests of the tests with its token prove nothing. */
function isByProgram({ userAgent }: UsedRight): boolean {
  return /^(lastcall|kubectl)/.test(userAgent);
}

/** Whether every authenticated user may send it: who am I, and what may I do? */
function isEverybodys({ group }: UsedRight): boolean {
  return group === "authentication.k8s.io" || group === "authorization.k8s.io";
}

function nameOf({ verb, group, resource, subresource, name }: GrantedRight | UsedRight): string {
  const place = group === "" ? resource : `${resource}.${group}`;
  const which = name === undefined || name === "" ? "" : ` ${name}`;
  return `${verb} ${place}${subresource === "" ? "" : `/${subresource}`}${which}`;
}

interface Row {
  readonly what: string;
  readonly granted: number;
  readonly used: number;
  readonly missing: readonly string[];
  readonly unused: readonly string[];
}

function rowOf({ what, users, granted, others }: Identity, all: readonly UsedRight[]): Row {
  const own = all.filter((one) => users.includes(one.user) && isByProgram(one));
  const unused = granted.filter((right) => !own.some((one) => one.allowed && covers(right, one)));
  const missing = own
    .filter((one) => !isEverybodys(one) && !isOnPurpose(one))
    .filter((one) => ![...granted, ...others].some((right) => covers(right, one)));
  return {
    what,
    ...{ granted: granted.length, used: granted.length - unused.length },
    missing: [...new Set(missing.map((one) => `${nameOf(one)} (${one.file})`))],
    unused: unused.map(nameOf),
  };
}

function table(rows: readonly Row[]): string {
  const head = ["identity", "granted", "used", "missing", "unused"];
  const cells = rows.map(({ what, granted, used, missing, unused }) => [
    ...[what, granted, used, missing.length, unused.length].map(String),
  ]);
  const widths = head.map((_, column) =>
    Math.max(...[head, ...cells].map((line) => line[column]?.length ?? 0)),
  );
  const lines = [head, ...cells].map((line) =>
    line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  "),
  );
  return lines.map((line) => line.trimEnd()).join("\n");
}

/** The files of this folder that this run has not run. */
function absentFiles(ran: ReadonlySet<string>): readonly string[] {
  // Somebody else's record says nothing about files.
  if (process.env.E2E_USED_RIGHTS !== undefined) return [];
  const files = readdirSync(import.meta.dirname).filter((file) => file.endsWith(".e2e.test.ts"));
  return files.filter((file) => file !== own && !ran.has(file));
}

test("RBAC grants everything that the files used that ran", (context) => {
  const { used } = readNotes();
  context.skip(used.length === 0, "no other file has run");
  const rows = identities.map((one) => rowOf(one, used));
  console.log(table(rows));
  expect(rows.flatMap(({ what, missing }) => missing.map((one) => `${what}: ${one}`))).toEqual([]);
});

test("RBAC grants nothing that no file uses", (context) => {
  const { files, used } = readNotes();
  const absent = absentFiles(files);
  context.skip(
    absent.length > 0,
    `only npm run e2e:all shows it: ${absent.length} files did not run`,
  );
  const rows = identities.map((one) => rowOf(one, used));
  expect(rows.flatMap(({ what, unused }) => unused.map((one) => `${what}: ${one}`))).toEqual([]);
});
