#!/usr/bin/env bash
# Grants the Lastcall controller its permissions in AWS.
# Printed by `lastcall setup aws`. It can be run again: existing objects are updated.
# Everything that it creates has the tag lastcall-cluster with the cluster's ARN and the ServiceAccount; it changes nothing without it.
#
# For instance.release: Recreate the controller needs these permissions and no others:
#   ec2:DescribeInstances: finding a machine, and its launch time
#   autoscaling:DescribeAutoScalingInstances: finding the Auto Scaling group of a machine
#   autoscaling:DescribeAutoScalingGroups: checking before a drain whether the group's settings allow the release of the machine
#   autoscaling:TerminateInstanceInAutoScalingGroup: making the group replace a machine, or shrink by it
set -euo pipefail

account='123456789012'
cluster='main'
cluster_arn='arn:aws:eks:eu-west-1:123456789012:cluster/main'
mark='arn:aws:eks:eu-west-1:123456789012:cluster/main/lastcall/lastcall'
namespace='lastcall'
service_account='lastcall'
role='lastcall'
role_arn='arn:aws:iam::123456789012:role/lastcall'
export AWS_REGION='eu-west-1' AWS_DEFAULT_REGION='eu-west-1' AWS_PAGER=''

trust='{
  "Version": "2012-10-17",
  "Statement": [
    {
      "Effect": "Allow",
      "Principal": {
        "Service": "pods.eks.amazonaws.com"
      },
      "Action": [
        "sts:AssumeRole",
        "sts:TagSession"
      ],
      "Condition": {
        "StringEquals": {
          "aws:RequestTag/eks-cluster-arn": "arn:aws:eks:eu-west-1:123456789012:cluster/main",
          "aws:RequestTag/kubernetes-namespace": "lastcall",
          "aws:RequestTag/kubernetes-service-account": "lastcall"
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
        "autoscaling:DescribeAutoScalingGroups"
      ],
      "Resource": "*"
    },
    {
      "Sid": "Groups",
      "Effect": "Allow",
      "Action": [
        "autoscaling:TerminateInstanceInAutoScalingGroup"
      ],
      "Resource": "arn:aws:autoscaling:eu-west-1:123456789012:autoScalingGroup:*:autoScalingGroupName/*",
      "Condition": {
        "StringEquals": {
          "aws:ResourceTag/kubernetes.io/cluster/main": "owned"
        }
      }
    }
  ]
}'

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

association="$(look eks list-pod-identity-associations --cluster-name "$cluster" \
  --namespace "$namespace" --service-account "$service_account" --query 'associations[0].associationId')"
associated="$role_arn"
if [[ "$association" != None && "$association" != missing ]]; then
  associated="$(look eks describe-pod-identity-association --cluster-name "$cluster" \
    --association-id "$association" --query association.roleArn)"
fi
if [[ "$association" == missing ]]; then
  echo "Cannot continue: there is no cluster $cluster in $AWS_REGION" >&2
  exit 1
fi
if [[ "$associated" != "$role_arn" ]]; then
  echo "Cannot continue: $namespace/$service_account already has the role $associated, expected $role_arn" >&2
  exit 1
fi

# Only read: EKS Auto Mode has the agent built in; other clusters need the add-on.
addon="$(look eks describe-addon --cluster-name "$cluster" --addon-name eks-pod-identity-agent \
  --query addon.status)" || echo "Note: it is not known whether $cluster has the add-on eks-pod-identity-agent" >&2
if [[ "$addon" == missing ]]; then
  echo "Note: $cluster does not have the add-on eks-pod-identity-agent; unless it runs in Auto Mode, create it with" >&2
  echo "aws eks create-addon --cluster-name $cluster --addon-name eks-pod-identity-agent" >&2
fi

# Check who owns the existing resources before anything is changed.
role_state="$(look iam list-role-tags --role-name "$role" \
  --query "Tags[?Key=='lastcall-cluster'].Value | [0]")"
own "the role $role" "$role_state" \
  "aws iam tag-role --role-name $role --tags Key=lastcall-cluster,Value=$mark"

if [[ "$association" != None && "$association" != missing && "$associated" == "$role_arn" ]]; then
  association_state="$(look eks describe-pod-identity-association --cluster-name "$cluster" \
    --association-id "$association" --query 'association.tags."lastcall-cluster"')"
  association_arn="$(look eks describe-pod-identity-association --cluster-name "$cluster" \
    --association-id "$association" --query association.associationArn)"
  own "the association of $namespace/$service_account with the role $role" "$association_state" \
    "aws eks tag-resource --resource-arn $association_arn --tags lastcall-cluster=$mark"
fi

unfinished="what was created so far is kept; run this again to complete it, or the script of --undo to remove it"

# 1. The role, with the permissions that the controller needs in AWS and no others.
if [[ "$role_state" == missing ]]; then
  aws iam create-role --role-name "$role" --assume-role-policy-document "$trust" \
    --description 'Permissions of the Lastcall controller' --tags "Key=lastcall-cluster,Value=$mark" >/dev/null
else
  aws iam update-assume-role-policy --role-name "$role" --policy-document "$trust"
fi
aws iam put-role-policy --role-name "$role" --policy-name lastcall --policy-document "$permissions"

# 2. The role for the ServiceAccount of the controller; it needs no annotation.
if [[ "$association" == None ]]; then
  # A new role is not visible everywhere at once.
  for attempt in 1 2 3 4 5; do
    if aws eks create-pod-identity-association --cluster-name "$cluster" --namespace "$namespace" \
      --service-account "$service_account" --role-arn "$role_arn" \
      --tags "lastcall-cluster=$mark" >/dev/null; then break; fi
    if [[ "$attempt" == 5 ]]; then echo "Cannot associate $service_account with $role_arn" >&2; exit 1; fi
    sleep "$attempt"
  done
fi

echo "Done: $namespace/$service_account of $cluster has the role $role_arn."
echo "Running pods get the credentials only after a restart:"
echo "kubectl --namespace $namespace rollout restart deployment lastcall"
