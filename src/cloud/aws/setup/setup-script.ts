import { LastcallError } from "../../../errors.ts";
import {
  type AccountChoice,
  accountCheck,
  accountForms,
  annotationRemoval,
  assignments,
  checkForms,
  endReport,
  type Form,
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
import { type AwsUse, awsPermissionsFor } from "./permissions.ts";
import {
  type AwsPlace,
  arnOf,
  healthEvents,
  issuerPlace,
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
      ? [accountLook(choice), issuerLook]
      : [associationCheck, agentLook]),
    ownershipLook(choice),
    unfinishedNow(partlyCreated),
    roleStep,
    choice.identity === "IRSA" ? annotation : association,
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
    ...(choice.identity === "IRSA" ? [kubectlArray(choice)] : []),
    ownershipLook(choice),
    ...(choice.queue === undefined ? [] : [undoQueue]),
    unfinishedNow(partlyRemoved(`the link to the role, and the role $role`)),
    choice.identity === "IRSA" ? undoAnnotation : undoAssociation,
    unfinishedNow(partlyRemoved("the role $role")),
    undoRole,
    undoEnd(
      'echo "Done: everything that was set up for $namespace/$service_account of $cluster is removed."',
    ),
  ];
  return `${parts.join("\n\n")}\n`;
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
 * The exit code is documented ("AWS CLI return codes": 254 if the service returned an error), the
 * form of the message is botocore's, and the codes are those of the four services' API references.
 */
const look = lookFunction({
  tool: "aws",
  flags: " --output text",
  exitCode: 254,
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

function accountLook(choice: AwsSetupChoice): string {
  return `# deploy/base creates the ServiceAccount; without it, nothing is changed.
${kubectlArray(choice)}
${accountCheck}`;
}

const issuerLook = `# Only read: the identity provider belongs to the cluster, and others use it.
issuer="$(aws eks describe-cluster --name "$cluster" --query cluster.identity.oidc.issuer --output text)"
if [[ ! "$issuer" =~ ^https://[A-Za-z0-9./_-]+$ ]]; then
  echo "Cannot continue: the cluster $cluster has no OIDC issuer, found $issuer" >&2
  exit 1
fi
issuer="\${issuer#https://}"
trust="\${trust//${issuerPlace}/$issuer}"
provider="\${role_arn%:role/*}:oidc-provider/$issuer"
state="$(look iam get-open-id-connect-provider --open-id-connect-provider-arn "$provider" \\
  --query Url)"
if [[ "$state" == missing ]]; then
  echo "Cannot continue: IAM has no identity provider for the cluster's issuer, create it with" >&2
  echo "aws iam create-open-id-connect-provider --url https://$issuer --client-id-list sts.amazonaws.com" >&2
  exit 1
fi`;

const agentLook = `# Only read: EKS Auto Mode has the agent built in; other clusters need the add-on.
addon="$(look eks describe-addon --cluster-name "$cluster" --addon-name eks-pod-identity-agent \\
  --query addon.status)" || echo "Note: it is not known whether $cluster has the add-on eks-pod-identity-agent" >&2
if [[ "$addon" == missing ]]; then
  echo "Note: $cluster does not have the add-on eks-pod-identity-agent; unless it runs in Auto Mode, create it with" >&2
  echo "aws eks create-addon --cluster-name $cluster --addon-name eks-pod-identity-agent" >&2
fi`;

/** Finds the owners of existing resources before anything is changed. */
function ownershipLook({ queue }: AwsSetupChoice): string {
  const ofRole = `# Check who owns the existing resources before anything is changed.
role_state="$(look iam list-role-tags --role-name "$role" \\
  --query "Tags[?Key=='lastcall-cluster'].Value | [0]")"
own "the role $role" "$role_state" \\
  "aws iam tag-role --role-name $role --tags Key=lastcall-cluster,Value=$mark"`;
  return queue === undefined ? ofRole : `${ofRole}\n${queueLook}`;
}

const queueLook = `queue_state=missing
queue_url="$(look sqs get-queue-url --queue-name "$queue" --query QueueUrl)"
if [[ "$queue_url" != missing ]]; then
  queue_state="$(look sqs list-queue-tags --queue-url "$queue_url" --query 'Tags."lastcall-cluster"')"
fi
own "the queue $queue" "$queue_state" \\
  "aws sqs tag-queue --queue-url $queue_url --tags lastcall-cluster=$mark"
for rule in "$queue" "$queue-health"; do
  rule_arn="$(look events describe-rule --name "$rule" --query Arn)"
  rule_state=missing
  if [[ "$rule_arn" != missing ]]; then
    rule_state="$(look events list-tags-for-resource --resource-arn "$rule_arn" \\
      --query "Tags[?Key=='lastcall-cluster'].Value | [0]")"
  fi
  own "the rule $rule" "$rule_state" \\
    "aws events tag-resource --resource-arn $rule_arn --tags Key=lastcall-cluster,Value=$mark"
done`;

const associationLook = `association="$(look eks list-pod-identity-associations --cluster-name "$cluster" \\
  --namespace "$namespace" --service-account "$service_account" --query 'associations[0].associationId')"
associated="$role_arn"
if [[ "$association" != None && "$association" != missing ]]; then
  associated="$(look eks describe-pod-identity-association --cluster-name "$cluster" \\
    --association-id "$association" --query association.roleArn)"
fi`;

const associationCheck = `${associationLook}
if [[ "$association" == missing ]]; then
  echo "Cannot continue: there is no cluster $cluster in $AWS_REGION" >&2
  exit 1
fi
if [[ "$associated" != "$role_arn" ]]; then
  echo "Cannot continue: $namespace/$service_account already has the role $associated, expected $role_arn" >&2
  exit 1
fi`;

const roleStep = `# 1. The role, with the permissions that the controller needs in AWS and no others.
if [[ "$role_state" == missing ]]; then
  aws iam create-role --role-name "$role" --assume-role-policy-document "$trust" \\
    --description 'Permissions of the Lastcall controller' --tags "Key=lastcall-cluster,Value=$mark" >/dev/null
else
  aws iam update-assume-role-policy --role-name "$role" --policy-document "$trust"
fi
aws iam put-role-policy --role-name "$role" --policy-name lastcall --policy-document "$permissions"`;

const association = `# 2. The role for the ServiceAccount of the controller; it needs no annotation.
if [[ "$association" == None ]]; then
  # A new role is not visible everywhere at once.
  for attempt in 1 2 3 4 5; do
    if aws eks create-pod-identity-association --cluster-name "$cluster" --namespace "$namespace" \\
      --service-account "$service_account" --role-arn "$role_arn" \\
      --tags "lastcall-cluster=$mark" >/dev/null; then break; fi
    if [[ "$attempt" == 5 ]]; then echo "Cannot associate $service_account with $role_arn" >&2; exit 1; fi
    sleep "$attempt"
  done
fi`;

const annotation = `# 2. The annotation that names the role for the controller's ServiceAccount.
"\${kubectl[@]}" annotate serviceaccount "$service_account" --overwrite \\
  "eks.amazonaws.com/role-arn=$role_arn"`;

const queueStep = `# 3. A queue for this cluster, and the two rules that fill it.
if [[ "$queue_url" == missing ]]; then
  queue_url="$(aws sqs create-queue --queue-name "$queue" --tags "lastcall-cluster=$mark" \\
    --query QueueUrl --output text)"
fi
aws sqs set-queue-attributes --queue-url "$queue_url" --attributes "$queue_attributes"
for rule in "$queue" "$queue-health"; do
  events="$machine_events"
  if [[ "$rule" == "$queue-health" ]]; then events="$health_events"; fi
  aws events put-rule --name "$rule" --event-pattern "$events" --state ENABLED \\
    --description 'Instance events for Lastcall' \\
    --tags "Key=lastcall-cluster,Value=$mark" >/dev/null
  # put-targets exits with 0 even if it does not add the target.
  failed="$(aws events put-targets --rule "$rule" --targets "Id=lastcall,Arn=$queue_arn" \\
    --query FailedEntryCount --output text)"
  if [[ "$failed" != 0 ]]; then echo "Cannot send events of the rule $rule to $queue_arn" >&2; exit 1; fi
done`;

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

const undoQueue = `# 1. The rules, and the queue with its messages.
${unfinishedNow(partlyRemoved("a rule or the queue $queue, the link to the role, and the role $role"))}
for rule in "$queue" "$queue-health"; do
  found="$(look events describe-rule --name "$rule" --query Arn)"
  if [[ "$found" != missing ]]; then
    # A rule of a setup that was interrupted has none.
    target="$(look events list-targets-by-rule --rule "$rule" --query "Targets[?Id=='lastcall'].Id")"
    if [[ "$target" == *lastcall* ]]; then
      aws events remove-targets --rule "$rule" --ids lastcall >/dev/null
    fi
    aws events delete-rule --name "$rule"
  fi
done
if [[ "$queue_url" != missing ]]; then aws sqs delete-queue --queue-url "$queue_url"; fi`;

const undoAssociation = `# 2. The link between the ServiceAccount and the role.
${associationLook}
if [[ "$association" != None && "$association" != missing && "$associated" == "$role_arn" ]]; then
  aws eks delete-pod-identity-association --cluster-name "$cluster" --association-id "$association" >/dev/null
fi`;

const undoAnnotation = `# 2. The link between the ServiceAccount and the role.
gone() { [[ "$(look eks describe-cluster --name "$cluster" --query cluster.status)" == missing ]]; }
${annotationRemoval("eks.amazonaws.com/role-arn", '"$role_arn"')}`;

const undoRole = `# 3. The role.
if [[ "$role_state" != missing ]]; then
  found="$(look iam get-role-policy --role-name "$role" --policy-name lastcall --query PolicyName)"
  if [[ "$found" != missing ]]; then aws iam delete-role-policy --role-name "$role" --policy-name lastcall; fi
  aws iam delete-role --role-name "$role"
fi`;
