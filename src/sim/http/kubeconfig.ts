/** A kubeconfig, as JSON, which is YAML too, for the model cluster at `url`. */
export function kubeconfigOf(url: string): string {
  const name = "lastcall-model";
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name, cluster: { server: url } }],
    users: [{ name, user: {} }],
    contexts: [{ name, context: { cluster: name, user: name, namespace: "default" } }],
    "current-context": name,
  };
  return `${JSON.stringify(config, undefined, 2)}\n`;
}
