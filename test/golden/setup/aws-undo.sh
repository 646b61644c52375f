#!/usr/bin/env bash
# Removes what `lastcall setup aws` created, and nothing else.
# Printed by `lastcall setup aws --undo`. It can be run again: what is already gone is skipped.
# Everything that it creates has the tag lastcall-cluster; it changes nothing without that tag.
set -euo pipefail

account='123456789012'
cluster='main'
namespace='lastcall'
service_account='lastcall'
role='lastcall'
role_arn='arn:aws:iam::123456789012:role/lastcall'
queue='lastcall-main'
export AWS_REGION='eu-west-1' AWS_DEFAULT_REGION='eu-west-1' AWS_PAGER=''

command -v aws >/dev/null || { echo "Cannot continue: aws is not on the PATH" >&2; exit 1; }

# Prints the response of AWS, or "missing" if there is no such resource. Any other error ends the script.
look() {
  local missing="$1" answer
  shift
  if answer="$(aws "$@" --output text 2>/dev/null)"; then
    echo "$answer"
    return
  fi
  # Repeat the call to capture its error.
  answer="$(aws "$@" 2>&1 >/dev/null)" || true
  if [[ "$answer" =~ $missing ]]; then
    echo missing
    return
  fi
  echo "Cannot continue: aws $1 $2 failed: $answer" >&2
  return 1
}

# Ends the script if a resource exists that was not created for this cluster.
own() {
  if [[ "$2" != missing && "$2" != "$cluster" ]]; then
    echo "Cannot continue: $1 already exists without the tag lastcall-cluster=$cluster; choose another name" >&2
    exit 1
  fi
}

found="$(aws sts get-caller-identity --query Account --output text)"
if [[ "$found" != "$account" ]]; then
  echo "Cannot continue: aws is logged in to the account $found, expected $account" >&2
  exit 1
fi

# Check who owns the existing resources before anything is changed.
role_state="$(look NoSuchEntity iam list-role-tags --role-name "$role" \
  --query "Tags[?Key=='lastcall-cluster'].Value | [0]")"
own "the role $role" "$role_state"
queue_state=missing
queue_url="$(look 'NonExistentQueue|QueueDoesNotExist' sqs get-queue-url --queue-name "$queue" --query QueueUrl)"
if [[ "$queue_url" != missing ]]; then
  queue_state="$(aws sqs list-queue-tags --queue-url "$queue_url" \
    --query 'Tags."lastcall-cluster"' --output text)"
fi
own "the queue $queue" "$queue_state"
for rule in "$queue" "$queue-health"; do
  rule_state="$(look ResourceNotFound events describe-rule --name "$rule" --query Arn)"
  if [[ "$rule_state" != missing ]]; then
    rule_state="$(aws events list-tags-for-resource --resource-arn "$rule_state" \
      --query "Tags[?Key=='lastcall-cluster'].Value | [0]" --output text)"
  fi
  own "the rule $rule" "$rule_state"
done

# 1. The rules, and the queue with its messages.
for rule in "$queue" "$queue-health"; do
  found="$(look ResourceNotFound events describe-rule --name "$rule" --query Arn)"
  if [[ "$found" != missing ]]; then
    aws events remove-targets --rule "$rule" --ids lastcall >/dev/null
    aws events delete-rule --name "$rule"
  fi
done
if [[ "$queue_url" != missing ]]; then aws sqs delete-queue --queue-url "$queue_url"; fi

# 2. The link between the ServiceAccount and the role.
association="$(look ResourceNotFound eks list-pod-identity-associations --cluster-name "$cluster" \
  --namespace "$namespace" --service-account "$service_account" --query 'associations[0].associationId')"
associated="$role_arn"
if [[ "$association" != None && "$association" != missing ]]; then
  associated="$(aws eks describe-pod-identity-association --cluster-name "$cluster" \
    --association-id "$association" --query association.roleArn --output text)"
fi
if [[ "$association" != None && "$association" != missing && "$associated" == "$role_arn" ]]; then
  aws eks delete-pod-identity-association --cluster-name "$cluster" --association-id "$association" >/dev/null
fi

# 3. The role.
if [[ "$role_state" != missing ]]; then
  look NoSuchEntity iam delete-role-policy --role-name "$role" --policy-name lastcall >/dev/null
  aws iam delete-role --role-name "$role"
fi

echo "Done: everything that was set up for $namespace/$service_account of $cluster is removed."
