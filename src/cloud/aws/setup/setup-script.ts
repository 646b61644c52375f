import { LastcallError } from "../../../errors.ts";
import { linkCheck, linkFunctions, linkLook } from "../../setup/account-link.ts";
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
  partlyRemoved,
  shellQuoted,
  toolChecks,
  undoEnd,
  unfinishedNow,
} from "../../setup/shell-script.ts";
import {
  agentLook,
  annotationStep,
  association,
  associationCheck,
  associationLook,
  associationOwner,
  issuerLook,
  link,
  undoAnnotation,
  undoAssociation,
  undoIssuerLook,
} from "./account-link.ts";
import { type AwsUse, awsPermissionsFor } from "./permissions.ts";
import { queueLook, queueStep, undoQueue } from "./queue-steps.ts";
import {
  type AwsPlace,
  arnOf,
  healthEvents,
  machineEvents,
  permissionDocument,
  podIdentityTrust,
  queueAttributes,
  webIdentityTrust,
} from "./setup-documents.ts";

/** The options of `lastcall setup aws`. */
export interface AwsSetupChoice extends AccountChoice, AwsPlace, Omit<AwsUse, "queue"> {
  /** How the ServiceAccount assumes the role. */
  readonly identity: "PodIdentity" | "IRSA";
  readonly role: string;
}

const forms = {
  ...accountForms,
  account: { flag: "--account", pattern: /^\d{12}$/, wanted: "the 12 digits of an account" },
  region: {
    flag: "--region",
    pattern: /^(?:[a-z]{2}|eusc)(?:-[a-z]+)+-\d{1,2}$/,
    wanted: "a region, such as eu-west-1",
  },
  cluster: {
    flag: "--cluster",
    pattern: /^[a-zA-Z0-9][-_a-zA-Z0-9]{0,99}$/,
    wanted: "the name of an EKS cluster",
  },
  role: {
    flag: "--role",
    pattern: /^[a-zA-Z0-9_+=,.@-]{1,64}$/,
    wanted: "the name of an IAM role: 1 to 64 letters, digits and _+=,.@-",
  },
  // The second rule has the suffix -health, and rule names have at most 64 characters.
  queue: {
    flag: "--queue",
    pattern: /^[a-zA-Z0-9_-]{1,57}$/,
    wanted: "the name of a standard queue: 1 to 57 letters, digits, dashes and underscores",
  },
} as const satisfies Record<string, Form>;

/**
 * Returns a shell script that gives the controller its permissions in AWS and, if requested,
 * creates a queue for notices about the cluster's machines. A second run updates what the first one
 * created. Resources of the same name that it did not create are never changed. Throws USAGE for an
 * invalid value.
 */
export function awsSetupScript(choice: AwsSetupChoice): string {
  checkForms(choice, forms);
  const parts = [
    head("Setup", "Grants the Lastcall controller its permissions in AWS", rightsOf(choice)),
    variables(choice),
    documents(choice),
    checks(["aws", ...kubectlOf(choice)]),
    ...(choice.identity === "IRSA"
      ? [kubectlOn(choice), issuerLook, linkLook('"https://$issuer"'), linkCheck(link)]
      : [associationCheck, agentLook]),
    ownershipLook(choice),
    ...(choice.identity === "IRSA" ? [] : [associationOwner]),
    unfinishedNow(partlyCreated),
    roleStep,
    choice.identity === "IRSA" ? annotationStep : association,
    ...(choice.queue === undefined ? [] : [queueStep]),
    done(choice),
  ];
  return `${parts.join("\n\n")}\n`;
}

/** Removes what the script of the same choice created, and nothing else. */
export function awsUndoScript(choice: AwsSetupChoice): string {
  checkForms(choice, forms);
  const parts = [
    head("Undo", "Removes what `lastcall setup aws` created, and nothing else", []),
    variables(choice),
    checks(["aws", ...kubectlOf(choice)]),
    keeping,
    ownershipLook(choice),
    ...(choice.identity === "IRSA"
      ? [kubectlOn(choice), undoIssuerLook]
      : [associationLook, associationOwner]),
    ...(choice.queue === undefined ? [] : [undoQueue]),
    unfinishedNow(partlyRemoved(`the link to the role, and the role $role`)),
    choice.identity === "IRSA" ? undoAnnotation : undoAssociation,
    unfinishedNow(partlyRemoved("the role $role")),
    undoRole,
    undoEnd(undoDone(choice)),
  ];
  return `${parts.join("\n\n")}\n`;
}

function kubectlOn(choice: AwsSetupChoice): string {
  return `${kubectlArray(choice)}\n${linkFunctions(link)}`;
}

function kubectlOf({ identity }: AwsSetupChoice): readonly string[] {
  return identity === "IRSA" ? ["kubectl"] : [];
}

function useOf(choice: AwsSetupChoice): AwsUse {
  const queue = choice.queue !== undefined;
  return { ...choice, queue, hooks: queue && choice.hooks };
}

function head(script: "Setup" | "Undo", purpose: string, rights: readonly string[]): string {
  return [
    "#!/usr/bin/env bash",
    `# ${purpose}.`,
    madeBy("aws", script),
    "# Everything that it creates has the tag lastcall-cluster with the cluster's ARN and the ServiceAccount; it changes nothing without it.",
    ...rights,
    "set -euo pipefail",
  ].join("\n");
}

function rightsOf(choice: AwsSetupChoice): readonly string[] {
  const lines = awsPermissionsFor(useOf(choice)).map(
    ({ action, neededFor }) => `#   ${action}: ${neededFor}`,
  );
  const intro = `# For instance.release: ${choice.mode} the controller needs these permissions and no others:`;
  return ["#", intro, ...lines];
}

function variables(choice: AwsSetupChoice): string {
  const named = assignments({
    account: choice.account,
    cluster: choice.cluster,
    cluster_arn: clusterArn(choice),
    mark: markOf(choice),
    namespace: choice.namespace,
    service_account: choice.serviceAccount,
    role: choice.role,
    role_arn: arnOf(choice, "iam", `role/${choice.role}`),
    queue: choice.queue,
  });
  const region = shellQuoted(choice.region);
  return `${named}\nexport AWS_REGION=${region} AWS_DEFAULT_REGION=${region} AWS_PAGER=''`;
}

function clusterArn(choice: AwsSetupChoice): string {
  return arnOf(choice, "eks", `cluster/${choice.cluster}`);
}

/** Throws USAGE if it is too long for the value of a tag. */
function markOf(choice: AwsSetupChoice): string {
  const mark = `${clusterArn(choice)}/${choice.namespace}/${choice.serviceAccount}`;
  if (mark.length <= 256) return mark;
  const what = "with the cluster's ARN and the namespace they are too long for a tag";
  throw new LastcallError("USAGE", `Cannot use --service-account: ${what}, use a shorter name`);
}

function documents(choice: AwsSetupChoice): string {
  const { identity, queue } = choice;
  const trust = identity === "IRSA" ? webIdentityTrust : podIdentityTrust;
  const ofQueue = {
    queue_attributes: queueAttributes(choice),
    machine_events: machineEvents,
    health_events: healthEvents,
    queue_arn: arnOf(choice, "sqs", queue ?? ""),
  };
  return assignments({
    trust: trust(choice, choice),
    permissions: permissionDocument(choice, useOf(choice)),
    ...(queue === undefined ? {} : ofQueue),
  });
}

function checks(tools: readonly string[]): string {
  return `${toolChecks(tools)}
${endReport(nothingChanged)}

${look}

${own}

found="$(aws sts get-caller-identity --query Account --output text)"
if [[ "$found" != "$account" ]]; then
  echo "Cannot continue: aws is logged in to the account $found, expected $account" >&2
  exit 1
fi`;
}

/**
 * The exit code is documented ("AWS CLI return codes": 254 if the service returned an error, in
 * version 1 of the tool 255 for every error), the form of the message is botocore's, and the codes
 * are those of the four services' API references.
 */
const look = lookFunction({
  tool: "aws",
  flags: " --output text",
  exitCode: "25[45]",
  message:
    '"An error occurred ("(NoSuchEntity|ResourceNotFoundException|AWS.SimpleQueueService.NonExistentQueue|QueueDoesNotExist)") when calling"',
});

/**
 * A name is unique for a region and an account only, so the mark is the cluster's ARN. A cluster
 * that is deleted and created again has the same ARN, and takes over what its predecessor had. The
 * ServiceAccount is part of it, since an installation in another namespace has a role of its own.
 */
const own = `# Ends the script if a resource, with this value of the tag, was not created for this very ServiceAccount.
own() {
  if [[ "$2" == missing || "$2" == "$mark" ]]; then return; fi
  echo "Cannot continue: $1 already exists without the tag lastcall-cluster=$mark; choose another name" >&2
  if [[ "$2" == "$cluster" || "$2" == "$cluster_arn" ]]; then
    echo "Its tag names only the cluster, as set by Terraform and earlier versions of this script. If this script created it, for that cluster and ServiceAccount, mark it and run this again:" >&2
    echo "$3" >&2
  fi
  exit 1
}`;

/** Finds the owners of existing resources before anything is changed. */
function ownershipLook({ queue }: AwsSetupChoice): string {
  const ofRole = `# Check who owns the existing resources before anything is changed.
role_state="$(look iam list-role-tags --role-name "$role" \\
  --query "Tags[?Key=='lastcall-cluster'].Value | [0]")"
own "the role $role" "$role_state" \\
  "aws iam tag-role --role-name $role --tags Key=lastcall-cluster,Value=$mark"`;
  return queue === undefined ? ofRole : `${ofRole}\n${queueLook}`;
}

const roleStep = `# 1. The role, with the permissions that the controller needs in AWS and no others.
if [[ "$role_state" == missing ]]; then
  aws iam create-role --role-name "$role" --assume-role-policy-document "$trust" \\
    --description 'Permissions of the Lastcall controller' --tags "Key=lastcall-cluster,Value=$mark" >/dev/null
else
  aws iam update-assume-role-policy --role-name "$role" --policy-document "$trust"
fi
aws iam put-role-policy --role-name "$role" --policy-name lastcall --policy-document "$permissions"`;

function done({ queue }: AwsSetupChoice): string {
  return [
    'echo "Done: $namespace/$service_account of $cluster has the role $role_arn."',
    ...(queue === undefined
      ? []
      : ['echo "Run the controller with --sqs-queue-url $queue_url --sqs-unknown Delete."']),
    'echo "Running pods get the credentials only after a restart:"',
    'echo "kubectl --namespace $namespace rollout restart deployment lastcall"',
  ].join("\n");
}

const undoRole = `# 3. The role.
if [[ "$role_state" != missing ]]; then
  found="$(look iam get-role-policy --role-name "$role" --policy-name lastcall --query PolicyName)"
  if [[ "$found" != missing ]]; then aws iam delete-role-policy --role-name "$role" --policy-name lastcall; fi
  aws iam delete-role --role-name "$role"
fi`;

/** What the options do not name is not looked for. */
function undoDone({ identity, queue }: AwsSetupChoice): string {
  const others = [
    identity === "IRSA"
      ? "an association (--identity PodIdentity)"
      : "an annotation (--identity IRSA)",
    ...(queue === undefined ? ["a queue (--queue)"] : []),
  ];
  return `echo "Done: everything that was set up for $namespace/$service_account of $cluster with these options is removed$rest."
echo "Not looked for: ${others.join(", ")}."`;
}
