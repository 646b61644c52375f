/** Why the API server does not do what it is asked. */
export const englishApi = {
  Unauthorized:
    "Cannot {verb} {object}: the API server rejected the credentials ({detail}), check the kubeconfig or the service account",
  Forbidden: "Cannot {verb} {object}: forbidden ({detail}), grant {right}",
  NotInstalled:
    "Cannot {verb} {object}: it is not installed (run: lastcall setup crds --apply), expected the custom resource definition {resource}",
  NotServed:
    "Cannot {verb} {object}: the API server does not serve it, expected the custom resource definition {resource}",
  NoDrainPlan: "Cannot {verb} {object}: it is forbidden, and without it no drain plan can be shown",
} as const;

/** What a request does, within other sentences. */
export const englishVerb = {
  Get: "get",
  List: "list",
  Watch: "watch",
  Create: "create",
  Update: "update",
  Patch: "patch",
  Delete: "delete",
} as const;
