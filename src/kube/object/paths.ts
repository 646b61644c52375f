/** Paths and names of the resources that Lastcall reads and writes. */
export const group = "lastcall.dev";
export const apiVersion = "lastcall.dev/v1alpha1";

export const policiesPath = "/apis/lastcall.dev/v1alpha1/departurepolicies";
export const departuresPath = "/apis/lastcall.dev/v1alpha1/departures";
export const nodesPath = "/api/v1/nodes";
export const namespacesPath = "/api/v1/namespaces";
export const budgetsPath = "/apis/policy/v1/poddisruptionbudgets";
export const podsPath = "/api/v1/pods";
export const daemonSetsPath = "/apis/apps/v1/daemonsets";
export const eventsPath = "/api/v1/events";
export const attachmentsPath = "/apis/storage.k8s.io/v1/volumeattachments";

export const nodeClaimsPath = "/apis/karpenter.sh/v1/nodeclaims";
export const reviewsPath = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

export function nodePath(name: string): string {
  return `${nodesPath}/${encodeURIComponent(name)}`;
}

export function nodeClaimPath(name: string): string {
  return `${nodeClaimsPath}/${encodeURIComponent(name)}`;
}

export function departurePath(name: string): string {
  return `${departuresPath}/${encodeURIComponent(name)}`;
}

export function policyPath(name: string): string {
  return `${policiesPath}/${encodeURIComponent(name)}`;
}

export function volumePath(name: string): string {
  return `/api/v1/persistentvolumes/${encodeURIComponent(name)}`;
}
