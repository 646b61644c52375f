/**
 * The steps of `lastcall setup gcp --undo`. They use what the script has looked up before, and its
 * functions `look`, `holders`, `others` and `listed`.
 */
import {
  annotationRemoval,
  indented,
  partlyRemoved,
  unfinishedNow,
} from "../setup/shell-script.ts";

export const keeping = `rest=""
keep() {
  echo "Kept: $1"
  rest=", except for what is kept"
}`;

/**
 * A ServiceAccount has the same name in IAM in every cluster of the project, so a grant cannot be
 * marked as one cluster's. Without a named cluster, a single one is the one that is meant. gcloud
 * exits with 0 although some locations did not respond; then clusters may be missing.
 */
export const twinLook = `# The other clusters of the project, whose ServiceAccounts have the same names in IAM.
list_clusters() {
  gcloud container clusters list --project "$project" --quiet \\
    --filter "workloadIdentityConfig.workloadPool=$project.svc.id.goog" \\
    --format 'value[separator=/](location,name)'
}
warnings="$(list_clusters 2>&1 >/dev/null)" || {
  echo "Cannot tell which clusters use the grant: gcloud container clusters list failed: $warnings" >&2
  exit 1
}
if [[ "$warnings" == *"did not respond"* ]]; then
  echo "Cannot tell which clusters use the grant: $warnings" >&2
  exit 1
fi
clusters="$(list_clusters)"
twins="$clusters"
if [[ -n "\${cluster-}" ]]; then
  twins="$(others "$twins" "$location/$cluster")"
elif [[ "$twins" != *$'\\n'* ]]; then
  twins=""
fi
gone() { [[ -n "\${cluster-}" ]] && ! listed "$clusters" "$location/$cluster"; }
keep_for_twins() {
  keep "$1, since the ServiceAccount $namespace/$service_account of these clusters has the same name in IAM:"
  echo "$twins"
  echo "If none of these runs Lastcall, remove it, and run this again:"
}`;

const undoGrant = `if listed "$members" "$member"; then
  gcloud projects remove-iam-policy-binding "$project" --condition=None \\
    --role "projects/$project/roles/$role" --member "$member" --quiet >/dev/null
fi`;

export const undoDirect = `# 1. The grant, unless another cluster's ServiceAccount has it, too.
members="$(holders)"
${unfinishedNow(partlyRemoved("the grant, and the role $role"))}
if [[ -n "$twins" ]] && listed "$members" "$member"; then
  keep_for_twins "the grant"
  echo "gcloud projects remove-iam-policy-binding $project --condition=None --role projects/$project/roles/$role --member $member"
  member=""
else
  ${indented(undoGrant)}
fi`;

export const userLook = `user="serviceAccount:$project.svc.id.goog[$namespace/$service_account]"
users=""
if [[ "$account_state" != missing ]]; then
  users="$(gcloud iam service-accounts get-iam-policy "$account" --project "$project" \\
    --flatten 'bindings[].members' --filter bindings.role=roles/iam.workloadIdentityUser \\
    --format 'value(bindings.members)')"
fi
members="$(holders)"`;

export const undoLink = `# 1. The link between the ServiceAccount and the Google service account.
${unfinishedNow(partlyRemoved("the link to the account $account, its grant, the account, and the role $role"))}
if listed "$users" "$user"; then
  if [[ -n "$twins" ]]; then
    keep_for_twins "the permission to impersonate $account"
    echo "gcloud iam service-accounts remove-iam-policy-binding $account --project $project --condition=None --role roles/iam.workloadIdentityUser --member '$user'"
  else
    gcloud iam service-accounts remove-iam-policy-binding "$account" --project "$project" \\
      --condition=None --role roles/iam.workloadIdentityUser --member "$user" --quiet >/dev/null
    users="$(others "$users" "$user")"
  fi
fi
${annotationRemoval("iam.gke.io/gcp-service-account", '"$account"')}`;

export const undoAccount = `# 2. The grant, and the Google service account, unless others use the account, too.
${unfinishedNow(partlyRemoved("the grant of $account, the account, and the role $role"))}
users="$(others "$users" "")"
if [[ -n "$keys" ]]; then
  users+="\${users:+$'\\n'}its keys \${keys//$'\\n'/ }"
fi
if [[ -n "$users" ]]; then
  keep "the account $account and its grant, since others may impersonate it:"
  echo "$users"
  echo "If none of these is a Lastcall controller, remove the grant, and run this again:"
  echo "gcloud projects remove-iam-policy-binding $project --condition=None --role projects/$project/roles/$role --member $member"
  member=""
else
  ${indented(undoGrant)}
  if [[ "$account_state" == Lastcall ]]; then
    gcloud iam service-accounts delete "$account" --project "$project" --quiet
  elif [[ "$account_state" != missing ]]; then
    keep "the account $account (display name: $account_state), which this script did not create"
  fi
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
    gcloud iam roles delete "$role" --project "$project" --quiet >/dev/null
  fi
fi`;
}
