#!/usr/bin/env bash
# Grants the Lastcall controller its permissions on Compute Engine, by Workload Identity.
# Printed by `lastcall setup gcp`. It can be run again: existing objects are updated.
#
# For instance.release: Recreate the controller needs these permissions and no others:
#   compute.instances.get: finding a machine
#   compute.instances.list: getting the launch times of machines (without it, the age of the Node object is used), and checking whether one may be deleted
#   compute.instanceGroupManagers.update: making the group recreate or delete a machine
#   compute.instanceGroupManagers.get: calling a method of the group, which reads the group first
#   compute.instanceGroupManagers.list: checking before a drain whether the release will be permitted (without it, only the release itself shows that)
#   compute.zoneOperations.get: waiting for an operation in a zone
set -euo pipefail

project='my-project-1'
role='lastcall'
namespace='lastcall'
service_account='lastcall'
permissions='compute.instances.get,compute.instances.list,compute.instanceGroupManagers.update,compute.instanceGroupManagers.get,compute.instanceGroupManagers.list,compute.zoneOperations.get'
mark='Made by lastcall setup gcp'

command -v gcloud >/dev/null || { echo "Cannot continue: gcloud is not on the PATH" >&2; exit 1; }
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

# The name of the ServiceAccount in IAM. It is the same in every cluster of the project.
number="$(gcloud projects describe "$project" --format 'value(projectNumber)')"
if [[ ! "$number" =~ ^[0-9]+$ ]]; then
  echo "Cannot continue: found $number as the number of the project $project, expected digits" >&2
  exit 1
fi
pool="projects/$number/locations/global/workloadIdentityPools/$project.svc.id.goog"
member="principal://iam.googleapis.com/$pool/subject/ns/$namespace/sa/$service_account"

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

# 2. The role for the ServiceAccount of the controller; no Google service account is needed.
grant() {
  if listed "$members" "$member with a condition"; then
    echo "Kept: the grant of $role to $member, with its condition"
    return
  fi
  gcloud projects add-iam-policy-binding "$project" --condition=None \
    --role "projects/$project/roles/$role" --member "$member" --quiet >/dev/null
}
grant

echo "Done: $namespace/$service_account has the role $role in $project."
echo "It may take a few minutes until the permissions take effect."
