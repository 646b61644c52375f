#!/usr/bin/env bash
# Grants the Lastcall controller its permissions on AKS, by Workload Identity.
# Printed by `lastcall setup azure`. It can be run again: existing objects are updated.
# Whatever it creates has the tag lastcall-cluster or a description that says so; it changes nothing else.
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

# deploy/base creates the ServiceAccount; without it, nothing is changed.
"${kubectl[@]}" get serviceaccount "$service_account" >/dev/null || {
  echo "Cannot continue: the ServiceAccount $namespace/$service_account does not exist; the installation creates it: docs/running.md" >&2
  exit 1
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

# 1. The identity that the controller's pods use.
if [[ "$owner" == missing ]]; then
  az identity create --subscription "$subscription" --resource-group "$group" --name "$identity" \
    --location "$location" --tags "lastcall-cluster=$cluster" --output none
fi
client="$(look identity show --resource-group "$group" --name "$identity" --query clientId)"
principal="$(look identity show --resource-group "$group" --name "$identity" --query principalId)"

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
grant cluster "/subscriptions/$subscription/resourceGroups/$group/providers/Microsoft.ContainerService/managedClusters/$cluster" '["Microsoft.ContainerService/managedClusters/agentPools/read","Microsoft.ContainerService/managedClusters/agentPools/deleteMachines/action","Microsoft.Authorization/permissions/read"]'
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
"${kubectl[@]}" annotate serviceaccount "$service_account" --overwrite \
  "azure.workload.identity/client-id=$client"

echo "Done: $namespace/$service_account of $cluster has the identity $identity."
echo "The controller's pods need the label azure.workload.identity/use: \"true\", which restarts them:"
echo "kubectl --namespace $namespace patch deployment lastcall --patch \\"
echo "  '{\"spec\":{\"template\":{\"metadata\":{\"labels\":{\"azure.workload.identity/use\":\"true\"}}}}}'"
echo "It may take a few minutes until the permissions take effect."
