#!/usr/bin/env bash
# Grants the Lastcall controller its permissions on Compute Engine, by a key of a Google service account.
# Printed by `lastcall setup gcp`. It can be run again: existing objects are updated.
#
# For instance.release: DeleteInstance the controller needs these permissions and no others:
#   compute.instances.get: finding a machine
#   compute.instances.list: getting the launch times of machines (without it, the age of the Node object is used), and checking whether one may be deleted
#   compute.instances.delete: deleting a machine without its group
#   compute.zoneOperations.get: waiting for an operation in a zone
#   compute.zoneOperations.list: polling for preemptions (--gcp-preemption-poll), and nothing else
set -euo pipefail

project='my-project-1'
role='lastcall.shop'
namespace='lastcall'
service_account='lastcall'
google_service_account='lastcall-shop'
permissions='compute.instances.get,compute.instances.list,compute.instances.delete,compute.zoneOperations.get,compute.zoneOperations.list'
mark='Made by lastcall setup gcp'

command -v gcloud >/dev/null || { echo "Cannot continue: gcloud is not on the PATH" >&2; exit 1; }
command -v kubectl >/dev/null || { echo "Cannot continue: kubectl is not on the PATH" >&2; exit 1; }
lost=""
unfinished="nothing was changed"
trap 'if [[ $? != 0 ]]; then echo "Not finished: $unfinished" >&2; fi' EXIT

# Prints the response of gcloud, or "missing" if it says that there is no such resource. Any other error ends the script.
look() {
  local answer attempt status
  for attempt in 1 2 3; do
    if answer="$(gcloud "$@" 2>/dev/null)"; then
      echo "$answer"
      return
    fi
    # Repeat the call to capture its error. If it succeeds now, start over.
    status=0
    answer="$(gcloud "$@" 2>&1 >/dev/null)" || status=$?
    if [[ "$status" != 0 ]]; then break; fi
  done
  if [[ "$status" == 1 && "$answer" =~ "ERROR: (gcloud."[a-z.-]+") NOT_FOUND: " ]]; then
    echo missing
    return
  fi
  echo "Cannot tell what exists: gcloud $1 $2 $3 failed: $answer" >&2
  return 1
}

kubectl=(kubectl --kubeconfig '/home/me/my kube/config' --context 'it'\''s mine' --namespace "$namespace")
typed() {
  printf '%q ' "$@"
  echo
}

# Check who owns the existing resources before anything is changed.
found="$(look iam roles describe "$role" --project "$project" --format 'value(description)')"
if [[ "$found" != missing && "$found" != "$mark" ]]; then
  echo "Cannot continue: the role $role has the description '$found', expected '$mark'; this script did not create it, choose another with --role" >&2
  exit 1
fi

# Prints the members of the role, one per line; after some of them, "with a condition".
holders() {
  gcloud projects get-iam-policy "$project" --flatten 'bindings[].members' \
    --filter "bindings.role=projects/$project/roles/$role" \
    --format 'value(bindings.members,bindings.condition.yesno(yes="with a condition",no=""))' | words
}
# Puts a space between the columns of gcloud, some of which are empty.
words() {
  local one two three
  while IFS=$'\t' read -r one two three; do echo "$one${two:+ $two}${three:+ $three}"; done
}
# Prints the members of the list $1 other than $2. Those that are deleted use nothing anymore.
others() {
  local one
  while IFS= read -r one; do
    if [[ -n "$one" && "$one" != "$2" && "$one" != deleted:* ]]; then echo "$one"; fi
  done <<< "$1"
}
listed() { [[ $'\n'"$1"$'\n' == *$'\n'"$2"$'\n'* ]]; }

account="$google_service_account@$project.iam.gserviceaccount.com"
member="serviceAccount:$account"
account_state="$(look iam service-accounts describe "$account" --project "$project" \
  --format 'value(description)')"

list_keys() {
  gcloud iam service-accounts keys list --iam-account "$account" --project "$project" \
    --managed-by user --format 'value(name.basename())'
}
keys=""
if [[ "$account_state" != missing ]]; then keys="$(list_keys)"; fi

secret="$service_account-key"
secret_look() {
  local found
  found="$("${kubectl[@]}" get secret "$secret" --ignore-not-found \
    --output 'go-template={{with .metadata.annotations}}{{with index . "lastcall.dev/identity"}}{{.}}{{else}}?{{end}}{{else}}?{{end}} {{with .data}}{{with index . "key-id"}}{{base64decode .}}{{else}}?{{end}}{{else}}?{{end}}')" || return
  owner="${found%% *}"
  key="${found#* }"
}
# Whether there is a Secret that others created, or that this script created for another account.
foreign() { [[ -n "$owner" && "$owner" != "$account" ]]; }
secret_look
if foreign; then
  echo "Cannot continue: the Secret $namespace/$secret has the annotation lastcall.dev/identity=$owner, expected $account: this script did not create it for that account; choose another name with --service-account" >&2
  if [[ "$owner" == "?" ]] && listed "$keys" "$key"; then
    echo "Its key is one of $account. If this script created it, mark it and run this again:" >&2
    typed "${kubectl[@]}" annotate secret "$secret" "lastcall.dev/identity=$account" >&2
  fi
  exit 1
fi
if [[ -n "$key" ]] && ! listed "$keys" "$key"; then
  echo "Cannot continue: the Secret $namespace/$secret has the key $key, which $account does not list; if the key is new, wait a minute, otherwise run the script of --undo, and then this again" >&2
  exit 1
fi
if [[ -z "$owner" ]]; then
  # Before there is a key: whether the namespace exists, and a Secret may be created.
  "${kubectl[@]}" create secret generic "$secret" --dry-run=server >/dev/null
fi

members="$(holders)"

unfinished="what was created so far is kept; run this again to complete it, or the script of --undo to remove it"

# 1. The role, with the permissions that the controller needs on Compute Engine and no others.
deleted="$(look iam roles describe "$role" --project "$project" --format 'value(deleted)')"
if [[ "$deleted" == missing ]]; then
  gcloud iam roles create "$role" --project "$project" --title Lastcall \
    --description "$mark" --stage GA --permissions "$permissions" --quiet
else
  # The id of a deleted role stays reserved for some weeks, and others get back what they had by it.
  if [[ "$deleted" == True ]]; then
    gcloud iam roles undelete "$role" --project "$project" --quiet
  fi
  rest="$(others "$members" "$member")"
  rest="$(others "$rest" "$member with a condition")"
  how=--permissions
  if [[ -n "$rest" ]]; then
    echo "Others have the role $role, too, so it keeps the permissions that it has:"
    echo "$rest"
    how=--add-permissions
  fi
  gcloud iam roles update "$role" --project "$project" "$how" "$permissions" --quiet
fi

# 2. A Google service account, with the role.
if [[ "$account_state" == missing ]]; then
  gcloud iam service-accounts create "$google_service_account" --project "$project" \
    --display-name Lastcall --description "$mark" --quiet
fi
grant() {
  if listed "$members" "$member with a condition"; then
    echo "Kept: the grant of $role to $member, with its condition"
    return
  fi
  gcloud projects add-iam-policy-binding "$project" --condition=None \
    --role "projects/$project/roles/$role" --member "$member" --quiet >/dev/null
}
# A new account is not visible everywhere at once.
for attempt in 1 2 3 4 5; do
  if grant; then break; fi
  if [[ "$attempt" == 5 ]]; then echo "Cannot grant the role to $account" >&2; exit 1; fi
  sleep "$attempt"
done

# 3. A key of the account, in a Secret in the form that the chart reads. It never expires, and whoever
# can read the Secret has the role: prefer Workload Identity. An existing key is kept.
create_key() (
  folder="$(mktemp -d)"
  made=""
  # Without the Secret, the key would be one that nobody uses and nobody knows. An error does not tell
  # whether the Secret was created.
  clean() {
    rm -r "$folder"
    if [[ -n "$made" ]] && ! { secret_look && [[ "$key" == "$made" ]]; }; then
      gcloud iam service-accounts keys delete "$made" --iam-account "$account" \
        --project "$project" --quiet
    fi
  }
  trap clean EXIT
  if ! gcloud iam service-accounts keys create "$folder/service-account-key.json" --iam-account "$account" \
    --project "$project" --quiet; then
    # The key may exist all the same, and nobody has it. Nothing shows who created a key.
    list_keys | while IFS= read -r one; do
      if listed "$keys" "$one"; then continue; fi
      echo "A key of $account has been created since this script began. If nobody else did that, delete it:"
      echo "gcloud iam service-accounts keys delete $one --iam-account $account --project $project --quiet"
    done
    exit 1
  fi
  if [[ ! "$(< "$folder/service-account-key.json")" =~ \"private_key_id\":\ *\"([0-9a-f]+)\" ]]; then
    echo "Cannot read the id of the new key of $account: delete the key in the console" >&2
    exit 1
  fi
  made="${BASH_REMATCH[1]}"
  # With its mark from the start, so that an undo knows whose it is, wherever this is interrupted.
  "${kubectl[@]}" create secret generic "$secret" "--from-literal=key-id=$made" \
    "--from-file=service-account-key.json=$folder/service-account-key.json" --dry-run=client --output json |
    "${kubectl[@]}" annotate --local --filename - --output json "lastcall.dev/identity=$account" |
    "${kubectl[@]}" create --filename -
  made=""
)
if [[ -z "$owner" ]]; then create_key; fi

echo "Done: the Secret $namespace/$secret has a key of $account, which has the role $role in $project."
echo "Install the chart with --set secret.googleServiceAccountSecret.name=$secret, and with policies."
echo "It may take a few minutes until the permissions take effect."
