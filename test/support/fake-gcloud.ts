import { fakeKubectl } from "./fake-kubectl.ts";
import { type FakeTools, makeFakeTools } from "./fake-tools.ts";

/** The things that can exist in a fake Google Cloud project, stored as files. */
export type Standing =
  | "role"
  | "role-deleted"
  | "role-description"
  | "account"
  | "account-description"
  | "other-roles"
  | "grant"
  | "binding"
  | "service-account"
  | `annotation-${string}`
  | "issuer"
  | "issuer-refused"
  | "workload-pool"
  | "clusters"
  | "silent-zone"
  | "elsewhere"
  | "assets-refused"
  | "cluster-gone"
  | "slow-account"
  | "keys"
  | "secret"
  | "secret-refused";

/** The description of what the script creates. */
export const fakeMark = "Made by lastcall setup gcp";

/** A key of an account, as the console shows it. */
export const fakeKeyId = "8a3f0c5e9d7b41620f8e2c6a1b5d9e3f7a0c4b82";

// Errors have the form of gcloud's, which exits with 1 for all: the group and the command, and the
// status of the API. A grant of the role and a binding of the account are lists of members, one a
// line; after a tab, "with a condition" if it has one, before that for an account another role than
// roles/iam.workloadIdentityUser. Bindings with another condition are other bindings. The index of
// the Cloud Asset API also lists the project's own policy, as it was before.
const gcloud = `
absent() { echo "ERROR: (gcloud.$1) NOT_FOUND: $2" >&2; exit 1; }
bound() { has "$1" && [[ $'\\n'"$(get "$1")"$'\\n' == *$'\\n'"$2"$'\\n'* ]]; }
bind() { if ! has "$1"; then put "$1" "$2"; elif ! bound "$1" "$2"; then put "$1" "$(get "$1")"$'\\n'"$2"; fi; }
unbind() {
  bound "$1" "$2" || refuse "no such binding"
  local one rest=""
  while read -r one; do [[ "$one" == "$2" ]] || rest+="\${rest:+$'\\n'}$one"; done <<< "$(get "$1")"
  if [[ -z "$rest" ]]; then drop "$1"; else put "$1" "$rest"; fi
}
# Irrespective of conditions.
unbind_all() {
  local one found=""
  while read -r one; do
    if [[ "$one" == "$2" || "$one" == "$2"$'\\t'*"with a condition" ]]; then unbind "$1" "$one"; found=1; fi
  done <<< "$(get "$1")"
  [[ -n "$found" ]] || refuse "no such binding"
}
# The members of $1, with the default $2 for their role: after them, or as the first column.
columns() {
  local who role condition
  has "$1" || return 0
  while IFS=$'\\t' read -r who role condition; do
    if [[ "$role" == with* ]]; then condition="$role"; role=""; fi
    role="\${role:-\${2-}}"
    if [[ -n "\${3-}" ]]; then printf '%s\\t%s\\n' "$role" "$who"
    elif [[ -n "\${2-}" ]]; then printf '%s\\t%s\\t%s\\n' "$who" "$role" "$condition"
    else printf '%s\\t%s\\n' "$who" "$condition"; fi
  done <<< "$(get "$1")"
}
case "$1 $2 $3" in
  "iam roles describe")
    has role || absent iam.roles.describe "The role named projects/my-project-1/roles/$4 was not found."
    case "$(flag --format)" in
      'value(description)') if has role-description; then get role-description; else echo '${fakeMark}'; fi ;;
      'value(deleted)') ! has role-deleted || echo True ;;
    esac ;;
  "iam roles delete") has role || refuse "no such role"; put role-deleted ;;
  "iam roles create") ! has role || refuse "the role exists already"; put role ;;
  "iam roles undelete") has role-deleted || refuse "it is not deleted"; mv "$here/has-role-deleted" "$here/was" ;;
  "iam roles update") has role || refuse "no such role"; ! has role-deleted || refuse "it is deleted" ;;
  "iam service-accounts describe")
    has account || absent iam.service-accounts.describe "Unknown service account."
    if has account-description; then get account-description; else echo '${fakeMark}'; fi ;;
  "iam service-accounts keys")
    has account || refuse "no such account"
    case "$4" in
      list) ! has keys || get keys ;;
      create) echo '{"type": "service_account", "private_key_id": "${fakeKeyId}"}' > "$5"; bind keys ${fakeKeyId} ;;
      delete) unbind keys "$5" ;;
    esac ;;
  "iam service-accounts delete") has account || refuse "no such account"; drop account; ! has binding || drop binding ;;
  "projects get-iam-policy "*)
    if [[ "$line" == *'|--filter|'* ]]; then columns grant; exit; fi
    columns grant projects/my-project-1/roles/lastcall first
    ! has other-roles || get other-roles ;;
  "asset search-all-iam-policies "*)
    ! has assets-refused || absent asset.search-all-iam-policies "$(get assets-refused)"
    while IFS=$'\\t' read -r one; do
      printf '%s\\t%s\\t%s\\n' projects/my-project-1/roles/lastcall //cloudresourcemanager.googleapis.com/projects/my-project-1 "$one"
    done < <([[ ! -e "$here/grant-before" ]] || printf '%s\\n' "$(< "$here/grant-before")")
    ! has elsewhere || get elsewhere ;;
  "projects remove-iam-policy-binding "*)
    get grant > "$here/grant-before"
    if [[ "$line" == *'|--all|'* ]]; then unbind_all grant "$(flag --member)"
    else unbind grant "$(flag --member)"; fi ;;
  "iam service-accounts create") ! has account || refuse "the account exists already"; put account ;;
  "projects describe "*) echo 601024681890 ;;
  "container clusters list")
    while IFS=' ' read -r one pool; do
      if [[ -z "$pool" ]]; then pool=my-project-1.svc.id.goog; fi
      printf '%s\\t%s\\t%s\\n' "\${one%/*}" "\${one#*/}" "\${pool#none}"
    done < <(! has clusters || get clusters)
    ! has silent-zone || get silent-zone >&2 ;;
  "container clusters describe") ! has workload-pool || echo "$6.svc.id.goog" ;;
  "projects add-iam-policy-binding "*)
    if has slow-account; then mv "$here/has-slow-account" "$here/was"; refuse "no such account yet"; fi
    bind grant "$(flag --member)" ;;
  "iam service-accounts add-iam-policy-binding")
    has account || refuse "no such account"; bind binding "$(flag --member)" ;;
  "iam service-accounts get-iam-policy")
    has account || refuse "no such account"; columns binding roles/iam.workloadIdentityUser ;;
  "iam service-accounts remove-iam-policy-binding")
    if [[ "$line" == *'|--all|'* ]]; then unbind_all binding "$(flag --member)"
    else unbind binding "$(flag --member)"; fi ;;
  *) refuse "no such command: $*" ;;
esac
`;

/** A gcloud and a kubectl that record their calls and respond as for a small fake project. */
export function makeFakeGcloud(): FakeTools<Standing> {
  return makeFakeTools({ gcloud, kubectl: fakeKubectl });
}
