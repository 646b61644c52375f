/** Data that is lost with its node. */
import { holdsData } from "../../core/drain-plan/pod-obstacle.ts";
import type { AuditedFleet } from "../fleet.ts";
import { type LocalStorage, localSourceOf } from "../objects/local-storage.ts";
import type { PodTemplate, Volume } from "../objects/pod-template.ts";
import type { Workload } from "../objects/workload.ts";
import { type Remark, type Rule, spotWorkloads } from "../report.ts";

/** Names that suggest that a volume's content can be recreated. */
const throwAway =
  /tmp|temp|cache|scratch|run|sock|log|shm|conf|cert|tls|secret|plugin|install|bin|shared|init|work|dshm|dump/i;

/** Names that suggest that it cannot. */
const kept = /data|storage|state|\bdb\b|database|queue|upload|wal|backup|persist/i;

/** Content that an init container or a sidecar writes when the pod starts. */
const configPath = /(^|\/)etc(\/|$)/;

export const localData: Rule = {
  id: "local-data",
  severity: "warning",
  title: "data lives on the node's own disk",
  why: "Data in an emptyDir or a hostPath is lost for good when its Spot node leaves. An emptyDir whose name says cache or temporary, or that is mounted as configuration, is skipped; one whose name says data is a warning, and information in a Deployment, whose rollouts empty it too; the rest is information. A hostPath that is written to by anything but a DaemonSet is a warning, unless it is for logs, sockets or devices. So is a PersistentVolumeClaim if a StorageClass or a PersistentVolume in the input says that its volume is on one machine: local disks, rancher.io/local-path, TopoLVM, OpenEBS local volumes.",
  fix: "Use a PersistentVolumeClaim whose disk outlives the machine, an object store, or replicate the data to other nodes.",
  whenNotToUse: "The data can be recreated, or is replicated by the application itself.",
  bad: {
    yaml: `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: store}
spec:
  template:
    spec:
      containers:
      - name: store
        image: store
        volumeMounts: [{name: data, mountPath: /var/lib/store}]
      volumes: [{name: data, emptyDir: {}}]
`,
  },
  good: {
    yaml: `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: store}
spec:
  template:
    spec:
      containers:
      - name: store
        image: store
        volumeMounts: [{name: data, mountPath: /var/lib/store}, {name: tmp, mountPath: /tmp}]
      volumes: [{name: tmp, emptyDir: {}}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 10Gi}}}
`,
  },
  check: checkLocalData,
};

/** A DaemonSet belongs to its node: the data that it keeps there is the node's own. */
function checkLocalData(fleet: AuditedFleet): readonly Remark[] {
  return spotWorkloads(fleet)
    .filter((workload) => workload.kind !== "DaemonSet")
    .flatMap((workload) =>
      workload.template.volumes.flatMap((volume): readonly Remark[] => {
        const found = judgeVolume(volume, { workload, storage: fleet.localStorage });
        return found === undefined ? [] : [{ ...found, about: workload }];
      }),
    );
}

function judgeVolume(
  volume: Volume,
  about: { readonly workload: Workload; readonly storage: LocalStorage },
): Omit<Remark, "about"> | undefined {
  if (volume.kind === "Other") return undefined;
  const { workload } = about;
  if (volume.kind === "Claim") {
    const source = localSourceOf(volume, about);
    const message = `Keeps the volume ${volume.name} on the disk of one machine (${source}), which is lost with the node; a new pod waits in vain for that machine`;
    return source === undefined ? undefined : { severity: "warning", message, fix: localFix };
  }
  const { template, kind } = workload;
  const mounts = mountsOf(volume.name, template);
  const fix =
    "Keep it in a PersistentVolumeClaim or an object store, or name it a cache if it is one";
  if (volume.kind === "HostPath") {
    if (mounts.every((mount) => mount.readOnly) || !holdsData(volume)) return undefined;
    const message = `Writes to the node's ${volume.path} through the volume ${volume.name}, which is lost with the node`;
    return { severity: "warning", message, fix };
  }
  const words = [volume.name, ...mounts.map((mount) => mount.path)].join(" ");
  if (volume.inMemory || (throwAway.test(words) && !kept.test(volume.name))) return undefined;
  if (mounts.length > 0 && mounts.every((mount) => configPath.test(mount.path))) return undefined;
  const message = `Keeps the emptyDir ${volume.name} on the node's disk, which is lost with the node`;
  const isWarning = kind !== "Deployment" && kept.test(words);
  return { severity: isWarning ? "warning" : "info", message, fix };
}

const localFix =
  "Use a StorageClass whose disks outlive a machine, or keep it on stable nodes; if the application replicates its data, ignore this rule with that reason";

function mountsOf(
  volume: string,
  template: PodTemplate,
): PodTemplate["containers"][number]["mounts"] {
  return template.containers
    .flatMap((one) => one.mounts)
    .filter((mount) => mount.volume === volume);
}
