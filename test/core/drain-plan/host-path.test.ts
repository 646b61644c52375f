import { expect, it } from "vitest";
import { holdsData } from "../../../src/core/drain-plan/pod-obstacle.ts";

it.each([
  { path: "/srv/files", holds: true },
  { path: "/data", holds: true },
  { path: "/var/lib/postgresql", holds: true },
  { path: "/mnt/disks/ssd0", holds: true },
  // A name with the same prefix is another folder.
  { path: "/etcd", holds: true },
  { path: "/devices", holds: true },
  { path: "/var/logs", holds: true },
  { path: "/", holds: true },
  { path: "/dev/fuse", holds: false },
  { path: "/dev", holds: false },
  { path: "/proc", holds: false },
  { path: "/sys/fs/cgroup", holds: false },
  { path: "/lib/modules", holds: false },
  { path: "/usr/lib/modules/6.12", holds: false },
  { path: "/home/kubernetes/bin/nvidia", holds: false },
  { path: "/home/app", holds: true },
  { path: "/run/containerd/containerd.sock", holds: false },
  { path: "/var/run/docker.sock", holds: false },
  { path: "/data/app.sock", holds: false },
  { path: "/var/log/pods", holds: false },
  { path: "/etc/localtime", holds: false },
  { path: "/usr/share/zoneinfo/Asia/Tokyo", holds: false },
  { path: "/etc/ssl/certs", holds: false },
  { path: "/usr/share/ca-certificates", holds: false },
  { path: "/var/lib/kubelet/pods", holds: false },
  { path: "/data/socket", type: "Socket", holds: false },
  { path: "/data/disk", type: "BlockDevice", holds: false },
  { path: "/data/new", type: "DirectoryOrCreate", holds: true },
])("a hostPath $path of type $type is likely to hold data: $holds", ({ holds, ...hostPath }) => {
  expect(holdsData(hostPath)).toBe(holds);
});
