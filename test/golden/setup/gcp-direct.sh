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

command -v gcloud >/dev/null || { echo "Cannot continue: gcloud is not on the PATH" >&2; exit 1; }

# Check who owns the existing resources before anything is changed.
title="$(gcloud iam roles describe "$role" --project "$project" --format 'value(title)' 2>/dev/null || echo missing)"
if [[ "$title" != missing && "$title" != Lastcall ]]; then
  echo "Cannot continue: the role $role has the title $title, expected Lastcall; this script did not create it, choose another with --role" >&2
  exit 1
fi

# 1. The role, with the permissions that the controller needs on Compute Engine and no others.
state="$(gcloud iam roles describe "$role" --project "$project" --format 'value(deleted)' 2>/dev/null \
  || echo missing)"
case "$state" in
  missing)
    gcloud iam roles create "$role" --project "$project" --title Lastcall \
      --stage GA --permissions "$permissions" --quiet
    ;;
  True)
    # The id of a deleted role stays reserved for some weeks.
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
echo "It may take a few minutes until the permissions take effect."
