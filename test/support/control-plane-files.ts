import { generateKeyPairSync, randomBytes } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** The clients of the API server, and the identities that it knows them by. */
const users = {
  admin: { user: "e2e-admin", groups: "system:masters" },
  "kube-controller-manager": { user: "system:kube-controller-manager", groups: "" },
  "kube-scheduler": { user: "system:kube-scheduler", groups: "" },
  // kwok acts as every kubelet at once, and no default role of a cluster allows all of that.
  kwok: { user: "kwok", groups: "system:masters" },
} as const;

export type PartUser = keyof typeof users;

export interface ControlPlaneFiles {
  readonly folder: string;
  readonly adminToken: string;
  readonly tokenFile: string;
  readonly serviceAccountKeyFile: string;
  readonly serviceAccountPublicKeyFile: string;
  /**
   * Where the API server writes its certificate, followed by that of the authority that signed it.
   */
  readonly certFolder: string;
  readonly caFile: string;
  readonly schedulerConfigFile: string;
  kubeconfigOf(user: PartUser): string;
}

/** Writes all files that the parts read at startup. The API server creates its own certificate. */
export function writeControlPlaneFiles(folder: string, url: string): ControlPlaneFiles {
  const certFolder = join(folder, "certs");
  mkdirSync(certFolder);
  const caFile = join(certFolder, "apiserver.crt");
  const tokens = writeTokens(folder);
  const kubeconfigOf = (user: PartUser) => join(folder, `${user}.kubeconfig`);
  for (const [user, token] of tokens) {
    writeKubeconfig({ file: kubeconfigOf(user), url, caFile, token, user });
  }
  const schedulerConfigFile = join(folder, "kube-scheduler.json");
  writeSecret(schedulerConfigFile, JSON.stringify(schedulerConfig(kubeconfigOf("kube-scheduler"))));
  return {
    folder,
    adminToken: tokens.get("admin") ?? "",
    tokenFile: join(folder, "tokens.csv"),
    ...writeServiceAccountKeys(folder),
    certFolder,
    caFile,
    schedulerConfigFile,
    kubeconfigOf,
  };
}

export interface KubeconfigOptions {
  readonly file: string;
  readonly url: string;
  /** The authority of a server that uses TLS. */
  readonly caFile?: string;
  readonly token: string;
  readonly user: string;
}

/** JSON, because every JSON text is also YAML. */
export function writeKubeconfig({ file, url, caFile, token, user }: KubeconfigOptions): void {
  const authority = caFile === undefined ? {} : { "certificate-authority": caFile };
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "e2e", cluster: { server: url, ...authority } }],
    users: [{ name: user, user: { token } }],
    contexts: [{ name: "e2e", context: { cluster: "e2e", user } }],
    "current-context": "e2e",
  };
  writeSecret(file, JSON.stringify(config, null, 2));
}

function writeTokens(folder: string): Map<PartUser, string> {
  const tokens = new Map<PartUser, string>();
  const lines = Object.entries(users).map(([name, { user, groups }]) => {
    const token = randomBytes(24).toString("hex");
    tokens.set(name as PartUser, token);
    return `${token},${user},${name},"${groups}"`;
  });
  writeSecret(join(folder, "tokens.csv"), `${lines.join("\n")}\n`);
  return tokens;
}

function writeServiceAccountKeys(folder: string) {
  const pair = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const serviceAccountKeyFile = join(folder, "service-account.key");
  const serviceAccountPublicKeyFile = join(folder, "service-account.pub");
  writeSecret(serviceAccountKeyFile, pair.privateKey.export({ type: "pkcs8", format: "pem" }));
  writeSecret(serviceAccountPublicKeyFile, pair.publicKey.export({ type: "spki", format: "pem" }));
  return { serviceAccountKeyFile, serviceAccountPublicKeyFile };
}

/** The scheduler reads its request rate only from a file; its default places 25 pods a second. */
function schedulerConfig(kubeconfig: string): object {
  return {
    apiVersion: "kubescheduler.config.k8s.io/v1",
    kind: "KubeSchedulerConfiguration",
    clientConnection: { kubeconfig, qps: 1000, burst: 2000 },
    leaderElection: { leaderElect: false },
  };
}

function writeSecret(file: string, content: string | Buffer): void {
  writeFileSync(file, content, { mode: 0o600 });
}
