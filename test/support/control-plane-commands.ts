import { join } from "node:path";
import type { ControlPlaneBinaries } from "../controlplane/build.ts";
import type { ControlPlaneFiles } from "./control-plane-files.ts";

export interface PartCommand {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  /** In addition to the few variables that every part gets. */
  readonly env?: Readonly<Record<string, string>>;
}

export interface PartPorts {
  readonly apiServer: number;
  readonly etcd: number;
  readonly etcdPeer: number;
  readonly controllerManager: number;
  readonly scheduler: number;
  readonly kwok: number;
}

export interface CommandInputs {
  readonly binaries: ControlPlaneBinaries;
  readonly files: ControlPlaneFiles;
  readonly ports: PartPorts;
  readonly apiServerFlags: readonly string[];
  readonly kwokStages: readonly string[];
}

export const etcdName = "etcd";

/** kwok manages nodes with this label; without it, the node's kubelet has fallen silent. */
export const kubeletLabel = { key: "e2e.lastcall.dev/kubelet", value: "kwok" } as const;

/** The controller manager's default is 20 requests a second, so 300 pods would take 15 s. */
const clientRate = ["--kube-api-qps=1000", "--kube-api-burst=2000"];

export function etcdCommand({ binaries, files, ports }: CommandInputs): PartCommand {
  const client = `http://127.0.0.1:${ports.etcd}`;
  const peer = `http://127.0.0.1:${ports.etcdPeer}`;
  return {
    name: etcdName,
    command: binaries.controlplane,
    args: [
      "etcd",
      `--data-dir=${join(files.folder, "etcd")}`,
      // The data lives only as long as the test, so it need not survive a power failure.
      "--unsafe-no-fsync",
      `--listen-client-urls=${client}`,
      `--advertise-client-urls=${client}`,
      `--listen-peer-urls=${peer}`,
      `--initial-advertise-peer-urls=${peer}`,
      `--initial-cluster=default=${peer}`,
      "--log-level=warn",
    ],
  };
}

export function apiServerCommand(inputs: CommandInputs): PartCommand {
  const { binaries, files, ports, apiServerFlags } = inputs;
  return {
    name: "kube-apiserver",
    command: binaries.controlplane,
    args: [
      "kube-apiserver",
      `--etcd-servers=http://127.0.0.1:${ports.etcd}`,
      `--secure-port=${ports.apiServer}`,
      "--bind-address=127.0.0.1",
      "--advertise-address=127.0.0.1",
      // A loopback address is not a valid endpoint of the kubernetes service.
      "--endpoint-reconciler-type=none",
      `--cert-dir=${files.certFolder}`,
      `--token-auth-file=${files.tokenFile}`,
      `--service-account-key-file=${files.serviceAccountPublicKeyFile}`,
      `--service-account-signing-key-file=${files.serviceAccountKeyFile}`,
      "--service-account-issuer=https://kubernetes.default.svc",
      "--service-cluster-ip-range=10.0.0.0/16",
      "--authorization-mode=Node,RBAC",
      "--enable-admission-plugins=NodeRestriction",
      "--allow-privileged=true",
      ...apiServerFlags,
    ],
  };
}

export function controllerManagerCommand({ binaries, files, ports }: CommandInputs): PartCommand {
  return {
    name: "kube-controller-manager",
    command: binaries.controlplane,
    args: [
      "kube-controller-manager",
      `--kubeconfig=${files.kubeconfigOf("kube-controller-manager")}`,
      `--secure-port=${ports.controllerManager}`,
      "--bind-address=127.0.0.1",
      `--cert-dir=${join(files.folder, "controller-manager-certs")}`,
      "--leader-elect=false",
      // Each controller has its own permissions, as in a real cluster.
      "--use-service-account-credentials=true",
      `--service-account-private-key-file=${files.serviceAccountKeyFile}`,
      `--root-ca-file=${files.caFile}`,
      ...clientRate,
    ],
  };
}

export function schedulerCommand({ binaries, files, ports }: CommandInputs): PartCommand {
  return {
    name: "kube-scheduler",
    command: binaries.controlplane,
    args: [
      "kube-scheduler",
      `--config=${files.schedulerConfigFile}`,
      `--secure-port=${ports.scheduler}`,
      "--bind-address=127.0.0.1",
      `--cert-dir=${join(files.folder, "scheduler-certs")}`,
    ],
  };
}

export function kwokCommand({ binaries, files, ports, kwokStages }: CommandInputs): PartCommand {
  return {
    name: "kwok",
    command: binaries.kwok,
    args: [
      `--kubeconfig=${files.kubeconfigOf("kwok")}`,
      `--manage-nodes-with-label-selector=${kubeletLabel.key}=${kubeletLabel.value}`,
      // Without leases, the nodes become Unknown after 50 s, and every disruption budget drops to
      // zero.
      "--node-lease-duration-seconds=40",
      "--node-ip=127.0.0.1",
      "--cidr=10.64.0.0/14",
      `--server-address=127.0.0.1:${ports.kwok}`,
      ...kwokStages.map((file) => `--config=${file}`),
    ],
  };
}
