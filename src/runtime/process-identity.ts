import { readFileSync, readlinkSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { LastcallError, messageOf } from "../errors.ts";

/**
 * The identity of this process as the holder of a lease: the pod's name, if there is one, so that a
 * container restarted in its pod takes its own lease back at once; otherwise host, boot, pid
 * namespace, pid and start of the process, so that a later process on the host can tell whether it
 * still runs.
 */
export function processIdentity(podName: string | undefined): string {
  if (podName !== undefined && podName !== "") return podName;
  return [...place(), process.pid, startOf(process.pid) ?? "0"].join("_");
}

/**
 * Whether the process behind a lease's identity has certainly ended: it ran on this host in this
 * pid namespace, and no process with its pid and start exists. In doubt, it counts as alive.
 */
export function holderIsDead(identity: string): boolean {
  const parts = identity.split("_");
  const [pid, start] = parts.slice(-2);
  if (pid === undefined || start === undefined || !/^\d+$/.test(pid) || !/^[1-9]\d*$/.test(start)) {
    return false;
  }
  if (parts.slice(0, -2).join("_") !== place().join("_")) return false;
  return startOf(Number(pid)) !== start;
}

/** On Linux, the boot and the pid namespace besides the host name; elsewhere nothing is certain. */
function place(): string[] {
  return [
    hostname().replaceAll("_", "-"),
    readOr("/proc/sys/kernel/random/boot_id", "").trim().slice(0, 8),
    linkOr("/proc/self/ns/pid", "").replaceAll(/\D/g, ""),
  ];
}

/** Clock ticks from boot to the start of a process: field 22 of its stat, after the name. */
function startOf(pid: number): string | undefined {
  const stat = readOr(`/proc/${pid}/stat`, "");
  return stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .at(19);
}

function readOr(path: string, otherwise: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return otherwise;
  }
}

function linkOr(path: string, otherwise: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return otherwise;
  }
}

const accountFolder = "/var/run/secrets/kubernetes.io/serviceaccount";

const bootIdFile = "/proc/sys/kernel/random/boot_id";

/** The API server's address, which the kubelet sets in every pod; undefined outside a cluster. */
export function apiServerOf(env: Readonly<Record<string, string | undefined>>): string | undefined {
  const host = env.KUBERNETES_SERVICE_HOST;
  const port = env.KUBERNETES_SERVICE_PORT;
  if (!host || !port) return undefined;
  return `https://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/**
 * Reads the pod's own token. Not cached, because the kubelet replaces it about every hour. Throws
 * KUBECONFIG_INVALID.
 */
export async function readAccountToken(folder: string = accountFolder): Promise<string> {
  const path = `${folder}/token`;
  try {
    const token = (await readFile(path, "utf8")).trim();
    if (token !== "") return token;
  } catch (error) {
    throw unreadableToken(path, messageOf(error));
  }
  throw unreadableToken(path, "it is empty");
}

/** The machine's boot id, which the kubelet reports as `status.nodeInfo.bootID`; Linux only. */
export async function readBootId(path: string = bootIdFile): Promise<string | undefined> {
  const text = await readFile(path, "utf8").catch(() => "");
  return text.trim() || undefined;
}

function unreadableToken(path: string, found: string): LastcallError {
  return new LastcallError(
    "KUBECONFIG_INVALID",
    `Cannot read the service account's ${path}: ${found}, expected a token`,
    { retryable: true },
  );
}
