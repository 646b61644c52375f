import { accessSync, constants, readFileSync } from "node:fs";
import type { RequestOptions } from "node:https";
import { dirname, resolve } from "node:path";
// The only import of the package, and only in this module: its index loads every generated API (90
// MiB resident after bundling instead of 77).
import { KubeConfig } from "@kubernetes/client-node/dist/config.js";
import { readYaml } from "../../config/yaml-text.ts";
import { LastcallError, messageOf } from "../../errors.ts";
import type { KubeAccess, KubeCredentials } from "./kube-access.ts";

export interface KubeconfigSource {
  /**
   * Existing files, merged as kubectl does: the first of two entries with the same name takes
   * precedence.
   */
  readonly files: readonly string[];
  readonly context?: string | undefined;
}

type Cluster = KubeConfig["clusters"][number];
type Context = KubeConfig["contexts"][number];

/** KubeConfig omits `tokenFile`, and passes on the users that it is given. */
type User = KubeConfig["users"][number] & { readonly tokenFile?: string | undefined };

/** The user name for a context that has none. */
const nobody = "";

/** The access that one context of a kubeconfig gives. Throws `KUBECONFIG_INVALID`. */
export async function kubeconfigAccess(source: KubeconfigSource): Promise<KubeAccess> {
  let config = readConfig(source);
  const { cluster, context } = currentOf(config, source);
  return {
    server: cluster.server,
    context: context.name,
    namespace: context.namespace,
    credentials: () => credentialsOf(config, source),
    reload: async () => {
      config = readConfig(source);
    },
  };
}

/**
 * Reads and checks files, context, cluster and user. The result has empty caches of tokens and
 * plugins.
 */
function readConfig(source: KubeconfigSource): KubeConfig {
  const merged = mergeConfigs(source.files.map(readFile));
  const config = new KubeConfig();
  config.loadFromOptions({
    ...merged,
    currentContext: source.context ?? merged.currentContext,
  });
  const { cluster, context } = currentOf(config, source);
  checkUser(config, context, source);
  checkReadable(cluster.caFile, `clusters ${cluster.name}: certificate-authority`, source);
  return config;
}

function readFile(file: string): KubeConfig {
  const config = new KubeConfig();
  try {
    const text = readFileSync(file, "utf8");
    // The parser's own words for it are about documents.
    if (text.trim() === "") throw new Error("it is empty");
    config.loadFromString(text);
    config.makePathsAbsolute(dirname(file));
    const tokenFiles = tokenFilesIn(text);
    config.users = config.users.map((user, at): User => {
      const tokenFile = tokenFiles[at];
      return tokenFile ? { ...user, tokenFile: resolve(dirname(file), tokenFile) } : user;
    });
  } catch (error) {
    throw invalid(file, unreadableBy(error), "a readable kubeconfig", error);
  }
  return config;
}

/** The `tokenFile` of each user, in their order. The text is a valid kubeconfig. */
function tokenFilesIn(text: string): readonly (string | undefined)[] {
  const root = readYaml(text).documents[0]?.value as {
    readonly users?: readonly { readonly user?: { readonly tokenFile?: unknown } | null }[] | null;
  };
  return (root?.users ?? []).map(({ user }) =>
    typeof user?.tokenFile === "string" ? user.tokenFile : undefined,
  );
}

function unreadableBy(error: unknown): string {
  if (error instanceof TypeError) return "it is not a kubeconfig";
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code === "ENOENT") return "there is no such file";
  return code === "EISDIR" ? "it is a directory" : firstLine(error);
}

function mergeConfigs(configs: readonly KubeConfig[]) {
  const users = configs.flatMap((config) => config.users);
  return {
    clusters: firstOfEachName(configs.flatMap((config) => config.clusters)).map(allowPlainHttp),
    users: [...firstOfEachName(users), { name: nobody }],
    contexts: firstOfEachName(configs.flatMap((config) => config.contexts)).map(nameSomebody),
    currentContext: configs.map((config) => config.currentContext).find((name) => Boolean(name)),
  };
}

/**
 * KubeConfig rejects plain HTTP unless verification is off; here there is no certificate to verify.
 */
function allowPlainHttp(cluster: Cluster): Cluster {
  return cluster.server.startsWith("http:") ? { ...cluster, skipTLSVerify: true } : cluster;
}

/** A context without a user is anonymous; KubeConfig would omit the CA along with the user. */
function nameSomebody(context: Context): Context {
  return context.user ? context : { ...context, user: nobody };
}

function firstOfEachName<T extends { readonly name: string }>(entries: readonly T[]): T[] {
  const seen = new Set<string>();
  return entries.filter((entry) => !seen.has(entry.name) && seen.add(entry.name));
}

function currentOf(
  config: KubeConfig,
  source: KubeconfigSource,
): { cluster: Cluster; context: Context } {
  const files = source.files.join(", ");
  const name = config.currentContext;
  if (!name) throw invalid(files, "current-context is not set", "one, or --context");
  const context = config.contexts.find((entry) => entry.name === name);
  if (context === undefined) {
    const known = config.contexts.map((entry) => entry.name).join(", ") || "none at all";
    throw invalid(files, `it has no context ${name}`, `one of its contexts (${known})`);
  }
  const cluster = config.clusters.find((entry) => entry.name === context.cluster);
  if (cluster === undefined) {
    throw invalid(
      files,
      `context ${name} names the cluster ${context.cluster}`,
      "one that is in it",
    );
  }
  if (!/^https?:\/\/[^/]/.test(cluster.server)) {
    throw invalid(files, `clusters ${cluster.name}: server is ${cluster.server}`, "an http(s) URL");
  }
  return { cluster, context };
}

function checkUser(config: KubeConfig, context: Context, source: KubeconfigSource): void {
  const user = config.users.find((entry) => entry.name === context.user);
  if (user === undefined) {
    const found = `context ${context.name} names the user ${context.user}`;
    throw invalid(source.files.join(", "), found, "one that is in it");
  }
  checkReadable(user.certFile, `users ${user.name}: client-certificate`, source);
  checkReadable(user.keyFile, `users ${user.name}: client-key`, source);
  tokenInFile(user, source);
}

function checkReadable(file: string | undefined, field: string, source: KubeconfigSource): void {
  if (!file) return;
  try {
    accessSync(file, constants.R_OK);
  } catch (error) {
    const found = `${field} names ${file}, which cannot be read`;
    throw invalid(source.files.join(", "), found, "a readable file", error);
  }
}

/**
 * As in kubectl, it takes precedence over the user's `token`, which is used as long as the file has
 * none.
 */
function tokenInFile(
  { name, token, tokenFile }: User,
  source: KubeconfigSource,
): string | undefined {
  if (tokenFile === undefined) return undefined;
  const found = `users ${name}: tokenFile names ${tokenFile}, which`;
  const files = source.files.join(", ");
  let read: string;
  try {
    read = readFileSync(tokenFile, "utf8").trim();
  } catch (error) {
    if (token) return undefined;
    throw invalid(files, `${found} cannot be read`, "a readable file", error);
  }
  if (read === "" && !token) throw invalid(files, `${found} is empty`, "a token");
  return read || undefined;
}

/** Runs the plugin or calls the identity provider when due; KubeConfig caches the result. */
async function credentialsOf(
  config: KubeConfig,
  source: KubeconfigSource,
): Promise<KubeCredentials> {
  const options: RequestOptions = {};
  const user = config.getCurrentUser();
  try {
    await config.applyToHTTPSOptions(options);
  } catch (error) {
    const problem = missingPlugin(user?.exec, error) ?? {
      found: firstLine(error),
      wanted: "a working plugin or identity provider",
    };
    throw new LastcallError(
      "API_UNAUTHORIZED",
      `Cannot get credentials of the user ${user?.name} in ${source.files.join(", ")}: ${problem.found}, expected ${problem.wanted}`,
      { cause: error, retryable: true },
    );
  }
  const token = user === null ? undefined : tokenInFile(user, source);
  if (token !== undefined) {
    options.headers = { ...options.headers, Authorization: `Bearer ${token}` };
  }
  return toCredentials(options, config.getCurrentCluster()?.proxyUrl);
}

/** What a kubeconfig of GKE or EKS most often lacks: the program that it names. */
function missingPlugin(
  exec: { readonly command?: string; readonly installHint?: string } | undefined,
  error: unknown,
): { readonly found: string; readonly wanted: string } | undefined {
  if (exec?.command === undefined) return undefined;
  if (!messageOf(error).includes(`spawn ${exec.command} ENOENT`)) return undefined;
  const hint = exec.installHint?.trim().replaceAll(/\s+/g, " ");
  const found = `its plugin ${exec.command} is not installed`;
  return { found, wanted: `it on the PATH${hint ? ` (${hint})` : ""}` };
}

function toCredentials(options: RequestOptions, proxyUrl: string | undefined): KubeCredentials {
  const { ca, cert, key, servername, rejectUnauthorized } = options;
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(options.headers ?? {})) {
    if (value !== undefined) headers[name.toLowerCase()] = String(value).trim();
  }
  return {
    headers,
    auth: options.auth ?? undefined,
    tls: {
      ca: ca as Buffer | undefined,
      cert: cert as Buffer | undefined,
      key: key as Buffer | undefined,
      servername,
      rejectUnauthorized,
    },
    proxyAgent: proxyUrl && typeof options.agent === "object" ? options.agent : undefined,
  };
}

function firstLine(error: unknown): string {
  return messageOf(error).trim().split("\n", 1)[0] ?? "";
}

function invalid(files: string, found: string, wanted: string, cause?: unknown): LastcallError {
  return new LastcallError(
    "KUBECONFIG_INVALID",
    `Cannot use the kubeconfig ${files}: ${found}, expected ${wanted}`,
    { cause },
  );
}
