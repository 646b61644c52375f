import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";

/** What stands in a false Google Cloud project, as files; a test makes and removes them. */
export type Standing =
  | "role"
  | "role-deleted"
  | "account"
  | "service-account"
  | "workload-pool"
  | "slow-account";

export interface FakeGcloud {
  /** A PATH on which nothing but bash and the false tools is found. */
  readonly path: string;
  readonly folder: string;
  put(what: Standing): void;
  has(what: Standing): boolean;
  /** Every call so far, its arguments with a bar between. */
  calls(): readonly string[];
  forget(): void;
  remove(): void;
}

const preamble = `#!/bin/bash
here="\${0%/*}"
IFS='|'
echo "\${0##*/}|$*" >> "$here/calls"
has() { [[ -e "$here/has-$1" ]]; }
put() { : > "$here/has-$1"; }
refuse() { echo "ERROR: $1" >&2; exit 1; }
`;

const gcloud = `${preamble}
case "$1 $2 $3" in
  "iam roles describe") has role || refuse "no such role"; ! has role-deleted || echo True ;;
  "iam roles create") ! has role || refuse "the role exists already"; put role ;;
  "iam roles undelete") has role-deleted || refuse "it is not deleted"; mv "$here/has-role-deleted" "$here/was" ;;
  "iam roles update") has role || refuse "no such role"; ! has role-deleted || refuse "it is deleted" ;;
  "iam service-accounts describe") has account || refuse "no such account" ;;
  "iam service-accounts create") ! has account || refuse "the account exists already"; put account ;;
  "projects describe "*) echo 601024681890 ;;
  "container clusters describe") ! has workload-pool || echo "$6.svc.id.goog" ;;
  "projects add-iam-policy-binding "*)
    if has slow-account; then mv "$here/has-slow-account" "$here/was"; refuse "no such account yet"; fi ;;
  "iam service-accounts add-iam-policy-binding") has account || refuse "no such account" ;;
  *) refuse "no such command: $*" ;;
esac
`;

const kubectl = `${preamble}
case "$*" in
  *'|get|serviceaccount|'*) has service-account || refuse "serviceaccounts not found" ;;
  *'|annotate|serviceaccount|'*) has service-account || refuse "serviceaccounts not found" ;;
  *) refuse "no such command: $*" ;;
esac
`;

/** A gcloud and a kubectl that note what they are asked, and answer as for a small false project. */
export function makeFakeGcloud(): FakeGcloud {
  const folder = mkdtempSync(join(tmpdir(), "lastcall-gcloud-"));
  const tools = { gcloud, kubectl, sleep: preamble };
  for (const [name, text] of Object.entries(tools)) {
    writeFileSync(join(folder, name), text);
    chmodSync(join(folder, name), 0o755);
  }
  for (const name of ["bash", "mv"]) symlinkSync(whichOf(name), join(folder, name));
  const calls = join(folder, "calls");
  return {
    path: folder,
    folder,
    put: (what) => writeFileSync(join(folder, `has-${what}`), ""),
    has: (what) => existsSync(join(folder, `has-${what}`)),
    calls: () => (existsSync(calls) ? readFileSync(calls, "utf8").split("\n").slice(0, -1) : []),
    forget: () => rmSync(calls, { force: true }),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

function whichOf(name: string): string {
  const found = (process.env.PATH ?? "")
    .split(delimiter)
    .map((folder) => join(folder, name))
    .find(existsSync);
  if (found === undefined) throw new Error(`Cannot find ${name} on the PATH`);
  return found;
}
