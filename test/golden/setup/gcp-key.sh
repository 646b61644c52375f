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

keys=""
if [[ "$account_state" != missing ]]; then
  keys="$(gcloud iam service-accounts keys list --iam-account "$account" --project "$project" \
    --managed-by user --format 'value(name.basename())')"
fi

secret="$service_account-key"
key="$("${kubectl[@]}" get secret "$secret" --ignore-not-found \
  --output 'go-template={{with .data}}{{with index . "key-id"}}{{base64decode .}}{{else}}?{{end}}{{else}}?{{end}}')"
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
  "${kubectl[@]}" create secret generic "$secret" --dry-run=server >/dev/null
fi

members="$(holders)"

unfinished="what was created so far is kept; run this again to complete it, or the script of --undo to remove it"

# 1. The role, with the permissions that the controller needs on Compute Engine and no others.
deleted="$(look iam roles describe "$role" --project "$project" --format 'value(deleted)')"
case "$deleted" in
  missing)
    gcloud iam roles create "$role" --project "$project" --title Lastcall \
      --description "$mark" --stage GA --permissions "$permissions" --quiet
    ;;
  True)
    # The id of a deleted role stays reserved for some weeks.
    gcloud iam roles undelete "$role" --project "$project" --quiet
    gcloud iam roles update "$role" --project "$project" --permissions "$permissions" --quiet
    ;;
  *)
    rest="$(others "$members" "$member")"
    rest="$(others "$rest" "$member with a condition")"
    if [[ -n "$rest" ]]; then
      echo "Others have the role $role, too, so it keeps the permissions that it has:"
      echo "$rest"
      gcloud iam roles update "$role" --project "$project" --add-permissions "$permissions" --quiet
    else
      gcloud iam roles update "$role" --project "$project" --permissions "$permissions" --quiet
    fi
    ;;
esac

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
  # Without the Secret, the key would be one that nobody uses and nobody knows.
  clean() {
    rm -r "$folder"
    if [[ -n "$made" ]]; then
      gcloud iam service-accounts keys delete "$made" --iam-account "$account" \
        --project "$project" --quiet
    fi
  }
  trap clean EXIT
  gcloud iam service-accounts keys create "$folder/service-account-key.json" --iam-account "$account" \
    --project "$project" --quiet
  if [[ ! "$(< "$folder/service-account-key.json")" =~ \"private_key_id\":\ *\"([0-9a-f]+)\" ]]; then
    echo "Cannot read the id of the new key of $account: delete the key in the console" >&2
    exit 1
  fi
  made="${BASH_REMATCH[1]}"
  "${kubectl[@]}" create secret generic "$secret" "--from-literal=key-id=$made" \
    "--from-file=service-account-key.json=$folder/service-account-key.json"
  made=""
)
if [[ -z "$key" ]]; then create_key; fi

echo "Done: the Secret $namespace/$secret has a key of $account, which has the role $role in $project."
echo "Install the chart with --set secret.googleServiceAccountSecret.name=$secret, and with policies."
echo "It may take a few minutes until the permissions take effect."
