#!/usr/bin/env bash
# Removes what `lastcall setup azure` created, and nothing else.
# Printed by `lastcall setup azure --undo`. It can be run again: what is already gone is skipped.
# Whatever it creates has the tag lastcall-cluster or a description that says so; it changes nothing else.
set -euo pipefail

subscription='1b2e6f80-0000-4000-8000-000000000000'
group='shop'
cluster='main'
namespace='lastcall'
service_account='lastcall'
identity='lastcall'
role='lastcall'
description='Made by lastcall setup azure for the cluster main in shop'

command -v az >/dev/null || { echo "Cannot continue: az is not on the PATH" >&2; exit 1; }
command -v kubectl >/dev/null || { echo "Cannot continue: kubectl is not on the PATH" >&2; exit 1; }
kubectl=(kubectl --namespace "$namespace")

# Prints the response of Azure, or "missing" if there is no such resource. Any other error ends the script.
look() {
  local answer
  if answer="$(az "$@" --subscription "$subscription" --output tsv 2>/dev/null)"; then
    echo "$answer"
    return
  fi
  # Repeat the call to capture its error.
  answer="$(az "$@" --subscription "$subscription" 2>&1 >/dev/null)" || true
  if [[ "$answer" =~ ResourceNotFound|ResourceGroupNotFound|Code:\ NotFound ]]; then
    echo missing
    return
  fi
  echo "Cannot continue: az $1 $2 failed: $answer" >&2
  return 1
}

# Check who owns the existing resources before anything is changed.
owner="$(look identity show --resource-group "$group" --name "$identity" --query 'tags."lastcall-cluster"')"
if [[ "$owner" != missing && "$owner" != "$cluster" ]]; then
  echo "Cannot continue: the identity $identity already exists without the tag lastcall-cluster=$cluster; choose another name" >&2
  exit 1
fi
for suffix in cluster nodes operations; do
  found="$(look role definition list --name "$role-$suffix" --custom-role-only true \
    --query "[0] && ([0].description || 'no description')")"
  if [[ -n "$found" && "$found" != "$description" ]]; then
    echo "Cannot continue: the role $role-$suffix already exists for another purpose ($found); choose another name" >&2
    exit 1
  fi
done

# 1. The link between the ServiceAccount and the identity.
client=missing
principal=missing
if [[ "$owner" != missing ]]; then
  client="$(look identity show --resource-group "$group" --name "$identity" --query clientId)"
  principal="$(look identity show --resource-group "$group" --name "$identity" --query principalId)"
  removed=true
  found="$("${kubectl[@]}" get serviceaccount "$service_account" --ignore-not-found \
    --output 'jsonpath={.metadata.annotations.azure\.workload\.identity/client-id}')" || removed=false
  if [[ "$found" == "$client" ]]; then
    "${kubectl[@]}" annotate serviceaccount "$service_account" azure.workload.identity/client-id- || removed=false
  fi
  if [[ "$removed" == false ]]; then
    echo "Warning: kubectl failed, so the annotation azure.workload.identity/client-id of $namespace/$service_account is not removed; if the cluster is gone, so is the annotation" >&2
  fi
fi

# 2. The roles; one that is still assigned cannot be deleted.
for suffix in cluster nodes operations; do
  name="$role-$suffix"
  found="$(look role definition list --name "$name" --custom-role-only true --query '[0].name')"
  if [[ -z "$found" ]]; then continue; fi
  if [[ "$principal" != missing ]]; then
    ids="$(look role assignment list --assignee "$principal" --role "$name" --all --query '[].id')"
    while IFS= read -r id; do
      [[ -z "$id" ]] || az role assignment delete --subscription "$subscription" --ids "$id" --output none
    done <<< "$ids"
  fi
  az role definition delete --subscription "$subscription" --name "$name" --custom-role-only true --output none
done

# 3. The identity, with its federated credential.
if [[ "$owner" != missing ]]; then
  az identity delete --subscription "$subscription" --resource-group "$group" --name "$identity" --output none
fi

echo "Done: everything that was set up for $namespace/$service_account of $cluster is removed."
