/**
 * The steps of `lastcall setup gcp` that link the ServiceAccount to a Google service account. They
 * use what the script has looked up before, and its functions `look`, `others` and `listed`.
 */
import {
  type AccountLink,
  identityAnnotation,
  linkCheck,
  linkRemoval,
  linkStep,
  undoLinkLook,
} from "../setup/account-link.ts";
import { partlyRemoved, unfinishedNow } from "../setup/shell-script.ts";

export const link: AccountLink = {
  annotation: "iam.gke.io/gcp-service-account",
  value: "$account",
  mark: "$account",
  identity: "$account",
};

/**
 * The permission to impersonate the account. IAM has no place for a mark on it, so the
 * ServiceAccount has it, too.
 */
const permissionAnnotation = `${identityAnnotation}-permission`;

export const setupLinkLook = linkCheck(link);

/** The annotations come first: they tell the undo what this made, wherever it is interrupted. */
export const accountLink = `# 3. The controller's ServiceAccount may impersonate it, and its annotation names it.
${linkStep(link)}
if listed "$users" "$link with a condition"; then
  echo "Kept: the permission of $user to impersonate $account, with its condition"
elif ! listed "$users" "$link"; then
  "\${kubectl[@]}" annotate serviceaccount "$service_account" --overwrite \\
    "${permissionAnnotation}=$account"
  gcloud iam service-accounts add-iam-policy-binding "$account" --project "$project" \\
    --condition=None --role roles/iam.workloadIdentityUser --member "$user" --quiet >/dev/null
fi`;

/** An account of its own loses everything; to one of others, the script may have added nothing. */
export const linkOwners = `permitted_by=""
${undoLinkLook(link)}
if [[ -n "\${exists-}" ]]; then
  permitted_by="$("\${kubectl[@]}" get serviceaccount "$service_account" --ignore-not-found \\
    --output 'jsonpath={.metadata.annotations.${permissionAnnotation.replaceAll(".", "\\.")}}')"
fi`;

export const undoLink = `# 1. The link between the ServiceAccount and the Google service account.
${unfinishedNow(partlyRemoved("the link to the account $account, its grant, the account, and the role $role"))}
if listed "$users" "$link with a condition"; then
  keep "the permission to impersonate $account with a condition, which this script did not make. To remove it, and then run this again:"
  echo "gcloud iam service-accounts remove-iam-policy-binding $account --project $project --all --role roles/iam.workloadIdentityUser --member '$user'"
fi
remove_permission="gcloud iam service-accounts remove-iam-policy-binding $account --project $project --condition=None --role roles/iam.workloadIdentityUser --member '$user'"
if listed "$users" "$link"; then
  if [[ -n "$twins" ]]; then
    keep_for_twins "the permission to impersonate $account"
    echo "$remove_permission"
  elif [[ "$account_state" != "$mark" && "$permitted_by" != "$account" ]]; then
    keep "the permission to impersonate $account, which the ServiceAccount does not show to be this script's. To remove it:"
    echo "$remove_permission"
    users="$(others "$users" "$link")"
  else
    gcloud iam service-accounts remove-iam-policy-binding "$account" --project "$project" \\
      --condition=None --role roles/iam.workloadIdentityUser --member "$user" --quiet >/dev/null
    users="$(others "$users" "$link")"
  fi
fi
# Where the permission is kept for other clusters, another run removes it.
if [[ "$permitted_by" == "$account" ]] && ! listed "$users" "$link"; then
  "\${kubectl[@]}" annotate serviceaccount "$service_account" ${permissionAnnotation}-
fi
${linkRemoval(link)}`;
