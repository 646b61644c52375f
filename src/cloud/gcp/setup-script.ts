import type { ReleaseMode } from "../../core/policy/policy.ts";
import {
  type AccountChoice,
  accountCheck,
  accountForms,
  annotationRemoval,
  assignments,
  checkForms,
  endReport,
  type Form,
  indented,
  kubectlArray,
  lookFunction,
  madeBy,
  nothingChanged,
  partlyCreated,
  partlyRemoved,
  toolChecks,
  undoEnd,
  unfinishedNow,
} from "../setup/shell-script.ts";
import { type ComputePermission, permissionsFor } from "./permissions.ts";

/** The options of `lastcall setup gcp`. */
export interface SetupChoice extends AccountChoice {
  readonly project: string;
  readonly role: string;
  readonly release: ReleaseMode;
  readonly regionalGroups: boolean;
  readonly preemptionPoll: boolean;
  /** The Google service account to bind. By default the ServiceAccount itself is bound. */
  readonly googleServiceAccount?: string | undefined;
  /** The cluster to check for Workload Identity first. */
  readonly cluster?: { readonly name: string; readonly location: string } | undefined;
}

/**
 * Returns a shell script that grants the controller its permissions on Compute Engine by Workload
 * Identity. A second run updates what the first one created. Every value is validated and quoted.
 * Throws USAGE for an invalid value.
 */
export function setupScript(choice: SetupChoice): string {
  const { googleServiceAccount, cluster } = choice;
  checkForms({ ...choice, cluster: cluster?.name, location: cluster?.location }, forms);
  const purpose =
    "Grants the Lastcall controller its permissions on Compute Engine, by Workload Identity";
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
    ...(googleServiceAccount === undefined ? [directMember] : [accountLook]),
    unfinishedNow(partlyCreated),
    role,
  ];
  if (googleServiceAccount === undefined) parts.push(directBinding);
  else parts.push(accountBinding);
  return `${parts.filter((part) => part !== "").join("\n\n")}\n\n${done}\n`;
}

/**
 * Removes what the script of the same choice created, and nothing else. A role or an account that
 * another installation uses, too, is kept.
 */
export function undoScript(choice: SetupChoice): string {
  const { googleServiceAccount, cluster } = choice;
  checkForms({ ...choice, cluster: cluster?.name, location: cluster?.location }, forms);
  const parts = [
    head({
      ...{ script: "Undo", rights: [], named: variables(choice) },
      purpose: "Removes what `lastcall setup gcp` created, and nothing else",
    }),
    `${toolChecks(["gcloud", ...(googleServiceAccount === undefined ? [] : ["kubectl"])])}
${endReport(nothingChanged)}

${look}`,
    ...(googleServiceAccount === undefined
      ? [roleLook, holders, keeping, twinLook, directMember, undoDirect, undoRole(2)]
      : [
          kubectlArray(choice),
          ...[roleLook, holders, keeping, twinLook, accountLook, userLook],
          ...[undoAccount, undoRole(3)],
        ]),
    undoEnd(
      'echo "Done: everything that was set up for $namespace/$service_account in $project is removed$rest."',
    ),
  ];
  return `${parts.join("\n\n")}\n`;
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
    assignments(named),
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
    const comment = "# deploy/base creates the ServiceAccount; without it, nothing is changed.";
    parts.push("", comment, kubectlArray(choice), accountCheck);
  }
  if (choice.cluster !== undefined) parts.push("", clusterCheck);
  return parts.join("\n");
}

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
  exitCode: 1,
  message: '"ERROR: (gcloud."[a-z.-]+") NOT_FOUND: "',
});

const role = `# 1. The role, with the permissions that the controller needs on Compute Engine and no others.
deleted="$(look iam roles describe "$role" --project "$project" --format 'value(deleted)')"
case "$deleted" in
  missing)
    gcloud iam roles create "$role" --project "$project" --title Lastcall \\
      --stage GA --permissions "$permissions" --quiet
    ;;
  True)
    # The id of a deleted role stays reserved for some weeks.
    gcloud iam roles undelete "$role" --project "$project" --quiet
    gcloud iam roles update "$role" --project "$project" --permissions "$permissions" --quiet
    ;;
  *)
    members="$(holders)"
    members="$(others "$members" "$member")"
    if [[ -n "$members" ]]; then
      echo "Others have the role $role, too, so it keeps the permissions that it has:"
      echo "$members"
      gcloud iam roles update "$role" --project "$project" --add-permissions "$permissions" --quiet
    else
      gcloud iam roles update "$role" --project "$project" --permissions "$permissions" --quiet
    fi
    ;;
esac`;

const grantRole = `gcloud projects add-iam-policy-binding "$project" --condition=None \\
  --role "projects/$project/roles/$role" --member "$member" --quiet >/dev/null`;

const directMember = `# The name of the ServiceAccount in IAM. It is the same in every cluster of the project.
number="$(gcloud projects describe "$project" --format 'value(projectNumber)')"
pool="projects/$number/locations/global/workloadIdentityPools/$project.svc.id.goog"
member="principal://iam.googleapis.com/$pool/subject/ns/$namespace/sa/$service_account"`;

const directBinding = `# 2. The role for the ServiceAccount of the controller; no Google service account is needed.
${grantRole}`;

const accountBinding = `# 2. A Google service account, with the role.
if [[ "$account_state" == missing ]]; then
  gcloud iam service-accounts create "$google_service_account" --project "$project" \\
    --display-name Lastcall --quiet
fi
# A new account is not visible everywhere at once.
for attempt in 1 2 3 4 5; do
  if ${indented(grantRole)}; then break; fi
  if [[ "$attempt" == 5 ]]; then echo "Cannot grant the role to $account" >&2; exit 1; fi
  sleep "$attempt"
done

# 3. The controller's ServiceAccount may impersonate it, and its annotation names it.
gcloud iam service-accounts add-iam-policy-binding "$account" --project "$project" \\
  --condition=None --role roles/iam.workloadIdentityUser \\
  --member "serviceAccount:$project.svc.id.goog[$namespace/$service_account]" --quiet >/dev/null
"\${kubectl[@]}" annotate serviceaccount "$service_account" --overwrite \\
  "iam.gke.io/gcp-service-account=$account"`;

const done = `echo "Done: $namespace/$service_account has the role $role in $project."
echo "It may take a few minutes until the permissions take effect."`;

/** A role that others created under this name is kept. */
const roleLook = `# Check who owns the existing resources before anything is changed.
title="$(look iam roles describe "$role" --project "$project" --format 'value(title)')"
if [[ "$title" != missing && "$title" != Lastcall ]]; then
  echo "Cannot continue: the role $role has the title $title, expected Lastcall; this script did not create it, choose another with --role" >&2
  exit 1
fi`;

/** The setup also takes an account that others created, which the undo must not delete. */
const accountLook = `account="$google_service_account@$project.iam.gserviceaccount.com"
member="serviceAccount:$account"
account_state="$(look iam service-accounts describe "$account" --project "$project" \\
  --format 'value(displayName)')"`;

/** Other installations of the project may use the same role and the same Google service account. */
const holders = `# Prints the members of the role, one per line.
holders() {
  gcloud projects get-iam-policy "$project" --flatten 'bindings[].members' \\
    --filter "bindings.role=projects/$project/roles/$role" --format 'value(bindings.members)'
}
# Prints the members of the list $1 other than $2. Those that are deleted use nothing anymore.
others() {
  local one
  while IFS= read -r one; do
    if [[ -n "$one" && "$one" != "$2" && "$one" != deleted:* ]]; then echo "$one"; fi
  done <<< "$1"
}
listed() { [[ $'\\n'"$1"$'\\n' == *$'\\n'"$2"$'\\n'* ]]; }`;

const keeping = `rest=""
keep() {
  echo "Kept: $1"
  rest=", except for what is kept"
}`;

/**
 * A ServiceAccount has the same name in IAM in every cluster of the project, so a grant cannot be
 * marked as one cluster's. Without a named cluster, a single one is the one that is meant. gcloud
 * exits with 0 although some locations did not respond; then clusters may be missing.
 */
const twinLook = `# The other clusters of the project, whose ServiceAccounts have the same names in IAM.
list_clusters() {
  gcloud container clusters list --project "$project" --quiet \\
    --filter "workloadIdentityConfig.workloadPool=$project.svc.id.goog" \\
    --format 'value[separator=/](location,name)'
}
warnings="$(list_clusters 2>&1 >/dev/null)" || {
  echo "Cannot tell which clusters use the grant: gcloud container clusters list failed: $warnings" >&2
  exit 1
}
if [[ "$warnings" == *"did not respond"* ]]; then
  echo "Cannot tell which clusters use the grant: $warnings" >&2
  exit 1
fi
clusters="$(list_clusters)"
twins="$clusters"
if [[ -n "\${cluster-}" ]]; then
  twins="$(others "$twins" "$location/$cluster")"
elif [[ "$twins" != *$'\\n'* ]]; then
  twins=""
fi
gone() { [[ -n "\${cluster-}" ]] && ! listed "$clusters" "$location/$cluster"; }
keep_for_twins() {
  keep "$1, since the ServiceAccount $namespace/$service_account of these clusters has the same name in IAM:"
  echo "$twins"
  echo "If none of these runs Lastcall, remove it, and run this again:"
}`;

const undoGrant = `if listed "$members" "$member"; then
  gcloud projects remove-iam-policy-binding "$project" --condition=None \\
    --role "projects/$project/roles/$role" --member "$member" --quiet >/dev/null
fi`;

const undoDirect = `# 1. The grant, unless another cluster's ServiceAccount has it, too.
members="$(holders)"
${unfinishedNow(partlyRemoved("the grant, and the role $role"))}
if [[ -n "$twins" ]] && listed "$members" "$member"; then
  keep_for_twins "the grant"
  echo "gcloud projects remove-iam-policy-binding $project --condition=None --role projects/$project/roles/$role --member $member"
  member=""
else
  ${indented(undoGrant)}
fi`;

const userLook = `user="serviceAccount:$project.svc.id.goog[$namespace/$service_account]"
users=""
if [[ "$account_state" != missing ]]; then
  users="$(gcloud iam service-accounts get-iam-policy "$account" --project "$project" \\
    --flatten 'bindings[].members' --filter bindings.role=roles/iam.workloadIdentityUser \\
    --format 'value(bindings.members)')"
fi
members="$(holders)"`;

const undoAccount = `# 1. The link between the ServiceAccount and the Google service account.
${unfinishedNow(partlyRemoved("the link to the account $account, its grant, the account, and the role $role"))}
if listed "$users" "$user"; then
  if [[ -n "$twins" ]]; then
    keep_for_twins "the permission to impersonate $account"
    echo "gcloud iam service-accounts remove-iam-policy-binding $account --project $project --condition=None --role roles/iam.workloadIdentityUser --member '$user'"
  else
    gcloud iam service-accounts remove-iam-policy-binding "$account" --project "$project" \\
      --condition=None --role roles/iam.workloadIdentityUser --member "$user" --quiet >/dev/null
    users="$(others "$users" "$user")"
  fi
fi
users="$(others "$users" "")"
${annotationRemoval("iam.gke.io/gcp-service-account", '"$account"')}

# 2. The grant, and the Google service account, unless others use the account, too.
${unfinishedNow(partlyRemoved("the grant of $account, the account, and the role $role"))}
if [[ -n "$users" ]]; then
  keep "the account $account and its grant, since others may impersonate it:"
  echo "$users"
  echo "If none of these is a Lastcall controller, remove the grant, and run this again:"
  echo "gcloud projects remove-iam-policy-binding $project --condition=None --role projects/$project/roles/$role --member $member"
  member=""
else
  ${indented(undoGrant)}
  if [[ "$account_state" == Lastcall ]]; then
    gcloud iam service-accounts delete "$account" --project "$project" --quiet
  elif [[ "$account_state" != missing ]]; then
    keep "the account $account (display name: $account_state), which this script did not create"
  fi
fi`;

function undoRole(step: number): string {
  return `# ${step}. The role, unless others have it, too; Google keeps its id reserved for some weeks.
${unfinishedNow(partlyRemoved("the role $role"))}
deleted="$(look iam roles describe "$role" --project "$project" --format 'value(deleted)')"
if [[ "$deleted" != missing && "$deleted" != True ]]; then
  members="$(holders)"
  members="$(others "$members" "$member")"
  if [[ -n "$members" ]]; then
    keep "the role $role, which others still have:"
    echo "$members"
  else
    gcloud iam roles delete "$role" --project "$project" --quiet >/dev/null
  fi
fi`;
}
