import type { ReleaseMode } from "../../core/policy/policy.ts";
import { linkFunctions, linkLook } from "../setup/account-link.ts";
import {
  type AccountChoice,
  accountForms,
  assignments,
  checkForms,
  endReport,
  type Form,
  keeping,
  kubectlArray,
  lookFunction,
  madeBy,
  nothingChanged,
  partlyCreated,
  toolChecks,
  undoEnd,
  unfinishedNow,
} from "../setup/shell-script.ts";
import { accountLink, link, linkOwners, setupLinkLook, undoLink } from "./account-link.ts";
import { type ComputePermission, permissionsFor } from "./permissions.ts";
import { keyCreation, keyDone, keyLook, keysLook, undoKey, undoKeyLook } from "./setup-key.ts";
import { accountRoles, twinLook, undoAccount, undoDirect, undoRole } from "./undo-steps.ts";

/** The options of `lastcall setup gcp`. */
export interface SetupChoice extends AccountChoice {
  readonly project: string;
  readonly role: string;
  readonly release: ReleaseMode;
  readonly preemptionPoll: boolean;
  /** The Google service account to bind. By default the ServiceAccount itself is bound. */
  readonly googleServiceAccount?: string | undefined;
  /** Without Workload Identity: a key of the Google service account, in a Secret. */
  readonly keyFile?: boolean | undefined;
  /** The cluster to check for Workload Identity first. */
  readonly cluster?: { readonly name: string; readonly location: string } | undefined;
}

/**
 * Returns a shell script that grants the controller its permissions on Compute Engine by Workload
 * Identity, or by a key. A second run updates what the first one created. Every value is validated
 * and quoted. Throws USAGE for an invalid value.
 */
export function setupScript(choice: SetupChoice): string {
  const { keyFile } = choice;
  checkForms(formsOf(choice), forms);
  const how = keyFile ? "a key of a Google service account" : "Workload Identity";
  const purpose = `Grants the Lastcall controller its permissions on Compute Engine, by ${how}`;
  const rights = permissionsFor({ ...choice, mode: choice.release });
  const permissions = rights.map(({ permission }) => permission).join(",");
  const parts = [
    head({
      ...{ script: "Setup", purpose, rights: rightsOf(choice, rights) },
      named: { ...variables(choice), permissions },
    }),
    checks(choice),
    // The role's permissions are replaced, so a role that others created must not be touched.
    roleLook,
    holders,
    ...identityLooks(choice),
    membersLook,
    unfinishedNow(partlyCreated),
    role,
    ...identitySteps(choice),
    keyFile ? keyDone : done,
  ];
  return `${parts.join("\n\n")}\n`;
}

function identityLooks({ googleServiceAccount, keyFile }: SetupChoice): readonly string[] {
  if (googleServiceAccount === undefined) return [directMember];
  return keyFile ? [accountLook, keysLook, keyLook] : [accountLook, userLook, setupLinkLook];
}

function identitySteps({ googleServiceAccount, keyFile }: SetupChoice): readonly string[] {
  if (googleServiceAccount === undefined) return [directBinding];
  return [accountGrant, keyFile ? keyCreation : accountLink];
}

function formsOf({ cluster, ...choice }: SetupChoice) {
  return { ...choice, cluster: cluster?.name, location: cluster?.location };
}

/**
 * Removes what the script of the same choice created, and nothing else. A role or an account that
 * another installation uses, too, is kept.
 */
export function undoScript(choice: SetupChoice): string {
  checkForms(formsOf(choice), forms);
  const kubectl = choice.googleServiceAccount !== undefined;
  const parts = [
    head({
      ...{ script: "Undo", rights: [], named: variables(choice) },
      purpose: "Removes what `lastcall setup gcp` created, and nothing else",
    }),
    `${toolChecks(["gcloud", ...(kubectl ? ["kubectl"] : [])])}
${endReport(nothingChanged)}

${look}`,
    ...(kubectl ? [kubectlOn(choice)] : []),
    ...[roleLook, holders, keeping],
    ...undoSteps(choice),
    undoEnd(
      'echo "Done: everything that was set up for $namespace/$service_account in $project is removed$rest."',
    ),
  ];
  return `${parts.join("\n\n")}\n`;
}

function kubectlOn(choice: SetupChoice): string {
  const kubectl = kubectlArray(choice);
  return choice.keyFile ? kubectl : `${kubectl}\n${linkFunctions(link)}`;
}

function undoSteps({ googleServiceAccount, keyFile }: SetupChoice): readonly string[] {
  if (googleServiceAccount === undefined) {
    return [twinLook, directMember, membersLook, undoDirect, undoRole(2)];
  }
  const looks = [accountLook, userLook, membersLook, accountRoles, keysLook];
  // A key is one installation's, wherever other clusters have a ServiceAccount of the same name.
  if (keyFile) return [...looks, undoKeyLook, undoKey, undoAccount, undoRole(3)];
  return [twinLook, ...looks, linkOwners, undoLink, undoAccount, undoRole(3)];
}

const label = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const forms = {
  ...accountForms,
  project: {
    flag: "--project",
    pattern: /^[a-z][-a-z0-9]{4,28}[a-z0-9]$/,
    wanted: "the id of a project, such as my-project-1",
  },
  role: {
    flag: "--role",
    pattern: /^[a-zA-Z0-9_.]{3,64}$/,
    wanted: "the id of a custom role: 3 to 64 letters, digits, dots and underscores",
  },
  googleServiceAccount: {
    flag: "--google-service-account",
    pattern: /^[a-z][-a-z0-9]{4,28}[a-z0-9]$/,
    wanted: "the name of a service account: 6 to 30 letters, digits and dashes, without the @",
  },
  cluster: { flag: "--cluster", pattern: label, wanted: "the name of a cluster" },
  location: { flag: "--location", pattern: label, wanted: "a zone or region" },
} as const satisfies Record<string, Form>;

function head(words: {
  readonly script: "Setup" | "Undo";
  readonly purpose: string;
  readonly rights: readonly string[];
  readonly named: Readonly<Record<string, string | undefined>>;
}): string {
  const { script, purpose, rights, named } = words;
  return [
    "#!/usr/bin/env bash",
    `# ${purpose}.`,
    madeBy("gcp", script),
    ...rights,
    "set -euo pipefail",
    "",
    assignments({ ...named, mark }),
  ].join("\n");
}

function rightsOf({ release }: SetupChoice, rights: readonly ComputePermission[]): string[] {
  return [
    "#",
    `# For instance.release: ${release} the controller needs these permissions and no others:`,
    ...rights.map(({ permission, neededFor }) => `#   ${permission}: ${neededFor}`),
  ];
}

function variables(choice: SetupChoice): Readonly<Record<string, string | undefined>> {
  return {
    project: choice.project,
    role: choice.role,
    namespace: choice.namespace,
    service_account: choice.serviceAccount,
    google_service_account: choice.googleServiceAccount,
    cluster: choice.cluster?.name,
    location: choice.cluster?.location,
  };
}

function checks(choice: SetupChoice): string {
  const kubectl = choice.googleServiceAccount !== undefined;
  const tools = toolChecks(["gcloud", ...(kubectl ? ["kubectl"] : [])]);
  const parts = [tools, endReport(nothingChanged), "", look];
  if (kubectl) {
    parts.push("", kubectlOn(choice));
  }
  if (choice.cluster !== undefined) parts.push("", clusterCheck);
  // A Secret with a key is mounted, so it is created before the controller is installed.
  if (kubectl && !choice.keyFile) {
    parts.push("", linkLook(choice.cluster === undefined ? undefined : issuerOf));
  }
  return parts.join("\n");
}

/** The issuer of a cluster of GKE, as in its documentation of Workload Identity Federation. */
const issuerOf =
  '"https://container.googleapis.com/v1/projects/$project/locations/$location/clusters/$cluster"';

const clusterCheck = `# Only read: enabling Workload Identity would change the cluster and its nodes.
pool="$(gcloud container clusters describe "$cluster" --project "$project" --location "$location" \\
  --format 'value(workloadIdentityConfig.workloadPool)')"
if [[ "$pool" != "$project.svc.id.goog" ]]; then
  echo "Cannot continue: the cluster $cluster does not use Workload Identity of $project, see docs/cloud/gcp.md" >&2
  exit 1
fi`;

/**
 * gcloud exits with 1 for every error; the message of a missing role or account is its API's
 * status: `ERROR: (gcloud.iam.roles.describe) NOT_FOUND: The role named … was not found`, as quoted
 * in public logs. Without the permission to read it, the status is PERMISSION_DENIED.
 */
const look = lookFunction({
  tool: "gcloud",
  flags: "",
  exitCode: "1",
  message: '"ERROR: (gcloud."[a-z.-]+") NOT_FOUND: "',
});

/**
 * What the script creates has this description. A title or a display name does not show who created
 * it: people write those, too.
 */
const mark = "Made by lastcall setup gcp";

const role = `# 1. The role, with the permissions that the controller needs on Compute Engine and no others.
deleted="$(look iam roles describe "$role" --project "$project" --format 'value(deleted)')"
if [[ "$deleted" == missing ]]; then
  gcloud iam roles create "$role" --project "$project" --title Lastcall \\
    --description "$mark" --stage GA --permissions "$permissions" --quiet
else
  # The id of a deleted role stays reserved for some weeks, and others get back what they had by it.
  if [[ "$deleted" == True ]]; then
    gcloud iam roles undelete "$role" --project "$project" --quiet
  fi
  rest="$(others "$members" "$member")"
  rest="$(others "$rest" "$member with a condition")"
  how=--permissions
  if [[ -n "$rest" ]]; then
    echo "Others have the role $role, too, so it keeps the permissions that it has:"
    echo "$rest"
    how=--add-permissions
  fi
  gcloud iam roles update "$role" --project "$project" "$how" "$permissions" --quiet
fi`;

/** A condition narrows a grant, and a second grant without one would lift it. */
const grantRole = `grant() {
  if listed "$members" "$member with a condition"; then
    echo "Kept: the grant of $role to $member, with its condition"
    return
  fi
  gcloud projects add-iam-policy-binding "$project" --condition=None \\
    --role "projects/$project/roles/$role" --member "$member" --quiet >/dev/null
}`;

const directMember = `# The name of the ServiceAccount in IAM. It is the same in every cluster of the project.
number="$(gcloud projects describe "$project" --format 'value(projectNumber)')"
if [[ ! "$number" =~ ^[0-9]+$ ]]; then
  echo "Cannot continue: found $number as the number of the project $project, expected digits" >&2
  exit 1
fi
pool="projects/$number/locations/global/workloadIdentityPools/$project.svc.id.goog"
member="principal://iam.googleapis.com/$pool/subject/ns/$namespace/sa/$service_account"`;

const directBinding = `# 2. The role for the ServiceAccount of the controller; no Google service account is needed.
${grantRole}
grant`;

const accountGrant = `# 2. A Google service account, with the role.
if [[ "$account_state" == missing ]]; then
  gcloud iam service-accounts create "$google_service_account" --project "$project" \\
    --display-name Lastcall --description "$mark" --quiet
fi
${grantRole}
# A new account is not visible everywhere at once.
for attempt in 1 2 3 4 5; do
  if grant; then break; fi
  if [[ "$attempt" == 5 ]]; then echo "Cannot grant the role to $account" >&2; exit 1; fi
  sleep "$attempt"
done`;

const done = `echo "Done: $namespace/$service_account has the role $role in $project."
echo "It may take a few minutes until the permissions take effect."`;

/** A role that others created under this name is kept. */
const roleLook = `# Check who owns the existing resources before anything is changed.
found="$(look iam roles describe "$role" --project "$project" --format 'value(description)')"
if [[ "$found" != missing && "$found" != "$mark" ]]; then
  echo "Cannot continue: the role $role has the description '$found', expected '$mark'; this script did not create it, choose another with --role" >&2
  exit 1
fi`;

/** The setup also takes an account that others created, which the undo must not delete. */
const accountLook = `account="$google_service_account@$project.iam.gserviceaccount.com"
member="serviceAccount:$account"
account_state="$(look iam service-accounts describe "$account" --project "$project" \\
  --format 'value(description)')"`;

const userLook = `user="serviceAccount:$project.svc.id.goog[$namespace/$service_account]"
link="$user roles/iam.workloadIdentityUser"
# Who has which role over the account.
users=""
if [[ "$account_state" != missing ]]; then
  users="$(gcloud iam service-accounts get-iam-policy "$account" --project "$project" \\
    --flatten 'bindings[].members' --format '${policyColumns("bindings.role")}' | words)"
fi`;

/** Other installations of the project may use the same role and the same Google service account. */
const holders = `# Prints the members of the role, one per line; after some of them, "with a condition".
holders() {
  gcloud projects get-iam-policy "$project" --flatten 'bindings[].members' \\
    --filter "bindings.role=projects/$project/roles/$role" \\
    --format '${policyColumns()}' | words
}
# Puts a space between the columns of gcloud, some of which are empty.
words() {
  local one two three
  while IFS=$'\\t' read -r one two three; do echo "$one\${two:+ $two}\${three:+ $three}"; done
}
# Prints the members of the list $1 other than $2. Those that are deleted use nothing anymore.
others() {
  local one
  while IFS= read -r one; do
    if [[ -n "$one" && "$one" != "$2" && "$one" != deleted:* ]]; then echo "$one"; fi
  done <<< "$1"
}
listed() { [[ $'\\n'"$1"$'\\n' == *$'\\n'"$2"$'\\n'* ]]; }`;

const membersLook = 'members="$(holders)"';

/** The columns of a policy whose bindings are flattened by their members. */
function policyColumns(...more: readonly string[]): string {
  const condition = 'bindings.condition.yesno(yes="with a condition",no="")';
  return `value(${["bindings.members", ...more, condition].join(",")})`;
}
