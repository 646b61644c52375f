import type { NodeSelector, NodeSelectorTerm } from "./pod.ts";

/** Which persistent volumes are on the disk of one machine, and are lost with it. */

/**
 * The topology key of a CSI driver for local disks names its node: `topology.topolvm.io/node`,
 * `topology.hostpath.csi/node`, `openebs.io/nodename`, `openebs.io/nodeid` (ZFS). One that names a
 * zone ends in `zone`.
 */
const keyOfMachine = /(?:^|[/.])(?:hostname|node|nodename|nodeid)$/;

export interface VolumeSite {
  /** `local` or `hostPath`: the volume's source is on a machine by itself. */
  readonly source: "Machine" | "Elsewhere";
  /** The nodes from which it can be reached; absent: all. */
  readonly nodes?: NodeSelector | undefined;
}

/** By its source, or by the nodes from which it can be reached. */
export function isOnOneMachine({ source, nodes }: VolumeSite): boolean {
  if (source === "Machine") return true;
  const [first, ...others] = (nodes?.nodeSelectorTerms ?? []).map(machineOf);
  return first !== undefined && others.every((machine) => machine === first);
}

/** The one machine of a term. A volume with replicas names several, or one in each term. */
function machineOf({ matchExpressions, matchFields }: NodeSelectorTerm): string | undefined {
  const named = [...matchExpressions, ...matchFields].find(
    ({ key, operator, values = [] }) =>
      operator === "In" &&
      values.length === 1 &&
      (key === "metadata.name" || keyOfMachine.test(key)),
  );
  return named?.values?.[0];
}

/**
 * Sources: rancher/local-path-provisioner `main.go`; topolvm `constants.go` (the second name is the
 * older one); openebs/dynamic-localpv-provisioner, lvm-localpv, zfs-localpv and device-localpv,
 * their StorageClasses; minio/directpv `pkg/consts`; kubernetes-csi/csi-driver-host-path; the
 * hostpath-provisioner of kubevirt; metal-stack/csi-driver-lvm; carina-io/carina; minikube and
 * MicroK8s, their addons; Azure Container Storage, "local NVMe".
 */
const localProvisioners: ReadonlySet<string> = new Set([
  "rancher.io/local-path",
  "topolvm.io",
  "topolvm.cybozu.com",
  "openebs.io/local",
  "local.csi.openebs.io",
  "zfs.csi.openebs.io",
  "device.csi.openebs.io",
  "directpv-min-io",
  "hostpath.csi.k8s.io",
  "kubevirt.io.hostpath-provisioner",
  "lvm.csi.metal-stack.io",
  "carina.storage.io",
  "k8s.io/minikube-hostpath",
  "microk8s.io/hostpath",
  "localdisk.csi.acstor.io",
]);

/**
 * Whether the volumes of a StorageClass are on one machine each. Volumes that nobody provisions are
 * local ones only if the class waits for the pod's node
 * (kubernetes.io/docs/concepts/storage/storage-classes, "Local").
 */
export function isLocalClass(storageClass: {
  readonly provisioner: string;
  readonly bindingMode: string | undefined;
}): boolean {
  const { provisioner, bindingMode } = storageClass;
  if (provisioner === "kubernetes.io/no-provisioner") return bindingMode === "WaitForFirstConsumer";
  return localProvisioners.has(provisioner);
}
