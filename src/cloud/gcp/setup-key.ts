/**
 * The steps of `lastcall setup gcp --key-file`: a key of the Google service account, for clusters
 * without Workload Identity. They use `kubectl`, `look`, `account` and `others` of the script.
 */
import { identityAnnotation } from "../setup/account-link.ts";
import { unfinishedNow } from "../setup/shell-script.ts";

/** The chart's default for `secret.googleServiceAccountSecret.key`. */
const keyFile = "service-account-key.json";

/**
 * Prints the account for which the Secret was created, and the id of its key; question marks for
 * what a Secret of others does not have.
 */
const ownerAndKey = [
  `{{with .metadata.annotations}}{{with index . "${identityAnnotation}"}}{{.}}{{else}}?{{end}}{{else}}?{{end}}`,
  '{{with .data}}{{with index . "key-id"}}{{base64decode .}}{{else}}?{{end}}{{else}}?{{end}}',
].join(" ");

/** Defines `secret_look`, which sets `owner` and `key`; they are empty if there is no Secret. */
const secretLook = `secret="$service_account-key"
secret_look() {
  local found
  found="$("\${kubectl[@]}" get secret "$secret" --ignore-not-found \\
    --output 'go-template=${ownerAndKey}')" || return
  owner="\${found%% *}"
  key="\${found#* }"
}
# Whether there is a Secret that others created, or that this script created for another account.
foreign() { [[ -n "$owner" && "$owner" != "$account" ]]; }`;

/** The keys that people created, one per line: without those that Google rotates itself. */
export const keysLook = `list_keys() {
  gcloud iam service-accounts keys list --iam-account "$account" --project "$project" \\
    --managed-by user --format 'value(name.basename())'
}
keys=""
if [[ "$account_state" != missing ]]; then keys="$(list_keys)"; fi`;

export const keyLook = `${secretLook}
secret_look
if foreign; then
  echo "Cannot continue: the Secret $namespace/$secret has the annotation ${identityAnnotation}=$owner, expected $account: this script did not create it for that account; choose another name with --service-account" >&2
  if [[ "$owner" == "?" ]] && listed "$keys" "$key"; then
    echo "Its key is one of $account. If this script created it, mark it and run this again:" >&2
    typed "\${kubectl[@]}" annotate secret "$secret" "${identityAnnotation}=$account" >&2
  fi
  exit 1
fi
if [[ -n "$key" ]] && ! listed "$keys" "$key"; then
  echo "Cannot continue: the Secret $namespace/$secret has the key $key, which $account does not list; if the key is new, wait a minute, otherwise run the script of --undo, and then this again" >&2
  exit 1
fi
if [[ -z "$owner" ]]; then
  # Before there is a key: whether the namespace exists, and a Secret may be created.
  "\${kubectl[@]}" create secret generic "$secret" --dry-run=server >/dev/null
fi`;

export const keyCreation = `# 3. A key of the account, in a Secret in the form that the chart reads. It never expires, and whoever
# can read the Secret has the role: prefer Workload Identity. An existing key is kept.
create_key() (
  folder="$(mktemp -d)"
  made=""
  # Without the Secret, the key would be one that nobody uses and nobody knows. An error does not tell
  # whether the Secret was created.
  clean() {
    rm -r "$folder"
    if [[ -n "$made" ]] && ! { secret_look && [[ "$key" == "$made" ]]; }; then
      gcloud iam service-accounts keys delete "$made" --iam-account "$account" \\
        --project "$project" --quiet
    fi
  }
  trap clean EXIT
  if ! gcloud iam service-accounts keys create "$folder/${keyFile}" --iam-account "$account" \\
    --project "$project" --quiet; then
    # The key may exist all the same, and nobody has it. Nothing shows who created a key.
    list_keys | while IFS= read -r one; do
      if listed "$keys" "$one"; then continue; fi
      echo "A key of $account has been created since this script began. If nobody else did that, delete it:"
      echo "gcloud iam service-accounts keys delete $one --iam-account $account --project $project --quiet"
    done
    exit 1
  fi
  if [[ ! "$(< "$folder/${keyFile}")" =~ \\"private_key_id\\":\\ *\\"([0-9a-f]+)\\" ]]; then
    echo "Cannot read the id of the new key of $account: delete the key in the console" >&2
    exit 1
  fi
  made="\${BASH_REMATCH[1]}"
  # With its mark from the start, so that an undo knows whose it is, wherever this is interrupted.
  "\${kubectl[@]}" create secret generic "$secret" "--from-literal=key-id=$made" \\
    "--from-file=${keyFile}=$folder/${keyFile}" --dry-run=client --output json |
    "\${kubectl[@]}" annotate --local --filename - --output json "${identityAnnotation}=$account" |
    "\${kubectl[@]}" create --filename -
  made=""
)
if [[ -z "$owner" ]]; then create_key; fi`;

export const keyDone = `echo "Done: the Secret $namespace/$secret has a key of $account, which has the role $role in $project."
echo "Install the chart with --set secret.googleServiceAccountSecret.name=$secret, and with policies."
echo "It may take a few minutes until the permissions take effect."`;

/**
 * The cluster is often deleted first; then the id of the key is lost with the Secret, and the
 * account's other steps name the keys that are left.
 */
export const undoKeyLook = `${secretLook}
secret_look || {
  owner=""
  key=""
  lost="kubectl failed, so the Secret $namespace/$secret is still there, unless the cluster is gone; its key is one of those named above, if any; the rest is removed"
}
if foreign; then
  keep "the Secret $namespace/$secret, which this script did not create for $account (annotation ${identityAnnotation}: $owner)"
  owner=""
  key=""
fi`;

export const undoKey = `# 1. The key, and then the Secret, which names it.
${unfinishedNow("still there, unless they never existed: the Secret $namespace/$secret, its key of $account, the grant of the account, the account, and the role $role; run this again to remove them")}
if [[ -n "$owner" ]]; then
  if listed "$keys" "$key"; then
    gcloud iam service-accounts keys delete "$key" --iam-account "$account" \\
      --project "$project" --quiet
    keys="$(others "$keys" "$key")"
  elif [[ "$account_state" != missing ]]; then
    echo "Note: $account does not list the key $key. If it was created within the last minutes, look for it again:"
    echo "gcloud iam service-accounts keys list --iam-account $account --project $project"
  fi
  "\${kubectl[@]}" delete secret "$secret"
fi`;
