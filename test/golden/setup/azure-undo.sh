#!/usr/bin/env bash
# Removes what `lastcall setup azure` created, and nothing else.
# Printed by `lastcall setup azure --undo`. It can be run again: what is already gone is skipped.
# Whatever it creates has the cluster's resource id in its tag lastcall-cluster or in its description, and the identity the ServiceAccount in its tag lastcall-account; it changes nothing else.
set -euo pipefail

subscription='1b2e6f80-0000-4000-8000-000000000000'
group='shop'
cluster='main'
namespace='lastcall'
service_account='lastcall'
identity='lastcall'
role='lastcall'
cluster_id='/subscriptions/1b2e6f80-0000-4000-8000-000000000000/resourceGroups/shop/providers/Microsoft.ContainerService/managedClusters/main'
account='lastcall/lastcall'
identity_id='/subscriptions/1b2e6f80-0000-4000-8000-000000000000/resourceGroups/shop/providers/Microsoft.ManagedIdentity/userAssignedIdentities/lastcall'
description='Made by lastcall setup azure for /subscriptions/1b2e6f80-0000-4000-8000-000000000000/resourceGroups/shop/providers/Microsoft.ContainerService/managedClusters/main and lastcall/lastcall'
old_description='Made by lastcall setup azure for the cluster main in shop'

command -v az >/dev/null || { echo "Cannot continue: az is not on the PATH" >&2; exit 1; }
command -v kubectl >/dev/null || { echo "Cannot continue: kubectl is not on the PATH" >&2; exit 1; }
lost=""
unfinished="nothing was changed"
trap 'if [[ $? != 0 ]]; then echo "Not finished: $unfinished" >&2; fi' EXIT
kubectl=(kubectl --namespace "$namespace")
typed() {
  printf '%q ' "$@"
  echo
}

# Reads the ServiceAccount: whether it exists, the mark of this script, and whom its annotation names.
link_look() {
  local found
  found="$("${kubectl[@]}" get serviceaccount "$service_account" --ignore-not-found \
    --output 'jsonpath={.metadata.name}|{.metadata.annotations.lastcall\.dev/identity}|{.metadata.annotations.azure\.workload\.identity/client-id}')" || return
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

# Prints the response of az, or "missing" if it says that there is no such resource. Any other error ends the script.
look() {
  local answer attempt status
  for attempt in 1 2 3; do
    if answer="$(az "$@" --subscription "$subscription" --output tsv 2>/dev/null)"; then
      echo "$answer"
      return
    fi
    # Repeat the call to capture its error. If it succeeds now, start over.
    status=0
    answer="$(az "$@" --subscription "$subscription" --output tsv 2>&1 >/dev/null)" || status=$?
    if [[ "$status" != 0 ]]; then break; fi
  done
  if [[ "$status" == 3 && "$answer" =~ "("(ResourceNotFound|ResourceGroupNotFound|NotFound)")"|"The Resource '".*"' was not found"|"Resource group '".*"' could not be found" ]]; then
    echo missing
    return
  fi
  echo "Cannot tell what exists: az $1 $2 $3 failed: $answer" >&2
  return 1
}

rest=""
keep() {
  echo "Kept: $1"
  rest=", except for what is kept"
}

issuer="$(look aks show --resource-group "$group" --name "$cluster" --query oidcIssuerProfile.issuerUrl)"

# Check who owns the existing resources before anything is changed.
owner="$(look identity show --resource-group "$group" --name "$identity" --query 'tags."lastcall-cluster"')"
user="$(look identity show --resource-group "$group" --name "$identity" --query 'tags."lastcall-account"')"
if [[ "$owner" != missing ]] && { ! same "$owner" "$cluster_id" || [[ "$user" != "$account" ]]; }; then
  echo "Cannot continue: the identity $identity already exists without the tags lastcall-cluster=$cluster_id and lastcall-account=$account; choose another name" >&2
  if [[ "$owner" == "$cluster" ]] || { same "$owner" "$cluster_id" && [[ "$user" != */* ]]; }; then
    echo "It has the tag of earlier versions of this script only. If this script created it for that ServiceAccount, mark it and run this again:" >&2
    echo "az tag update --resource-id $identity_id --operation merge --tags lastcall-cluster=$cluster_id lastcall-account=$account" >&2
  fi
  exit 1
fi
for suffix in cluster nodes operations; do
  found="$(look role definition list --name "$role-$suffix" --custom-role-only true \
    --query "[0] && ([0].description || 'no description')")"
  if [[ -n "$found" ]] && ! same "$found" "$description"; then
    echo "Cannot continue: the role $role-$suffix already exists for another purpose ($found); choose another name" >&2
    if same "$found" "$old_description" || same "$found" "${description% and *}"; then
      echo "Its description is that of earlier versions of this script and does not name the subscription and the ServiceAccount. If it is this ServiceAccount's, remove it with lastcall setup azure --undo of that version, and run this again." >&2
    fi
    exit 1
  fi
done

client=missing
principal=missing
if [[ "$owner" != missing ]]; then
  client="$(look identity show --resource-group "$group" --name "$identity" --query clientId)"
  principal="$(look identity show --resource-group "$group" --name "$identity" --query principalId)"
fi
linked=""
linked_by=""
if [[ "$issuer" == missing ]]; then
  echo "The cluster $cluster is gone, and the annotation azure.workload.identity/client-id with it; if that is not its name, run this again with the right one."
elif link_look; then
  if [[ "$issuer" == https://* ]]; then right_cluster "$issuer"; fi
else
  lost="kubectl failed, so the annotation azure.workload.identity/client-id of $namespace/$service_account is still there, unless the cluster is gone; the rest is removed"
fi
# What was written for an identity that is gone.
if [[ "$client" == missing ]] && same "$linked_by" "$identity_id/$linked"; then client="$linked"; fi

unfinished="still there, unless it never existed: the link to the identity, the roles $role-…, the identity $identity; run this again to remove it"

# 1. The link between the ServiceAccount and the identity.
if same "$linked_by" "$identity_id/$client"; then
  ours=(lastcall.dev/identity-)
  # Somebody may have linked the ServiceAccount to another identity since.
  if [[ "$linked" == "$client" ]]; then ours+=(azure.workload.identity/client-id-); fi
  "${kubectl[@]}" annotate serviceaccount "$service_account" "${ours[@]}"
elif [[ -n "$linked" && "$linked" == "$client" ]]; then
  keep "the annotation azure.workload.identity/client-id of $namespace/$service_account, which this script did not write. To remove it:"
  typed "${kubectl[@]}" annotate serviceaccount "$service_account" azure.workload.identity/client-id- lastcall.dev/identity-
fi

unfinished="still there, unless it never existed: the roles $role-…, the identity $identity; run this again to remove it"

# 2. The roles; one that is still assigned cannot be deleted.
for suffix in cluster nodes operations; do
  name="$role-$suffix"
  found="$(look role definition list --name "$name" --custom-role-only true --query '[0].name')"
  if [[ -z "$found" ]]; then continue; fi
  if [[ "$principal" != missing ]]; then
    ids="$(look role assignment list --assignee "$principal" --all \
      --query "[?ends_with(roleDefinitionId, '/$found')].id")"
    while IFS= read -r id; do
      [[ -z "$id" ]] || az role assignment delete --subscription "$subscription" --ids "$id" --output none
    done <<< "$ids"
  fi
  if ! az role definition delete --subscription "$subscription" --name "$name" --custom-role-only true --output none; then
    echo "Cannot delete the role $name. If it is still assigned, as to an identity that was deleted before, this lists the assignments:" >&2
    echo "az role assignment list --subscription $subscription --all --output table --query \"[?ends_with(roleDefinitionId, '/$found')].{id: id, principal: principalName}\"" >&2
    echo "Remove those that nobody needs with az role assignment delete --ids ID, and run this again" >&2
    exit 1
  fi
done

unfinished="still there, unless it never existed: the identity $identity; run this again to remove it"

# 3. The identity, with its federated credential.
if [[ "$owner" != missing ]]; then
  az identity delete --subscription "$subscription" --resource-group "$group" --name "$identity" --output none
fi

if [[ -n "$lost" ]]; then
  unfinished="$lost"
  exit 1
fi
echo "Done: everything that was set up for $namespace/$service_account of $cluster is removed$rest."
