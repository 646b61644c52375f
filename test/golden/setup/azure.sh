#!/usr/bin/env bash
# Gives the Lastcall controller its rights on AKS, by Workload Identity.
# Made by `lastcall setup azure`. It can be run again: existing objects are updated.
# What it makes says so by the tag lastcall-cluster or its description; all else is not touched.
#
# The controller needs these actions and no others:
#   Microsoft.ContainerService/managedClusters/agentPools/read: learning whether the pool of a machine has an autoscaler
#   Microsoft.ContainerService/managedClusters/agentPools/deleteMachines/action: having the pool delete a machine
#   Microsoft.ContainerService/locations/operations/read: waiting for the deletion
#   Microsoft.Compute/virtualMachineScaleSets/virtualMachines/read: learning which machine is meant, and when it was made
#   Microsoft.Compute/virtualMachines/read: the same in a node pool of the type VirtualMachines
#   Microsoft.Resources/subscriptions/resourceGroups/read: finding the cluster of the nodes, where --aks-cluster does not name it
#   Microsoft.Authorization/permissions/read: asking before a drain whether the pool may be told, without it only the release itself tells
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

# The ServiceAccount comes with deploy/base; without it nothing is changed.
"${kubectl[@]}" get serviceaccount "$service_account" >/dev/null || {
  echo "Cannot go on: the ServiceAccount $namespace/$service_account was not found; it comes with the installation: docs/running.md" >&2
  exit 1
}

# Only looked at: to switch these on is a change of the cluster.
issuer="$(look aks show --resource-group "$group" --name "$cluster" --query oidcIssuerProfile.issuerUrl)"
webhook="$(look aks show --resource-group "$group" --name "$cluster" \
  --query securityProfile.workloadIdentity.enabled)"
node_group="$(look aks show --resource-group "$group" --name "$cluster" --query nodeResourceGroup)"
location="$(look aks show --resource-group "$group" --name "$cluster" --query location)"
if [[ "$location" == missing ]]; then
  echo "Cannot go on: there is no cluster $cluster in the resource group $group" >&2
  exit 1
fi
if [[ "$issuer" != https://* || "$webhook" != true ]]; then
  echo "Cannot go on: the cluster $cluster has no Workload Identity, switch it on with" >&2
  echo "az aks update --resource-group $group --name $cluster --enable-oidc-issuer --enable-workload-identity" >&2
  exit 1
fi

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

# 1. The identity that the controller's pods get.
if [[ "$owner" == missing ]]; then
  az identity create --subscription "$subscription" --resource-group "$group" --name "$identity" \
    --location "$location" --tags "lastcall-cluster=$cluster" --output none
fi
client="$(look identity show --resource-group "$group" --name "$identity" --query clientId)"
principal="$(look identity show --resource-group "$group" --name "$identity" --query principalId)"

# 2. The roles, each for one scope: what the controller does there, and nothing else.
grant() {
  local name="$role-$1" scope="$2" definition verb=update found
  definition="{\"Name\": \"$name\", \"IsCustom\": true, \"Description\": \"$description\",
    \"Actions\": $3, \"NotActions\": [], \"AssignableScopes\": [\"/subscriptions/$subscription\"]}"
  found="$(look role definition list --name "$name" --custom-role-only true --query '[0].name')"
  if [[ -z "$found" ]]; then verb=create; fi
  az role definition "$verb" --subscription "$subscription" --role-definition "$definition" --output none
  # A role or an identity that was just made may not be known everywhere yet.
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
grant cluster "/subscriptions/$subscription/resourceGroups/$group/providers/Microsoft.ContainerService/managedClusters/$cluster" '["Microsoft.ContainerService/managedClusters/agentPools/read","Microsoft.ContainerService/managedClusters/agentPools/deleteMachines/action","Microsoft.Authorization/permissions/read"]'
grant nodes "/subscriptions/$subscription/resourceGroups/$node_group" '["Microsoft.Compute/virtualMachineScaleSets/virtualMachines/read","Microsoft.Compute/virtualMachines/read","Microsoft.Resources/subscriptions/resourceGroups/read"]'
grant operations "/subscriptions/$subscription" '["Microsoft.ContainerService/locations/operations/read"]'

# 3. The ServiceAccount of the controller may take the identity, and says so.
found="$(look identity federated-credential show --identity-name "$identity" --resource-group "$group" \
  --name lastcall --query name)"
verb=update
if [[ "$found" == missing ]]; then verb=create; fi
az identity federated-credential "$verb" --subscription "$subscription" --identity-name "$identity" \
  --resource-group "$group" --name lastcall --issuer "$issuer" \
  --subject "system:serviceaccount:$namespace:$service_account" \
  --audiences api://AzureADTokenExchange --output none
"${kubectl[@]}" annotate serviceaccount "$service_account" --overwrite \
  "azure.workload.identity/client-id=$client"

echo "Done: $namespace/$service_account of $cluster has the identity $identity."
echo "The controller's pods need the label azure.workload.identity/use: \"true\", then a new start:"
echo "kubectl --namespace $namespace patch deployment lastcall --patch \\"
echo "  '{\"spec\":{\"template\":{\"metadata\":{\"labels\":{\"azure.workload.identity/use\":\"true\"}}}}}'"
echo "It may take some minutes until the permission is effective."
