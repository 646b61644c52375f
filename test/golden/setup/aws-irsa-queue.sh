#!/usr/bin/env bash
# Grants the Lastcall controller its permissions in AWS.
# Printed by `lastcall setup aws`. It can be run again: existing objects are updated.
# Everything that it creates has the tag lastcall-cluster with the cluster's ARN and the ServiceAccount; it changes nothing without it.
#
# For instance.release: DeleteInstance the controller needs these permissions and no others:
#   ec2:DescribeInstances: finding a machine, and its launch time
#   autoscaling:DescribeAutoScalingInstances: finding the Auto Scaling group of a machine
#   ec2:TerminateInstances: terminating a machine without a group, or one taken out of it (detach)
#   sqs:ReceiveMessage: reading notices (--sqs-queue-url)
#   sqs:DeleteMessage: deleting handled notices from the queue
#   sqs:ChangeMessageVisibility: postponing a notice
#   autoscaling:CompleteLifecycleAction: completing lifecycle hooks (--sqs-complete-hooks)
#   autoscaling:RecordLifecycleActionHeartbeat: extending a lifecycle hook while a node drains
#   autoscaling:DescribeLifecycleHooks: reading the timeout of a lifecycle hook
#   ec2:DescribeInstanceStatus: reading the events that EC2 has scheduled for instances (--ec2-status-poll)
#   ec2:DescribeTags: finding the instances with the tag (--aws-managed-tag)
set -euo pipefail

account='123456789012'
cluster='main'
cluster_arn='arn:aws-us-gov:eks:us-gov-west-1:123456789012:cluster/main'
mark='arn:aws-us-gov:eks:us-gov-west-1:123456789012:cluster/main/lastcall/lastcall'
namespace='lastcall'
service_account='lastcall'
role='lastcall'
role_arn='arn:aws-us-gov:iam::123456789012:role/lastcall'
queue='lastcall-main'
export AWS_REGION='us-gov-west-1' AWS_DEFAULT_REGION='us-gov-west-1' AWS_PAGER=''

trust='{
  "Version": "2012-10-17",
  "Statement": [
    {
      "Effect": "Allow",
      "Principal": {
        "Federated": "arn:aws-us-gov:iam::123456789012:oidc-provider/CLUSTER_ISSUER"
      },
      "Action": "sts:AssumeRoleWithWebIdentity",
      "Condition": {
        "StringEquals": {
          "CLUSTER_ISSUER:aud": "sts.amazonaws.com",
          "CLUSTER_ISSUER:sub": "system:serviceaccount:lastcall:lastcall"
        }
      }
    }
  ]
}'
permissions='{
  "Version": "2012-10-17",
  "Statement": [
    {
      "Sid": "Everything",
      "Effect": "Allow",
      "Action": [
        "ec2:DescribeInstances",
        "autoscaling:DescribeAutoScalingInstances",
        "autoscaling:DescribeLifecycleHooks",
        "ec2:DescribeInstanceStatus",
        "ec2:DescribeTags"
      ],
      "Resource": "*"
    },
    {
      "Sid": "Instances",
      "Effect": "Allow",
      "Action": [
        "ec2:TerminateInstances"
      ],
      "Resource": "arn:aws-us-gov:ec2:us-gov-west-1:123456789012:instance/*",
      "Condition": {
        "StringEquals": {
          "aws:ResourceTag/kubernetes.io/cluster/main": "owned"
        }
      }
    },
    {
      "Sid": "Queue",
      "Effect": "Allow",
      "Action": [
        "sqs:ReceiveMessage",
        "sqs:DeleteMessage",
        "sqs:ChangeMessageVisibility"
      ],
      "Resource": "arn:aws-us-gov:sqs:us-gov-west-1:123456789012:lastcall-main"
    },
    {
      "Sid": "Groups",
      "Effect": "Allow",
      "Action": [
        "autoscaling:CompleteLifecycleAction",
        "autoscaling:RecordLifecycleActionHeartbeat"
      ],
      "Resource": "arn:aws-us-gov:autoscaling:us-gov-west-1:123456789012:autoScalingGroup:*:autoScalingGroupName/*",
      "Condition": {
        "StringEquals": {
          "aws:ResourceTag/kubernetes.io/cluster/main": "owned"
        }
      }
    }
  ]
}'
queue_attributes='{
  "MessageRetentionPeriod": "1209600",
  "SqsManagedSseEnabled": "true",
  "Policy": "{\"Version\":\"2012-10-17\",\"Statement\":[{\"Effect\":\"Allow\",\"Principal\":{\"Service\":\"events.amazonaws.com\"},\"Action\":\"sqs:SendMessage\",\"Resource\":\"arn:aws-us-gov:sqs:us-gov-west-1:123456789012:lastcall-main\",\"Condition\":{\"ArnEquals\":{\"aws:SourceArn\":[\"arn:aws-us-gov:events:us-gov-west-1:123456789012:rule/lastcall-main\",\"arn:aws-us-gov:events:us-gov-west-1:123456789012:rule/lastcall-main-health\"]}}}]}"
}'
machine_events='{
  "source": [
    "aws.ec2",
    "aws.autoscaling"
  ],
  "detail-type": [
    "EC2 Spot Instance Interruption Warning",
    "EC2 Instance Rebalance Recommendation",
    "EC2 Capacity Reservation Instance Interruption Warning",
    "EC2 Interruptible Capacity Reservation Instance Interruption Warning",
    "EC2 Instance State-change Notification",
    "EC2 Instance-terminate Lifecycle Action"
  ]
}'
health_events='{
  "source": [
    "aws.health"
  ],
  "detail-type": [
    "AWS Health Event"
  ],
  "detail": {
    "service": [
      "EC2"
    ],
    "eventTypeCategory": [
      "scheduledChange"
    ]
  }
}'
queue_arn='arn:aws-us-gov:sqs:us-gov-west-1:123456789012:lastcall-main'

command -v aws >/dev/null || { echo "Cannot continue: aws is not on the PATH" >&2; exit 1; }
command -v kubectl >/dev/null || { echo "Cannot continue: kubectl is not on the PATH" >&2; exit 1; }
lost=""
unfinished="nothing was changed"
trap 'if [[ $? != 0 ]]; then echo "Not finished: $unfinished" >&2; fi' EXIT

# Prints the response of aws, or "missing" if it says that there is no such resource. Any other error ends the script.
look() {
  local answer attempt status
  for attempt in 1 2 3; do
    if answer="$(aws "$@" --output text 2>/dev/null)"; then
      echo "$answer"
      return
    fi
    # Repeat the call to capture its error. If it succeeds now, start over.
    status=0
    answer="$(aws "$@" --output text 2>&1 >/dev/null)" || status=$?
    if [[ "$status" != 0 ]]; then break; fi
  done
  if [[ "$status" == 25[45] && "$answer" =~ "An error occurred ("(NoSuchEntity|ResourceNotFoundException|AWS.SimpleQueueService.NonExistentQueue|QueueDoesNotExist)") when calling" ]]; then
    echo missing
    return
  fi
  echo "Cannot tell what exists: aws $1 $2 $3 failed: $answer" >&2
  return 1
}

# Ends the script if a resource, with this value of the tag, was not created for this very ServiceAccount.
own() {
  if [[ "$2" == missing || "$2" == "$mark" ]]; then return; fi
  echo "Cannot continue: $1 already exists without the tag lastcall-cluster=$mark; choose another name" >&2
  if [[ "$2" == "$cluster" || "$2" == "$cluster_arn" ]]; then
    echo "Its tag names only the cluster, as set by Terraform and earlier versions of this script. If this script created it, for that cluster and ServiceAccount, mark it and run this again:" >&2
    echo "$3" >&2
  fi
  exit 1
}

found="$(aws sts get-caller-identity --query Account --output text)"
if [[ "$found" != "$account" ]]; then
  echo "Cannot continue: aws is logged in to the account $found, expected $account" >&2
  exit 1
fi

kubectl=(kubectl --kubeconfig '/home/me/my kube/config' --context 'it'\''s mine' --namespace "$namespace")
typed() {
  printf '%q ' "$@"
  echo
}
# Reads the ServiceAccount: whether it exists, the mark of this script, and whom its annotation names.
link_look() {
  local found
  found="$("${kubectl[@]}" get serviceaccount "$service_account" --ignore-not-found \
    --output 'jsonpath={.metadata.name}|{.metadata.annotations.lastcall\.dev/identity}|{.metadata.annotations.eks\.amazonaws\.com/role-arn}')" || return
  exists="${found%%|*}"
  found="${found#*|}"
  linked_by="${found%%|*}"
  linked="${found#*|}"
}
# Ends the script if kubectl reaches another cluster than the one that has the issuer $1.
right_cluster() {
  local found form='"issuer": *"([^"]*)"'
  if ! found="$("${kubectl[@]}" get --raw /.well-known/openid-configuration)"; then
    echo "Note: it is not known whether kubectl reaches $cluster; its issuer cannot be read there" >&2
    return
  fi
  if [[ "$found" =~ $form && "${BASH_REMATCH[1]%/}" != "${1%/}" ]]; then
    echo "Cannot continue: kubectl reaches the cluster with the issuer ${BASH_REMATCH[1]}, and $cluster has $1; choose it with --context" >&2
    exit 1
  fi
}
# Some clouds compare ids without regard to case.
same() (
  shopt -s nocasematch
  [[ "$1" == "$2" ]]
)

# Only read: the identity provider belongs to the cluster, and others use it.
issuer="$(aws eks describe-cluster --name "$cluster" --query cluster.identity.oidc.issuer --output text)"
if [[ ! "$issuer" =~ ^https://[A-Za-z0-9./_-]+$ ]]; then
  echo "Cannot continue: the cluster $cluster has no OIDC issuer, found $issuer" >&2
  exit 1
fi
issuer="${issuer#https://}"
trust="${trust//CLUSTER_ISSUER/$issuer}"
provider="${role_arn%:role/*}:oidc-provider/$issuer"
state="$(look iam get-open-id-connect-provider --open-id-connect-provider-arn "$provider" \
  --query Url)"
if [[ "$state" == missing ]]; then
  echo "Cannot continue: IAM has no identity provider for the cluster's issuer, create it with" >&2
  echo "aws iam create-open-id-connect-provider --url https://$issuer --client-id-list sts.amazonaws.com" >&2
  exit 1
fi

# The installation creates the ServiceAccount; without it, nothing is changed.
link_look
if [[ -z "$exists" ]]; then
  echo "Cannot continue: the ServiceAccount $namespace/$service_account does not exist; the installation creates it: docs/running.md" >&2
  exit 1
fi
right_cluster "https://$issuer"

if [[ -n "$linked" && "$linked" != "$role_arn" ]]; then
  echo "Cannot continue: the annotation eks.amazonaws.com/role-arn of $namespace/$service_account names $linked, expected $role_arn; choose another ServiceAccount with --service-account, or, if nothing needs that identity anymore, remove the annotation and run this again:" >&2
  typed "${kubectl[@]}" annotate serviceaccount "$service_account" eks.amazonaws.com/role-arn- lastcall.dev/identity- >&2
  exit 1
fi

# Check who owns the existing resources before anything is changed.
role_state="$(look iam list-role-tags --role-name "$role" \
  --query "Tags[?Key=='lastcall-cluster'].Value | [0]")"
own "the role $role" "$role_state" \
  "aws iam tag-role --role-name $role --tags Key=lastcall-cluster,Value=$mark"
queue_state=missing
queue_url="$(look sqs get-queue-url --queue-name "$queue" --query QueueUrl)"
if [[ "$queue_url" == missing ]]; then
  # The response is the same if there is no access to the queue; the account's list of queues tells.
  found="$(look sqs list-queues --queue-name-prefix "$queue" --page-size 1000 \
    --query "QueueUrls[?ends_with(@, '/$queue')]")"
  if [[ "$found" == */* ]]; then
    echo "Cannot tell whose the queue $queue is: sqs list-queues has it ($found), but sqs get-queue-url responds that it does not exist, or that there is no access to it; get access to it, or wait a minute if it was just deleted, and run this again" >&2
    exit 1
  fi
else
  queue_state="$(look sqs list-queue-tags --queue-url "$queue_url" --query 'Tags."lastcall-cluster"')"
fi
own "the queue $queue" "$queue_state" \
  "aws sqs tag-queue --queue-url $queue_url --tags lastcall-cluster=$mark"
for rule in "$queue" "$queue-health"; do
  rule_arn="$(look events describe-rule --name "$rule" --query Arn)"
  rule_state=missing
  if [[ "$rule_arn" != missing ]]; then
    rule_state="$(look events list-tags-for-resource --resource-arn "$rule_arn" \
      --query "Tags[?Key=='lastcall-cluster'].Value | [0]")"
  fi
  own "the rule $rule" "$rule_state" \
    "aws events tag-resource --resource-arn $rule_arn --tags Key=lastcall-cluster,Value=$mark"
done

unfinished="what was created so far is kept; run this again to complete it, or the script of --undo to remove it"

# 1. The role, with the permissions that the controller needs in AWS and no others.
if [[ "$role_state" == missing ]]; then
  aws iam create-role --role-name "$role" --assume-role-policy-document "$trust" \
    --description 'Permissions of the Lastcall controller' --tags "Key=lastcall-cluster,Value=$mark" >/dev/null
else
  aws iam update-assume-role-policy --role-name "$role" --policy-document "$trust"
fi
aws iam put-role-policy --role-name "$role" --policy-name lastcall --policy-document "$permissions"

# 2. The annotation that names the role for the controller's ServiceAccount.
if [[ -z "$linked" ]]; then
  if [[ -n "$linked_by" && "$linked_by" != "$role_arn" ]]; then
    "${kubectl[@]}" annotate serviceaccount "$service_account" lastcall.dev/identity-
  fi
  # Without --overwrite, kubectl does not replace what others have written meanwhile.
  "${kubectl[@]}" annotate serviceaccount "$service_account" "eks.amazonaws.com/role-arn=$role_arn" \
    "lastcall.dev/identity=$role_arn"
fi

# 3. A queue for this cluster, and the two rules that fill it.
if [[ "$queue_url" == missing ]]; then
  # Without its attributes, this would return the address of an existing queue instead of failing.
  queue_url="$(aws sqs create-queue --queue-name "$queue" --attributes "$queue_attributes" \
    --tags "lastcall-cluster=$mark" --query QueueUrl --output text)"
else
  aws sqs set-queue-attributes --queue-url "$queue_url" --attributes "$queue_attributes"
fi
for rule in "$queue" "$queue-health"; do
  events="$machine_events"
  if [[ "$rule" == "$queue-health" ]]; then events="$health_events"; fi
  aws events put-rule --name "$rule" --event-pattern "$events" --state ENABLED \
    --description 'Instance events for Lastcall' \
    --tags "Key=lastcall-cluster,Value=$mark" >/dev/null
  # put-targets exits with 0 even if it does not add the target.
  failed="$(aws events put-targets --rule "$rule" --targets "Id=lastcall,Arn=$queue_arn" \
    --query FailedEntryCount --output text)"
  if [[ "$failed" != 0 ]]; then echo "Cannot send events of the rule $rule to $queue_arn" >&2; exit 1; fi
done

echo "Done: $namespace/$service_account of $cluster has the role $role_arn."
echo "Run the controller with --sqs-queue-url $queue_url --sqs-unknown Delete."
echo "Running pods get the credentials only after a restart:"
echo "kubectl --namespace $namespace rollout restart deployment lastcall"
