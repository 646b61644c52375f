#!/usr/bin/env bash
# Grants the Lastcall controller its permissions on AKS, by Workload Identity.
# Printed by `lastcall setup azure`. It can be run again: existing objects are updated.
# Whatever it creates has the cluster's resource id in its tag lastcall-cluster or in its description, and the identity the ServiceAccount in its tag lastcall-account; it changes nothing else.
#
# The controller needs these actions and no others:
#   Microsoft.ContainerService/managedClusters/agentPools/read: reading whether the pool of a machine has an autoscaler
#   Microsoft.ContainerService/managedClusters/agentPools/deleteMachines/action: making the pool delete a machine
#   Microsoft.ContainerService/locations/operations/read: waiting for the deletion
#   Microsoft.Compute/virtualMachineScaleSets/virtualMachines/read: finding a machine, and its launch time
#   Microsoft.Compute/virtualMachines/read: the same, in a node pool of the type VirtualMachines
#   Microsoft.Resources/subscriptions/resourceGroups/read: finding the cluster of the nodes if --aks-cluster does not name it
#   Microsoft.Authorization/permissions/read: checking before a drain whether the release will be permitted (without it, only the release itself shows that)
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

# Only read: enabling these would change the cluster.
issuer="$(look aks show --resource-group "$group" --name "$cluster" --query oidcIssuerProfile.issuerUrl)"
webhook="$(look aks show --resource-group "$group" --name "$cluster" \
  --query securityProfile.workloadIdentity.enabled)"
node_group="$(look aks show --resource-group "$group" --name "$cluster" --query nodeResourceGroup)"
location="$(look aks show --resource-group "$group" --name "$cluster" --query location)"
if [[ "$location" == missing ]]; then
  echo "Cannot continue: there is no cluster $cluster in the resource group $group" >&2
  exit 1
fi
if [[ "$issuer" != https://* || "$webhook" != true ]]; then
  echo "Cannot continue: the cluster $cluster does not use Workload Identity, enable it with" >&2
  echo "az aks update --resource-group $group --name $cluster --enable-oidc-issuer --enable-workload-identity" >&2
  exit 1
fi

# The installation creates the ServiceAccount; without it, nothing is changed.
link_look
if [[ -z "$exists" ]]; then
  echo "Cannot continue: the ServiceAccount $namespace/$service_account does not exist; the installation creates it: docs/running.md" >&2
  exit 1
fi
right_cluster "$issuer"

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

client=""
if [[ "$owner" != missing ]]; then
  client="$(look identity show --resource-group "$group" --name "$identity" --query clientId)"
  principal="$(look identity show --resource-group "$group" --name "$identity" --query principalId)"
fi

if [[ -n "$linked" && "$linked" != "$client" ]] && ! same "$linked_by" "$identity_id/$linked"; then
  echo "Cannot continue: the annotation azure.workload.identity/client-id of $namespace/$service_account names $linked, expected that of the identity $identity; choose another ServiceAccount with --service-account, or, if nothing needs that identity anymore, remove the annotation and run this again:" >&2
  typed "${kubectl[@]}" annotate serviceaccount "$service_account" azure.workload.identity/client-id- lastcall.dev/identity- >&2
  exit 1
fi

unfinished="what was created so far is kept; run this again to complete it, or the script of --undo to remove it"

# 1. The identity that the controller's pods use.
if [[ "$owner" == missing ]]; then
  az identity create --subscription "$subscription" --resource-group "$group" --name "$identity" \
    --location "$location" --tags "lastcall-cluster=$cluster_id" "lastcall-account=$account" --output none
fi
client="$(look identity show --resource-group "$group" --name "$identity" --query clientId)"
principal="$(look identity show --resource-group "$group" --name "$identity" --query principalId)"
# Both become part of what is granted.
for id in "$client" "$principal"; do
  if [[ -z "$id" || "$id" == missing ]]; then
    echo "Cannot continue: the identity $identity has no client id or no principal id yet" >&2
    exit 1
  fi
done

# 2. One role per scope, with the permissions that the controller needs there and no others.
grant() {
  local name="$role-$1" scope="$2" definition verb=update found
  definition="{\"Name\": \"$name\", \"IsCustom\": true, \"Description\": \"$description\",
    \"Actions\": $3, \"NotActions\": [], \"AssignableScopes\": [\"/subscriptions/$subscription\"]}"
  found="$(look role definition list --name "$name" --custom-role-only true --query '[0].name')"
  if [[ -z "$found" ]]; then verb=create; fi
  az role definition "$verb" --subscription "$subscription" --role-definition "$definition" --output none
  # A new role or identity is not visible everywhere at once.
  for attempt in 1 2 3 4 5 6; do
    if found="$(look role assignment list --assignee "$principal" --role "$name" --scope "$scope" \
      --query '[0].id')" && [[ -n "$found" ]]; then return; fi
    if az role assignment create --subscription "$subscription" --assignee-object-id "$principal" \
      --assignee-principal-type ServicePrincipal --role "$name" --scope "$scope" --output none; then return; fi
    sleep $((attempt * 5))
  done
  echo "Cannot grant the role $name on $scope" >&2
  return 1
}
grant cluster "$cluster_id" '["Microsoft.ContainerService/managedClusters/agentPools/read","Microsoft.ContainerService/managedClusters/agentPools/deleteMachines/action","Microsoft.Authorization/permissions/read"]'
grant nodes "/subscriptions/$subscription/resourceGroups/$node_group" '["Microsoft.Compute/virtualMachineScaleSets/virtualMachines/read","Microsoft.Compute/virtualMachines/read","Microsoft.Resources/subscriptions/resourceGroups/read"]'
grant operations "/subscriptions/$subscription" '["Microsoft.ContainerService/locations/operations/read"]'

# 3. The controller's ServiceAccount may use the identity, and its annotation names it.
found="$(look identity federated-credential show --identity-name "$identity" --resource-group "$group" \
  --name lastcall --query name)"
verb=update
if [[ "$found" == missing ]]; then verb=create; fi
az identity federated-credential "$verb" --subscription "$subscription" --identity-name "$identity" \
  --resource-group "$group" --name lastcall --issuer "$issuer" \
  --subject "system:serviceaccount:$namespace:$service_account" \
  --audiences api://AzureADTokenExchange --output none
if [[ "$linked" != "$client" ]] && same "$linked_by" "$identity_id/$linked"; then
  "${kubectl[@]}" annotate serviceaccount "$service_account" azure.workload.identity/client-id- lastcall.dev/identity-
  linked=""
  linked_by=""
fi
if [[ -z "$linked" ]]; then
  if [[ -n "$linked_by" && "$linked_by" != "$identity_id/$client" ]]; then
    "${kubectl[@]}" annotate serviceaccount "$service_account" lastcall.dev/identity-
  fi
  # Without --overwrite, kubectl does not replace what others have written meanwhile.
  "${kubectl[@]}" annotate serviceaccount "$service_account" "azure.workload.identity/client-id=$client" \
    "lastcall.dev/identity=$identity_id/$client"
fi

echo "Done: $namespace/$service_account of $cluster has the identity $identity."
echo "The controller's pods need the label azure.workload.identity/use: \"true\", which restarts them:"
echo "kubectl --namespace $namespace patch deployment lastcall --patch \\"
echo "  '{\"spec\":{\"template\":{\"metadata\":{\"labels\":{\"azure.workload.identity/use\":\"true\"}}}}}'"
echo "It may take a few minutes until the permissions take effect."
