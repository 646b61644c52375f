#!/usr/bin/env bash
# Gives the Lastcall controller its rights on Compute Engine, by Workload Identity.
# Made by `lastcall setup gcp`. It can be run again: existing objects are updated.
#
# For instance.release: Recreate the controller needs these permissions and no others:
#   compute.instances.get: looking a machine up
#   compute.instances.list: learning how old machines are, without it the age of the Node object counts; asking whether one may be deleted
#   compute.instanceGroupManagers.update: having the group recreate or delete a machine
#   compute.instanceGroupManagers.get: the group methods, which read the group first
#   compute.instanceGroupManagers.list: asking before a drain whether the group may be told, without it only the release itself tells
#   compute.zoneOperations.get: waiting for an operation in a zone
set -euo pipefail

project='my-project-1'
role='lastcall'
namespace='lastcall'
service_account='lastcall'
permissions='compute.instances.get,compute.instances.list,compute.instanceGroupManagers.update,compute.instanceGroupManagers.get,compute.instanceGroupManagers.list,compute.zoneOperations.get'

command -v gcloud >/dev/null || { echo "Cannot go on: gcloud is not on the PATH" >&2; exit 1; }

# Whose is what is there? Nothing is changed before that is known.
title="$(gcloud iam roles describe "$role" --project "$project" --format 'value(title)' 2>/dev/null || echo missing)"
if [[ "$title" != missing && "$title" != Lastcall ]]; then
  echo "Cannot go on: the role $role is called $title, expected Lastcall; it is not of this script, name another by --role" >&2
  exit 1
fi

# 1. The role: what the controller does on Compute Engine, and nothing else.
state="$(gcloud iam roles describe "$role" --project "$project" --format 'value(deleted)' 2>/dev/null \
  || echo missing)"
case "$state" in
  missing)
    gcloud iam roles create "$role" --project "$project" --title Lastcall \
      --stage GA --permissions "$permissions" --quiet
    ;;
  True)
    # A role that was deleted keeps its id for some weeks.
    gcloud iam roles undelete "$role" --project "$project" --quiet
    gcloud iam roles update "$role" --project "$project" --permissions "$permissions" --quiet
    ;;
  *)
    gcloud iam roles update "$role" --project "$project" --permissions "$permissions" --quiet
    ;;
esac

# 2. The role for the ServiceAccount of the controller; no Google service account is needed.
number="$(gcloud projects describe "$project" --format 'value(projectNumber)')"
pool="projects/$number/locations/global/workloadIdentityPools/$project.svc.id.goog"
member="principal://iam.googleapis.com/$pool/subject/ns/$namespace/sa/$service_account"
gcloud projects add-iam-policy-binding "$project" --condition=None \
  --role "projects/$project/roles/$role" --member "$member" --quiet >/dev/null

echo "Done: $namespace/$service_account has the role $role in $project."
echo "It may take some minutes until the permission is effective."
