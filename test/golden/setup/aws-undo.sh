#!/usr/bin/env bash
# Removes what `lastcall setup aws` created, and nothing else.
# Printed by `lastcall setup aws --undo`. It can be run again: what is already gone is skipped.
# Everything that it creates has the tag lastcall-cluster with the cluster's ARN and the ServiceAccount; it changes nothing without it.
set -euo pipefail

account='123456789012'
cluster='main'
cluster_arn='arn:aws:eks:eu-west-1:123456789012:cluster/main'
mark='arn:aws:eks:eu-west-1:123456789012:cluster/main/lastcall/lastcall'
namespace='lastcall'
service_account='lastcall'
role='lastcall'
role_arn='arn:aws:iam::123456789012:role/lastcall'
queue='lastcall-main'
export AWS_REGION='eu-west-1' AWS_DEFAULT_REGION='eu-west-1' AWS_PAGER=''

command -v aws >/dev/null || { echo "Cannot continue: aws is not on the PATH" >&2; exit 1; }
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

rest=""
keep() {
  echo "Kept: $1"
  rest=", except for what is kept"
}

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

association="$(look eks list-pod-identity-associations --cluster-name "$cluster" \
  --namespace "$namespace" --service-account "$service_account" --query 'associations[0].associationId')"
associated="$role_arn"
if [[ "$association" != None && "$association" != missing ]]; then
  associated="$(look eks describe-pod-identity-association --cluster-name "$cluster" \
    --association-id "$association" --query association.roleArn)"
fi

if [[ "$association" != None && "$association" != missing && "$associated" == "$role_arn" ]]; then
  association_state="$(look eks describe-pod-identity-association --cluster-name "$cluster" \
    --association-id "$association" --query 'association.tags."lastcall-cluster"')"
  association_arn="$(look eks describe-pod-identity-association --cluster-name "$cluster" \
    --association-id "$association" --query association.associationArn)"
  own "the association of $namespace/$service_account with the role $role" "$association_state" \
    "aws eks tag-resource --resource-arn $association_arn --tags lastcall-cluster=$mark"
fi

# 1. The rules, and the queue with its messages.
unfinished="still there, unless it never existed: a rule or the queue $queue, the link to the role, and the role $role; run this again to remove it"
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
if [[ "$queue_url" != missing ]]; then aws sqs delete-queue --queue-url "$queue_url"; fi

unfinished="still there, unless it never existed: the link to the role, and the role $role; run this again to remove it"

# 2. The link between the ServiceAccount and the role.
if [[ "$association" != None && "$association" != missing && "$associated" == "$role_arn" ]]; then
  aws eks delete-pod-identity-association --cluster-name "$cluster" --association-id "$association" >/dev/null
fi

unfinished="still there, unless it never existed: the role $role; run this again to remove it"

# 3. The role.
if [[ "$role_state" != missing ]]; then
  found="$(look iam get-role-policy --role-name "$role" --policy-name lastcall --query PolicyName)"
  if [[ "$found" != missing ]]; then aws iam delete-role-policy --role-name "$role" --policy-name lastcall; fi
  aws iam delete-role --role-name "$role"
fi

if [[ -n "$lost" ]]; then
  unfinished="$lost"
  exit 1
fi
echo "Done: everything that was set up for $namespace/$service_account of $cluster with these options is removed$rest."
echo "Not looked for: an annotation (--identity IRSA)."
