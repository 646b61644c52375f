#!/usr/bin/env bash
# Takes away what `lastcall setup azure` has made, and nothing else.
# Made by `lastcall setup azure --undo`. It can be run again: what is already gone is passed over.
# What it makes says so by the tag lastcall-cluster or its description; all else is not touched.
set -euo pipefail

subscription='1b2e6f80-0000-4000-8000-000000000000'
group='shop'
cluster='main'
namespace='lastcall'
service_account='lastcall'
identity='lastcall'
role='lastcall'
description='Made by lastcall setup azure for the cluster main in shop'

command -v az >/dev/null || { echo "Cannot go on: az is not on the PATH" >&2; exit 1; }
command -v kubectl >/dev/null || { echo "Cannot go on: kubectl is not on the PATH" >&2; exit 1; }
kubectl=(kubectl --namespace "$namespace")

# What Azure answers; "missing" where it says that there is none. Any other error ends the script.
look() {
  local answer
  if answer="$(az "$@" --subscription "$subscription" --output tsv 2>/dev/null)"; then
    echo "$answer"
    return
  fi
  # Once more, to hear why.
  answer="$(az "$@" --subscription "$subscription" 2>&1 >/dev/null)" || true
  if [[ "$answer" =~ ResourceNotFound|ResourceGroupNotFound|Code:\ NotFound ]]; then
    echo missing
    return
  fi
  echo "Cannot go on: az $1 $2 failed: $answer" >&2
  return 1
}

# Whose is what is there already? Nothing is changed before that is known.
owner="$(look identity show --resource-group "$group" --name "$identity" --query 'tags."lastcall-cluster"')"
if [[ "$owner" != missing && "$owner" != "$cluster" ]]; then
  echo "Cannot go on: the identity $identity is there without the tag lastcall-cluster=$cluster; name another" >&2
  exit 1
fi
for suffix in cluster nodes operations; do
  found="$(look role definition list --name "$role-$suffix" --custom-role-only true \
    --query "[0] && ([0].description || 'it does not say what')")"
  if [[ -n "$found" && "$found" != "$description" ]]; then
    echo "Cannot go on: the role $role-$suffix is there for something else ($found); name another" >&2
    exit 1
  fi
done

# 1. The way from the ServiceAccount to the identity.
client=missing
principal=missing
if [[ "$owner" != missing ]]; then
  client="$(look identity show --resource-group "$group" --name "$identity" --query clientId)"
  principal="$(look identity show --resource-group "$group" --name "$identity" --query principalId)"
  found="$("${kubectl[@]}" get serviceaccount "$service_account" --ignore-not-found \
    --output 'jsonpath={.metadata.annotations.azure\.workload\.identity/client-id}')"
  if [[ "$found" == "$client" ]]; then
    "${kubectl[@]}" annotate serviceaccount "$service_account" azure.workload.identity/client-id-
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

echo "Done: what was set up for $namespace/$service_account of $cluster is gone."
