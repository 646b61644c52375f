/**
 * The steps of `lastcall setup gcp --key-file`: a key of the Google service account, for clusters
 * without Workload Identity. They use `kubectl`, `look`, `account` and `others` of the script.
 */
import { unfinishedNow } from "../setup/shell-script.ts";

/** The chart's default for `secret.googleServiceAccountSecret.key`. */
const keyFile = "service-account-key.json";

/** Prints the id of the key in the Secret; of a Secret that others created, a question mark. */
const keyId =
  '{{with .data}}{{with index . "key-id"}}{{base64decode .}}{{else}}?{{end}}{{else}}?{{end}}';

const secretCall = `"\${kubectl[@]}" get secret "$secret" --ignore-not-found \\
  --output 'go-template=${keyId}'`;

/** The keys that people created, one per line: without those that Google rotates itself. */
export const keysLook = `keys=""
if [[ "$account_state" != missing ]]; then
  keys="$(gcloud iam service-accounts keys list --iam-account "$account" --project "$project" \\
    --managed-by user --format 'value(name.basename())')"
fi`;

export const keyLook = `secret="$service_account-key"
key="$(${secretCall})"
if [[ "$key" == "?" ]]; then
  echo "Cannot continue: the Secret $namespace/$secret exists, and this script did not create it; choose another name with --service-account" >&2
  exit 1
fi
if [[ -n "$key" ]] && ! listed "$keys" "$key"; then
  echo "Cannot continue: the Secret $namespace/$secret has the key $key, which $account does not have; delete the Secret, and run this again" >&2
  exit 1
fi
if [[ -z "$key" ]]; then
  # Before there is a key: whether the namespace exists, and a Secret may be created.
  "\${kubectl[@]}" create secret generic "$secret" --dry-run=server >/dev/null
fi`;

export const keyCreation = `# 3. A key of the account, in a Secret in the form that the chart reads. It never expires, and whoever
# can read the Secret has the role: prefer Workload Identity. An existing key is kept.
create_key() (
  folder="$(mktemp -d)"
  made=""
  # Without the Secret, the key would be one that nobody uses and nobody knows.
  clean() {
    rm -r "$folder"
    if [[ -n "$made" ]]; then
      gcloud iam service-accounts keys delete "$made" --iam-account "$account" \\
        --project "$project" --quiet
    fi
  }
  trap clean EXIT
  gcloud iam service-accounts keys create "$folder/${keyFile}" --iam-account "$account" \\
    --project "$project" --quiet
  if [[ ! "$(< "$folder/${keyFile}")" =~ \\"private_key_id\\":\\ *\\"([0-9a-f]+)\\" ]]; then
    echo "Cannot read the id of the new key of $account: delete the key in the console" >&2
    exit 1
  fi
  made="\${BASH_REMATCH[1]}"
  "\${kubectl[@]}" create secret generic "$secret" "--from-literal=key-id=$made" \\
    "--from-file=${keyFile}=$folder/${keyFile}"
  made=""
)
if [[ -z "$key" ]]; then create_key; fi`;

export const keyDone = `echo "Done: the Secret $namespace/$secret has a key of $account, which has the role $role in $project."
echo "Install the chart with --set secret.googleServiceAccountSecret.name=$secret, and with policies."
echo "It may take a few minutes until the permissions take effect."`;

/**
 * The cluster is often deleted first; then the id of the key is lost with the Secret, and the
 * account's other steps name the keys that are left.
 */
export const undoKeyLook = `secret="$service_account-key"
key="$(${secretCall})" || {
  key=""
  lost="kubectl failed, so the Secret $namespace/$secret is still there, unless the cluster is gone; its key is one of those named above, if any; the rest is removed"
}
if [[ "$key" == "?" ]]; then
  keep "the Secret $namespace/$secret, which this script did not create"
  key=""
fi`;

export const undoKey = `# 1. The key, and then the Secret, which names it.
${unfinishedNow("still there, unless they never existed: the Secret $namespace/$secret, its key of $account, the grant of the account, the account, and the role $role; run this again to remove them")}
if [[ -n "$key" ]]; then
  if listed "$keys" "$key"; then
    gcloud iam service-accounts keys delete "$key" --iam-account "$account" \\
      --project "$project" --quiet
    keys="$(others "$keys" "$key")"
  fi
  "\${kubectl[@]}" delete secret "$secret"
fi`;
