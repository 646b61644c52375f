/**
 * The steps of `lastcall setup gcp --undo`. They use what the script has looked up before, and its
 * functions `look`, `holders`, `others` and `listed`.
 */
import { indented, partlyRemoved, unfinishedNow } from "../setup/shell-script.ts";

/**
 * A ServiceAccount has the same name in IAM in every cluster of the project, so a grant cannot be
 * marked as one cluster's. Without a named cluster, a single one is the one that is meant. gcloud
 * exits with 0 although some locations did not respond; then clusters may be missing.
 */
export const twinLook = `# The other clusters of the project, whose ServiceAccounts have the same names in IAM.
list_clusters() {
  gcloud container clusters list --project "$project" --quiet \\
    --format 'value(location,name,workloadIdentityConfig.workloadPool)'
}
warnings="$(list_clusters 2>&1 >/dev/null)" || {
  echo "Cannot tell which clusters use the grant: gcloud container clusters list failed: $warnings" >&2
  exit 1
}
if [[ "$warnings" == *"did not respond"* ]]; then
  echo "Cannot tell which clusters use the grant: $warnings" >&2
  exit 1
fi
clusters=""
twins=""
while read -r where name pool; do
  clusters+="$where/$name"$'\\n'
  if [[ "$pool" == "$project.svc.id.goog" ]]; then twins+="\${twins:+$'\\n'}$where/$name"; fi
done <<< "$(list_clusters | words)"
issuer=""
if [[ -n "\${cluster-}" ]]; then
  twins="$(others "$twins" "$location/$cluster")"
  # A cluster that does not use Workload Identity anymore still has the annotation.
  issuer=missing
  if listed "$clusters" "$location/$cluster"; then
    issuer="https://container.googleapis.com/v1/projects/$project/locations/$location/clusters/$cluster"
  fi
elif [[ "$twins" != *$'\\n'* ]]; then
  twins=""
fi
keep_for_twins() {
  keep "$1, since the ServiceAccount $namespace/$service_account of these clusters has the same name in IAM:"
  echo "$twins"
  echo "If none of these runs Lastcall, remove it, and run this again:"
}`;

const undoGrant = `if listed "$members" "$member"; then
  gcloud projects remove-iam-policy-binding "$project" --condition=None \\
    --role "projects/$project/roles/$role" --member "$member" --quiet >/dev/null
fi
if listed "$members" "$member with a condition"; then
  keep "the grant with a condition, which this script did not make. To remove it, and then run this again:"
  echo "gcloud projects remove-iam-policy-binding $project --all --role projects/$project/roles/$role --member $member"
  member=""
fi`;

export const undoDirect = `# 1. The grant, unless another cluster's ServiceAccount has it, too.
${unfinishedNow(partlyRemoved("the grant, and the role $role"))}
if [[ -n "$twins" ]] && listed "$members" "$member"; then
  keep_for_twins "the grant"
  echo "gcloud projects remove-iam-policy-binding $project --condition=None --role projects/$project/roles/$role --member $member"
  member=""
else
  ${indented(undoGrant)}
fi`;

/** Whoever made an account do other work has given it other roles. */
export const accountRoles = `# The account's other roles in the project.
account_roles="$(gcloud projects get-iam-policy "$project" --flatten 'bindings[].members' \\
  --format 'value(bindings.role,bindings.members)' | words)"
account_roles="$(while IFS= read -r one; do
  if [[ "$one" == *" $member" && "$one" != "projects/$project/roles/$role $member" ]]; then echo "\${one%% *}"; fi
done <<< "$account_roles")"`;

export const undoAccount = `# 2. The grant, and the Google service account, unless others use the account, too.
${unfinishedNow(partlyRemoved("the grant of $account, the account, and the role $role"))}
users="$(others "$users" "")"
if [[ -n "$keys" ]]; then
  users+="\${users:+$'\\n'}its keys \${keys//$'\\n'/ }"
fi
if [[ -n "$users" ]]; then
  keep "the account $account and its grant, since others may use it:"
  echo "$users"
  echo "If none of these is a Lastcall controller, remove the grant, and run this again:"
  echo "gcloud projects remove-iam-policy-binding $project --all --role projects/$project/roles/$role --member $member"
  member=""
else
  ${indented(undoGrant)}
  if [[ -z "$member" && "$account_state" != missing ]]; then
    keep "the account $account, which has this grant"
  elif [[ -n "$account_roles" && "$account_state" != missing ]]; then
    keep "the account $account, which has other roles, too:"
    echo "$account_roles"
  elif [[ "$account_state" == "$mark" ]]; then
    gcloud iam service-accounts delete "$account" --project "$project" --quiet
  elif [[ "$account_state" != missing ]]; then
    keep "the account $account (description: $account_state), which this script did not create"
  fi
fi`;

/**
 * A project's custom role can be granted on the project and on each of its resources, but not on a
 * folder or in another project. Only the index of the Cloud Asset API lists the resources; it lags,
 * so what it says of the project itself is ignored. In most projects that API is not enabled. Then
 * the role, which the script created and nobody has on the project, is deleted all the same: Google
 * keeps the grants of a deleted role, without effect, and it can be restored for seven days.
 */
const undoUnused = `path="projects/$project/roles/$role"
if found="$(gcloud asset search-all-iam-policies --scope "projects/$project" --query "policy:$path" \\
  --flatten 'policy.bindings[].members[]' --quiet \\
  --format 'value(policy.bindings.role,resource,policy.bindings.members)' | words)"; then
  found="$(while IFS= read -r one; do
    if [[ "$one" == "$path "* && "$one" != *" //cloudresourcemanager.googleapis.com/"* ]]; then
      echo "\${one#* }"
    fi
  done <<< "$found")"
  if [[ -n "$found" ]]; then
    keep "the role $role, which others have on single resources:"
    echo "$found"
  else
    gcloud iam roles delete "$role" --project "$project" --quiet >/dev/null
  fi
else
  gcloud iam roles delete "$role" --project "$project" --quiet >/dev/null
  echo "The role $role is deleted, and it is not known whether others had it on a single resource. If they had, this restores it for seven days, with their grants:"
  echo "gcloud iam roles undelete $role --project $project"
fi`;

export function undoRole(step: number): string {
  return `# ${step}. The role, unless others have it, too; Google keeps its id reserved for some weeks.
${unfinishedNow(partlyRemoved("the role $role"))}
deleted="$(look iam roles describe "$role" --project "$project" --format 'value(deleted)')"
if [[ "$deleted" != missing && "$deleted" != True ]]; then
  members="$(holders)"
  members="$(others "$members" "$member")"
  if [[ -n "$members" ]]; then
    keep "the role $role, which others still have:"
    echo "$members"
  else
    ${indented(indented(undoUnused))}
  fi
fi`;
}
