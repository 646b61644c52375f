import {
  type AccountLink,
  linkCheck,
  linkFunctions,
  linkLook,
  linkRemoval,
  linkStep,
  undoLinkLook,
} from "../setup/account-link.ts";
import {
  type AccountChoice,
  accountForms,
  assignments,
  checkForms,
  endReport,
  type Form,
  indented,
  keeping,
  kubectlArray,
  lookFunction,
  madeBy,
  nothingChanged,
  partlyCreated,
  partlyRemoved,
  toolChecks,
  undoEnd,
  unfinishedNow,
} from "../setup/shell-script.ts";
import { type AzureScope, azurePermissions } from "./permissions.ts";

/** The options of `lastcall setup azure`. */
export interface AzureSetupChoice extends AccountChoice {
  readonly subscription: string;
  /** The cluster's resource group, not that of its nodes. */
  readonly resourceGroup: string;
  readonly cluster: string;
  readonly managedIdentity: string;
  /** Prefix of the custom roles' names. */
  readonly role: string;
}

const forms = {
  ...accountForms,
  subscription: {
    flag: "--subscription",
    pattern: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i,
    wanted: "the id of a subscription, a UUID",
  },
  resourceGroup: {
    flag: "--resource-group",
    pattern: /^[-\w.()]{0,89}[-\w()]$/,
    wanted: "the name of a resource group",
  },
  cluster: {
    flag: "--cluster",
    pattern: /^[a-zA-Z0-9]([-_a-zA-Z0-9]{0,61}[a-zA-Z0-9])?$/,
    wanted: "the name of an AKS cluster",
  },
  managedIdentity: {
    flag: "--managed-identity",
    pattern: /^[a-zA-Z0-9][-_a-zA-Z0-9]{2,127}$/,
    wanted:
      "the name of a user-assigned identity: 3 to 128 letters, digits, dashes and underscores",
  },
  role: {
    flag: "--role",
    pattern: /^[a-zA-Z0-9][-_. a-zA-Z0-9]{0,99}$/,
    wanted: "a prefix for the names of the custom roles: letters, digits, spaces and -_.",
  },
} as const satisfies Record<string, Form>;

/** Each scope has its own role, so that no permission is granted where it is not used. */
const scopes: readonly { readonly on: AzureScope; readonly suffix: string }[] = [
  { on: "Cluster", suffix: "cluster" },
  { on: "NodeGroup", suffix: "nodes" },
  { on: "Subscription", suffix: "operations" },
];

/**
 * Returns a shell script that gives the controller its permissions on AKS by Workload Identity. A
 * second run updates what the first one created. Resources of the same name that it did not create
 * are never changed. Throws USAGE for an invalid value.
 */
export function azureSetupScript(choice: AzureSetupChoice): string {
  checkForms(choice, forms);
  const parts = [
    head(
      "Setup",
      "Grants the Lastcall controller its permissions on AKS, by Workload Identity",
      explainedRights(),
    ),
    variables(choice),
    checks(choice),
    clusterLook,
    linkLook('"$issuer"'),
    identityLook,
    clientLook,
    linkCheck(link),
    unfinishedNow(partlyCreated),
    identityStep,
    roleStep(),
    accountStep,
    done,
  ];
  return `${parts.join("\n\n")}\n`;
}

/** Removes what the script of the same choice created, and nothing else. */
export function azureUndoScript(choice: AzureSetupChoice): string {
  checkForms(choice, forms);
  const parts = [
    head("Undo", "Removes what `lastcall setup azure` created, and nothing else", []),
    variables(choice),
    checks(choice),
    keeping,
    issuerLook,
    identityLook,
    undoClientLook,
    unfinishedNow(
      partlyRemoved("the link to the identity, the roles $role-…, the identity $identity"),
    ),
    undoAccount,
    unfinishedNow(partlyRemoved("the roles $role-…, the identity $identity")),
    undoRoles,
    unfinishedNow(partlyRemoved("the identity $identity")),
    undoIdentity,
    undoEnd(
      'echo "Done: everything that was set up for $namespace/$service_account of $cluster is removed$rest."',
    ),
  ];
  return `${parts.join("\n\n")}\n`;
}

function head(script: "Setup" | "Undo", purpose: string, rights: readonly string[]): string {
  return [
    "#!/usr/bin/env bash",
    `# ${purpose}.`,
    madeBy("azure", script),
    "# Whatever it creates has the cluster's resource id in its tag lastcall-cluster or in its description, and the identity the ServiceAccount in its tag lastcall-account; it changes nothing else.",
    ...rights,
    "set -euo pipefail",
  ].join("\n");
}

function explainedRights(): readonly string[] {
  const lines = azurePermissions.map(({ action, neededFor }) => `#   ${action}: ${neededFor}`);
  return ["#", "# The controller needs these actions and no others:", ...lines];
}

function variables(choice: AzureSetupChoice): string {
  return assignments({
    subscription: choice.subscription,
    group: choice.resourceGroup,
    cluster: choice.cluster,
    namespace: choice.namespace,
    service_account: choice.serviceAccount,
    identity: choice.managedIdentity,
    role: choice.role,
    cluster_id: clusterId(choice),
    account: `${choice.namespace}/${choice.serviceAccount}`,
    identity_id: identityId(choice),
    description: `Made by lastcall setup azure for ${clusterId(choice)} and ${choice.namespace}/${choice.serviceAccount}`,
    // The names alone are the same in another subscription of the tenant.
    old_description: `Made by lastcall setup azure for the cluster ${choice.cluster} in ${choice.resourceGroup}`,
  });
}

/**
 * What is unique about a cluster, as the mark of what was created for it. A cluster that is deleted
 * and created again has the same id, and takes over what its predecessor had.
 */
function clusterId({ subscription, resourceGroup, cluster }: AzureSetupChoice): string {
  const group = `/subscriptions/${subscription}/resourceGroups/${resourceGroup}`;
  return `${group}/providers/Microsoft.ContainerService/managedClusters/${cluster}`;
}

function identityId({ subscription, resourceGroup, managedIdentity }: AzureSetupChoice): string {
  const group = `/subscriptions/${subscription}/resourceGroups/${resourceGroup}`;
  return `${group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/${managedIdentity}`;
}

function checks(choice: AzureSetupChoice): string {
  return `${toolChecks(["az", "kubectl"])}
${endReport(nothingChanged)}
${kubectlArray(choice)}

${linkFunctions(link)}

${look}`;
}

/**
 * A command `show` ends with 3 if the response is 404 (Azure/azure-cli issues 6612 and 14913). A
 * subscription that the login cannot see is a 404, too, so the error counts as well; earlier
 * versions print it without its code.
 */
const look = lookFunction({
  tool: "az",
  flags: ' --subscription "$subscription" --output tsv',
  exitCode: "3",
  message: `"("(ResourceNotFound|ResourceGroupNotFound|NotFound)")"|"The Resource '".*"' was not found"|"Resource group '".*"' could not be found"`,
});

/** Once an identity is gone, nothing else tells whose its client id was. */
const link: AccountLink = {
  annotation: "azure.workload.identity/client-id",
  value: "$client",
  mark: "$identity_id/$client",
  identity: "that of the identity $identity",
  former: 'same "$linked_by" "$identity_id/$linked"',
};

const issuerLook = `issuer="$(look aks show --resource-group "$group" --name "$cluster" --query oidcIssuerProfile.issuerUrl)"`;

const clusterLook = `# Only read: enabling these would change the cluster.
${issuerLook}
webhook="$(look aks show --resource-group "$group" --name "$cluster" \\
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
fi`;

const identityLook = `# Check who owns the existing resources before anything is changed.
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
  found="$(look role definition list --name "$role-$suffix" --custom-role-only true \\
    --query "[0] && ([0].description || 'no description')")"
  if [[ -n "$found" ]] && ! same "$found" "$description"; then
    echo "Cannot continue: the role $role-$suffix already exists for another purpose ($found); choose another name" >&2
    if same "$found" "$old_description" || same "$found" "\${description% and *}"; then
      echo "Its description is that of earlier versions of this script and does not name the subscription and the ServiceAccount. If it is this ServiceAccount's, remove it with lastcall setup azure --undo of that version, and run this again." >&2
    fi
    exit 1
  fi
done`;

const clientIds = `client="$(look identity show --resource-group "$group" --name "$identity" --query clientId)"
principal="$(look identity show --resource-group "$group" --name "$identity" --query principalId)"`;

const clientLook = `client=""
if [[ "$owner" != missing ]]; then
  ${indented(clientIds)}
fi`;

const undoClientLook = `client=missing
principal=missing
if [[ "$owner" != missing ]]; then
  ${indented(clientIds)}
fi
${undoLinkLook(link)}
# What was written for an identity that is gone.
if [[ "$client" == missing ]] && ${link.former}; then client="$linked"; fi`;

const identityStep = `# 1. The identity that the controller's pods use.
if [[ "$owner" == missing ]]; then
  az identity create --subscription "$subscription" --resource-group "$group" --name "$identity" \\
    --location "$location" --tags "lastcall-cluster=$cluster_id" "lastcall-account=$account" --output none
fi
${clientIds}
# Both become part of what is granted.
for id in "$client" "$principal"; do
  if [[ -z "$id" || "$id" == missing ]]; then
    echo "Cannot continue: the identity $identity has no client id or no principal id yet" >&2
    exit 1
  fi
done`;

function roleStep(): string {
  const grants = scopes.map(({ on, suffix }) => {
    const actions = azurePermissions.filter((one) => one.on === on).map(({ action }) => action);
    return `grant ${suffix} "${scopePaths[on]}" '${JSON.stringify(actions)}'`;
  });
  return `# 2. One role per scope, with the permissions that the controller needs there and no others.
grant() {
  local name="$role-$1" scope="$2" definition verb=update found
  definition="{\\"Name\\": \\"$name\\", \\"IsCustom\\": true, \\"Description\\": \\"$description\\",
    \\"Actions\\": $3, \\"NotActions\\": [], \\"AssignableScopes\\": [\\"/subscriptions/$subscription\\"]}"
  found="$(look role definition list --name "$name" --custom-role-only true --query '[0].name')"
  if [[ -z "$found" ]]; then verb=create; fi
  az role definition "$verb" --subscription "$subscription" --role-definition "$definition" --output none
  # A new role or identity is not visible everywhere at once.
  for attempt in 1 2 3 4 5 6; do
    if found="$(look role assignment list --assignee "$principal" --role "$name" --scope "$scope" \\
      --query '[0].id')" && [[ -n "$found" ]]; then return; fi
    if az role assignment create --subscription "$subscription" --assignee-object-id "$principal" \\
      --assignee-principal-type ServicePrincipal --role "$name" --scope "$scope" --output none; then return; fi
    sleep $((attempt * 5))
  done
  echo "Cannot grant the role $name on $scope" >&2
  return 1
}
${grants.join("\n")}`;
}

const scopePaths: Readonly<Record<AzureScope, string>> = {
  Cluster: "$cluster_id",
  NodeGroup: "/subscriptions/$subscription/resourceGroups/$node_group",
  Subscription: "/subscriptions/$subscription",
};

const accountStep = `# 3. The controller's ServiceAccount may use the identity, and its annotation names it.
found="$(look identity federated-credential show --identity-name "$identity" --resource-group "$group" \\
  --name lastcall --query name)"
verb=update
if [[ "$found" == missing ]]; then verb=create; fi
az identity federated-credential "$verb" --subscription "$subscription" --identity-name "$identity" \\
  --resource-group "$group" --name lastcall --issuer "$issuer" \\
  --subject "system:serviceaccount:$namespace:$service_account" \\
  --audiences api://AzureADTokenExchange --output none
${linkStep(link)}`;

const done = `echo "Done: $namespace/$service_account of $cluster has the identity $identity."
echo "The controller's pods need the label azure.workload.identity/use: \\"true\\", which restarts them:"
echo "kubectl --namespace $namespace patch deployment lastcall --patch \\\\"
echo "  '{\\"spec\\":{\\"template\\":{\\"metadata\\":{\\"labels\\":{\\"azure.workload.identity/use\\":\\"true\\"}}}}}'"
echo "It may take a few minutes until the permissions take effect."`;

const undoAccount = `# 1. The link between the ServiceAccount and the identity.
${linkRemoval(link)}`;

/** With --all, az looks for a role by its name nowhere, and fails (Azure/azure-cli issue 29407). */
const undoRoles = `# 2. The roles; one that is still assigned cannot be deleted.
for suffix in cluster nodes operations; do
  name="$role-$suffix"
  found="$(look role definition list --name "$name" --custom-role-only true --query '[0].name')"
  if [[ -z "$found" ]]; then continue; fi
  if [[ "$principal" != missing ]]; then
    ids="$(look role assignment list --assignee "$principal" --all \\
      --query "[?ends_with(roleDefinitionId, '/$found')].id")"
    while IFS= read -r id; do
      [[ -z "$id" ]] || az role assignment delete --subscription "$subscription" --ids "$id" --output none
    done <<< "$ids"
  fi
  if ! az role definition delete --subscription "$subscription" --name "$name" --custom-role-only true --output none; then
    echo "Cannot delete the role $name. If it is still assigned, as to an identity that was deleted before, this lists the assignments:" >&2
    echo "az role assignment list --subscription $subscription --all --output table --query \\"[?ends_with(roleDefinitionId, '/$found')].{id: id, principal: principalName}\\"" >&2
    echo "Remove those that nobody needs with az role assignment delete --ids ID, and run this again" >&2
    exit 1
  fi
done`;

const undoIdentity = `# 3. The identity, with its federated credential.
if [[ "$owner" != missing ]]; then
  az identity delete --subscription "$subscription" --resource-group "$group" --name "$identity" --output none
fi`;
