#!/usr/bin/env bash
# Grants the Lastcall controller its permissions on Compute Engine, by Workload Identity.
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
cluster='main'
location='europe-west1'
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
# Reads the ServiceAccount: whether it exists, the mark of this script, and whom its annotation names.
link_look() {
  local found
  found="$("${kubectl[@]}" get serviceaccount "$service_account" --ignore-not-found \
    --output 'jsonpath={.metadata.name}|{.metadata.annotations.lastcall\.dev/identity}|{.metadata.annotations.iam\.gke\.io/gcp-service-account}')" || return
  exists="${found%%|*}"
  found="${found#*|}"
  linked_by="${found%%|*}"
  linked="${found#*|}"
}
# Ends the script if kubectl reaches another cluster than the one that has the issuer $1.
right_cluster() {
  local found form='"issuer": *"([^"]*)"'
  if ! found="$("${kubectl[@]}" get --raw /.well-known/openid-configuration)"; then
    echo "Note: it is not known whether kubectl reaches $cluster; its issuer cannot be read there" >&2
    return
  fi
  if [[ "$found" =~ $form && "${BASH_REMATCH[1]%/}" != "${1%/}" ]]; then
    echo "Cannot continue: kubectl reaches the cluster with the issuer ${BASH_REMATCH[1]}, and $cluster has $1; choose it with --context" >&2
    exit 1
  fi
}
# Some clouds compare ids without regard to case.
same() (
  shopt -s nocasematch
  [[ "$1" == "$2" ]]
)

# Only read: enabling Workload Identity would change the cluster and its nodes.
pool="$(gcloud container clusters describe "$cluster" --project "$project" --location "$location" \
  --format 'value(workloadIdentityConfig.workloadPool)')"
if [[ "$pool" != "$project.svc.id.goog" ]]; then
  echo "Cannot continue: the cluster $cluster does not use Workload Identity of $project, see docs/cloud/gcp.md" >&2
  exit 1
fi

# The installation creates the ServiceAccount; without it, nothing is changed.
link_look
if [[ -z "$exists" ]]; then
  echo "Cannot continue: the ServiceAccount $namespace/$service_account does not exist; the installation creates it: docs/running.md" >&2
  exit 1
fi
right_cluster "https://container.googleapis.com/v1/projects/$project/locations/$location/clusters/$cluster"

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

user="serviceAccount:$project.svc.id.goog[$namespace/$service_account]"
link="$user roles/iam.workloadIdentityUser"
# Who has which role over the account.
users=""
if [[ "$account_state" != missing ]]; then
  users="$(gcloud iam service-accounts get-iam-policy "$account" --project "$project" \
    --flatten 'bindings[].members' --format 'value(bindings.members,bindings.role,bindings.condition.yesno(yes="with a condition",no=""))' | words)"
fi

if [[ -n "$linked" && "$linked" != "$account" ]]; then
  echo "Cannot continue: the annotation iam.gke.io/gcp-service-account of $namespace/$service_account names $linked, expected $account; choose another ServiceAccount with --service-account, or, if nothing needs that identity anymore, remove the annotation and run this again:" >&2
  typed "${kubectl[@]}" annotate serviceaccount "$service_account" iam.gke.io/gcp-service-account- lastcall.dev/identity- >&2
  exit 1
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

# 3. The controller's ServiceAccount may impersonate it, and its annotation names it.
if [[ -z "$linked" ]]; then
  if [[ -n "$linked_by" && "$linked_by" != "$account" ]]; then
    "${kubectl[@]}" annotate serviceaccount "$service_account" lastcall.dev/identity-
  fi
  # Without --overwrite, kubectl does not replace what others have written meanwhile.
  "${kubectl[@]}" annotate serviceaccount "$service_account" "iam.gke.io/gcp-service-account=$account" \
    "lastcall.dev/identity=$account"
fi
if listed "$users" "$link with a condition"; then
  echo "Kept: the permission of $user to impersonate $account, with its condition"
elif ! listed "$users" "$link"; then
  "${kubectl[@]}" annotate serviceaccount "$service_account" --overwrite \
    "lastcall.dev/identity-permission=$account"
  gcloud iam service-accounts add-iam-policy-binding "$account" --project "$project" \
    --condition=None --role roles/iam.workloadIdentityUser --member "$user" --quiet >/dev/null
fi

echo "Done: $namespace/$service_account has the role $role in $project."
echo "It may take a few minutes until the permissions take effect."
