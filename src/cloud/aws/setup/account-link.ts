/**
 * The steps of `lastcall setup aws` that let the ServiceAccount assume the role: by an association
 * of EKS Pod Identity, or by IRSA, with an annotation and the cluster's issuer.
 */
import { type AccountLink, linkRemoval, linkStep, undoLinkLook } from "../../setup/account-link.ts";
import { issuerPlace } from "./setup-documents.ts";

/** The annotation with IRSA. A role's ARN is unique, and the role's tag says whose it is. */
export const link: AccountLink = {
  annotation: "eks.amazonaws.com/role-arn",
  value: "$role_arn",
  mark: "$role_arn",
  identity: "$role_arn",
};

export const issuerLook = `# Only read: the identity provider belongs to the cluster, and others use it.
issuer="$(aws eks describe-cluster --name "$cluster" --query cluster.identity.oidc.issuer --output text)"
if [[ ! "$issuer" =~ ^https://[A-Za-z0-9./_-]+$ ]]; then
  echo "Cannot continue: the cluster $cluster has no OIDC issuer, found $issuer" >&2
  exit 1
fi
issuer="\${issuer#https://}"
trust="\${trust//${issuerPlace}/$issuer}"
provider="\${role_arn%:role/*}:oidc-provider/$issuer"
state="$(look iam get-open-id-connect-provider --open-id-connect-provider-arn "$provider" \\
  --query Url)"
if [[ "$state" == missing ]]; then
  echo "Cannot continue: IAM has no identity provider for the cluster's issuer, create it with" >&2
  echo "aws iam create-open-id-connect-provider --url https://$issuer --client-id-list sts.amazonaws.com" >&2
  exit 1
fi`;

export const agentLook = `# Only read: EKS Auto Mode has the agent built in; other clusters need the add-on.
addon="$(look eks describe-addon --cluster-name "$cluster" --addon-name eks-pod-identity-agent \\
  --query addon.status)" || echo "Note: it is not known whether $cluster has the add-on eks-pod-identity-agent" >&2
if [[ "$addon" == missing ]]; then
  echo "Note: $cluster does not have the add-on eks-pod-identity-agent; unless it runs in Auto Mode, create it with" >&2
  echo "aws eks create-addon --cluster-name $cluster --addon-name eks-pod-identity-agent" >&2
fi`;

export const associationLook = `association="$(look eks list-pod-identity-associations --cluster-name "$cluster" \\
  --namespace "$namespace" --service-account "$service_account" --query 'associations[0].associationId')"
associated="$role_arn"
if [[ "$association" != None && "$association" != missing ]]; then
  associated="$(look eks describe-pod-identity-association --cluster-name "$cluster" \\
    --association-id "$association" --query association.roleArn)"
fi`;

/** Others may have associated the ServiceAccount with this very role. */
export const associationOwner = `if [[ "$association" != None && "$association" != missing && "$associated" == "$role_arn" ]]; then
  association_state="$(look eks describe-pod-identity-association --cluster-name "$cluster" \\
    --association-id "$association" --query 'association.tags."lastcall-cluster"')"
  association_arn="$(look eks describe-pod-identity-association --cluster-name "$cluster" \\
    --association-id "$association" --query association.associationArn)"
  own "the association of $namespace/$service_account with the role $role" "$association_state" \\
    "aws eks tag-resource --resource-arn $association_arn --tags lastcall-cluster=$mark"
fi`;

export const associationCheck = `${associationLook}
if [[ "$association" == missing ]]; then
  echo "Cannot continue: there is no cluster $cluster in $AWS_REGION" >&2
  exit 1
fi
if [[ "$associated" != "$role_arn" ]]; then
  echo "Cannot continue: $namespace/$service_account already has the role $associated, expected $role_arn" >&2
  exit 1
fi`;

export const association = `# 2. The role for the ServiceAccount of the controller; it needs no annotation.
if [[ "$association" == None ]]; then
  # A new role is not visible everywhere at once.
  for attempt in 1 2 3 4 5; do
    if aws eks create-pod-identity-association --cluster-name "$cluster" --namespace "$namespace" \\
      --service-account "$service_account" --role-arn "$role_arn" \\
      --tags "lastcall-cluster=$mark" >/dev/null; then break; fi
    if [[ "$attempt" == 5 ]]; then echo "Cannot associate $service_account with $role_arn" >&2; exit 1; fi
    sleep "$attempt"
  done
fi`;

export const annotationStep = `# 2. The annotation that names the role for the controller's ServiceAccount.
${linkStep(link)}`;

export const undoAssociation = `# 2. The link between the ServiceAccount and the role.
if [[ "$association" != None && "$association" != missing && "$associated" == "$role_arn" ]]; then
  aws eks delete-pod-identity-association --cluster-name "$cluster" --association-id "$association" >/dev/null
fi`;

export const undoIssuerLook = `issuer="$(look eks describe-cluster --name "$cluster" --query cluster.identity.oidc.issuer)"
${undoLinkLook(link)}`;

export const undoAnnotation = `# 2. The link between the ServiceAccount and the role.
${linkRemoval(link)}`;
