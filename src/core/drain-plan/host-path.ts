/** Folders of a machine in which a pod leaves nothing that it would miss elsewhere. */
const foldersWithoutData: readonly { readonly folder: string; readonly holds: string }[] = [
  { folder: "/dev", holds: "devices" },
  { folder: "/proc", holds: "the kernel's own view" },
  { folder: "/sys", holds: "the kernel's own view" },
  { folder: "/lib/modules", holds: "kernel modules" },
  { folder: "/usr/lib/modules", holds: "kernel modules" },
  { folder: "/usr/src", holds: "kernel headers" },
  { folder: "/boot", holds: "the kernel" },
  { folder: "/run", holds: "sockets and locks" },
  { folder: "/var/run", holds: "sockets and locks" },
  { folder: "/var/lock", holds: "sockets and locks" },
  { folder: "/tmp", holds: "what a restart of the machine clears" },
  { folder: "/var/log", holds: "logs" },
  { folder: "/var/lib/docker/containers", holds: "logs of containers" },
  { folder: "/etc", holds: "the machine's configuration and certificates" },
  { folder: "/usr/share/zoneinfo", holds: "time zones" },
  { folder: "/usr/share/ca-certificates", holds: "certificates" },
  { folder: "/usr/local/share/ca-certificates", holds: "certificates" },
  { folder: "/opt/cni", holds: "network plugins" },
  { folder: "/home/kubernetes", holds: "GKE's own programs and drivers" },
  { folder: "/var/lib/kubelet", holds: "what the kubelet manages" },
];

/** Types of a hostPath that are no folder or file with content. */
const typesWithoutData: ReadonlySet<string | undefined> = new Set([
  "Socket",
  "CharDevice",
  "BlockDevice",
]);

/** Whether a pod that writes to this hostPath is likely to leave data behind on the machine. */
export function holdsData({
  path,
  type,
}: {
  readonly path: string;
  readonly type?: string | undefined;
}): boolean {
  if (typesWithoutData.has(type) || path.endsWith(".sock")) return false;
  return !foldersWithoutData.some(({ folder }) => path === folder || path.startsWith(`${folder}/`));
}
