import { didYouMean } from "../../config/problem.ts";
import type { KubeApi } from "../../contracts/kube-api.ts";
import { isLastcallError, LastcallError } from "../../errors.ts";
import { namespacesPath } from "../../kube/object/api-call.ts";
import { listAll } from "../../kube/watch/collection.ts";

/**
 * Throws NOT_FOUND if the namespace does not exist: the API server lists nothing of one, as of one
 * that is empty. A namespace that the caller may not read is not missing.
 */
export async function checkNamespace(
  namespace: string,
  { api, signal }: { readonly api: KubeApi; readonly signal?: AbortSignal | undefined },
): Promise<void> {
  const path = `${namespacesPath}/${namespace}`;
  const { status } = await api.send({ method: "GET", path, signal });
  if (status !== 404) return;
  const near = didYouMean(namespace, await namesOf(api));
  const hint = near === undefined ? "" : ` (did you mean ${near}?)`;
  throw new LastcallError(
    "NOT_FOUND",
    `Cannot audit: the namespace ${namespace} does not exist${hint}, list them with: kubectl get namespaces`,
  );
}

/** None if they may not be listed: the hint is the least of it. */
async function namesOf(api: KubeApi): Promise<readonly string[]> {
  try {
    const found = await listAll(api, namespacesPath);
    return found.flatMap(({ metadata }) => metadata?.name ?? []);
  } catch (error) {
    if (!isLastcallError(error)) throw error;
    return [];
  }
}
