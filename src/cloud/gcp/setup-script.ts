import type { ReleaseMode } from "../../core/policy/policy.ts";
import { LastcallError } from "../../errors.ts";
import { permissionsFor } from "./compute-permission.ts";

/** What `lastcall setup gcp` is asked to set up. */
export interface SetupChoice {
  readonly project: string;
  /** Of the controller's ServiceAccount in the cluster. */
  readonly namespace: string;
  readonly serviceAccount: string;
  readonly role: string;
  readonly release: ReleaseMode;
  readonly regionalGroups: boolean;
  readonly preemptionPoll: boolean;
  /** Bind a Google service account of this name; absent: the ServiceAccount itself. */
  readonly googleServiceAccount?: string | undefined;
  /** Look first whether this cluster has Workload Identity. */
  readonly cluster?: { readonly name: string; readonly location: string } | undefined;
  readonly kubeconfig?: string | undefined;
  readonly context?: string | undefined;
}

/**
 * A shell script that gives the controller its rights on Compute Engine by Workload Identity. Run a
 * second time it brings what is there in line. Every value is quoted, and held to its form before.
 * Throws USAGE for a value that cannot be what it should be.
 */
export function setupScript(choice: SetupChoice): string {
  checkForms(choice);
  const { googleServiceAccount } = choice;
  const parts = [head(choice), checks(choice), role];
  if (googleServiceAccount === undefined) parts.push(directBinding);
  else parts.push(accountBinding);
  return `${parts.filter((part) => part !== "").join("\n\n")}\n\n${done}\n`;
}

/** As a word of the shell, whatever is in it. */
export function shellQuoted(value: string): string {
  return `'${value.replaceAll("'", "'\\''")}'`;
}

interface Form {
  readonly flag: string;
  readonly pattern: RegExp;
  readonly wanted: string;
}

const label = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const forms = {
  project: {
    flag: "--project",
    pattern: /^[a-z][-a-z0-9]{4,28}[a-z0-9]$/,
    wanted: "the id of a project, such as my-project-1",
  },
  namespace: { flag: "--namespace", pattern: label, wanted: "the name of a namespace" },
  serviceAccount: {
    flag: "--service-account",
    pattern: /^[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$/,
    wanted: "the name of a Kubernetes ServiceAccount",
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

function checkForms(choice: SetupChoice): void {
  const { cluster, ...rest } = choice;
  const values = { ...rest, cluster: cluster?.name, location: cluster?.location };
  for (const [name, form] of Object.entries(forms)) {
    const value = values[name as keyof typeof forms];
    if (value !== undefined && !form.pattern.test(value)) throw misformed(form, value);
  }
  for (const [flag, value] of [
    ["--context", choice.context],
    ["--kubeconfig", choice.kubeconfig],
  ] as const) {
    // A line break would be seen as one in the script that a person reads.
    const printable = value === undefined || /^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+$/u.test(value);
    if (!printable) throw misformed({ flag, pattern: /./, wanted: "printable text" }, value);
  }
}

function misformed({ flag, wanted }: Form, value: string): LastcallError {
  const found = `found ${JSON.stringify(value.slice(0, 60))}`;
  return new LastcallError("USAGE", `Cannot use ${flag}: ${found}, expected ${wanted}`);
}

function head(choice: SetupChoice): string {
  const { googleServiceAccount: account, cluster } = choice;
  const rights = permissionsFor({ ...choice, mode: choice.release });
  const variables = [
    ["project", choice.project],
    ["role", choice.role],
    ["namespace", choice.namespace],
    ["service_account", choice.serviceAccount],
    ...(account === undefined ? [] : [["google_service_account", account]]),
    ...(cluster === undefined ? [] : [["cluster", cluster.name]]),
    ...(cluster === undefined ? [] : [["location", cluster.location]]),
    ["permissions", rights.map(({ permission }) => permission).join(",")],
  ] as const;
  return [
    "#!/usr/bin/env bash",
    "# Gives the Lastcall controller its rights on Compute Engine, by Workload Identity.",
    "# Made by `lastcall setup gcp`. It can be run again: what is there is brought in line.",
    "#",
    `# For instance.release: ${choice.release} the controller needs these permissions and no others:`,
    ...rights.map(({ permission, neededFor }) => `#   ${permission}: ${neededFor}`),
    "set -euo pipefail",
    "",
    ...variables.map(([name = "", value = ""]) => `${name}=${shellQuoted(value)}`),
  ].join("\n");
}

function checks(choice: SetupChoice): string {
  const kubectl = choice.googleServiceAccount !== undefined;
  const parts = ["gcloud", ...(kubectl ? ["kubectl"] : [])].map(
    (tool) =>
      `command -v ${tool} >/dev/null || { echo "Cannot go on: ${tool} is not on the PATH" >&2; exit 1; }`,
  );
  if (kubectl) parts.push("", kubectlPart(choice));
  if (choice.cluster !== undefined) parts.push("", clusterCheck);
  return parts.join("\n");
}

function kubectlPart({ kubeconfig, context }: SetupChoice): string {
  const flags = [
    ...(kubeconfig === undefined ? [] : ["--kubeconfig", shellQuoted(kubeconfig)]),
    ...(context === undefined ? [] : ["--context", shellQuoted(context)]),
    '--namespace "$namespace"',
  ];
  return `# The ServiceAccount comes with deploy/base; without it nothing is changed.
kubectl=(kubectl ${flags.join(" ")})
"\${kubectl[@]}" get serviceaccount "$service_account" >/dev/null`;
}

const clusterCheck = `# Only looked at: to switch Workload Identity on is a change of the cluster and of its nodes.
pool="$(gcloud container clusters describe "$cluster" --project "$project" --location "$location" \\
  --format 'value(workloadIdentityConfig.workloadPool)')"
if [[ "$pool" != "$project.svc.id.goog" ]]; then
  echo "Cannot go on: the cluster $cluster has no Workload Identity of $project, see docs/cloud/gcp.md" >&2
  exit 1
fi`;

const role = `# 1. The role: what the controller does on Compute Engine, and nothing else.
state="$(gcloud iam roles describe "$role" --project "$project" --format 'value(deleted)' 2>/dev/null \\
  || echo missing)"
case "$state" in
  missing)
    gcloud iam roles create "$role" --project "$project" --title Lastcall \\
      --stage GA --permissions "$permissions" --quiet
    ;;
  True)
    # A role that was deleted keeps its id for some weeks.
    gcloud iam roles undelete "$role" --project "$project" --quiet
    gcloud iam roles update "$role" --project "$project" --permissions "$permissions" --quiet
    ;;
  *)
    gcloud iam roles update "$role" --project "$project" --permissions "$permissions" --quiet
    ;;
esac`;

const grantRole = `gcloud projects add-iam-policy-binding "$project" --condition=None \\
  --role "projects/$project/roles/$role" --member "$member" --quiet >/dev/null`;

const directBinding = `# 2. The role for the ServiceAccount of the controller; no Google service account is needed.
number="$(gcloud projects describe "$project" --format 'value(projectNumber)')"
pool="projects/$number/locations/global/workloadIdentityPools/$project.svc.id.goog"
member="principal://iam.googleapis.com/$pool/subject/ns/$namespace/sa/$service_account"
${grantRole}`;

const accountBinding = `# 2. A Google service account, with the role.
account="$google_service_account@$project.iam.gserviceaccount.com"
if ! gcloud iam service-accounts describe "$account" --project "$project" >/dev/null 2>&1; then
  gcloud iam service-accounts create "$google_service_account" --project "$project" \\
    --display-name Lastcall --quiet
fi
member="serviceAccount:$account"
# One that was just made may not be known everywhere yet.
for attempt in 1 2 3 4 5; do
  if ${indented(grantRole)}; then break; fi
  if [[ "$attempt" == 5 ]]; then echo "Cannot grant the role to $account" >&2; exit 1; fi
  sleep "$attempt"
done

# 3. The ServiceAccount of the controller may act as it, and says so.
gcloud iam service-accounts add-iam-policy-binding "$account" --project "$project" \\
  --condition=None --role roles/iam.workloadIdentityUser \\
  --member "serviceAccount:$project.svc.id.goog[$namespace/$service_account]" --quiet >/dev/null
"\${kubectl[@]}" annotate serviceaccount "$service_account" --overwrite \\
  "iam.gke.io/gcp-service-account=$account"`;

function indented(text: string): string {
  return text.replaceAll("\n", "\n  ");
}

const done = `echo "Done: $namespace/$service_account has the role $role in $project."
echo "A right may take some minutes until it holds."`;
