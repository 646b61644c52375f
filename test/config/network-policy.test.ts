import { readFileSync } from "node:fs";
import { BlockList, isIPv6 } from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";

const deploy = join(import.meta.dirname, "../../deploy");

interface Peer {
  readonly namespaceSelector?: { readonly matchLabels?: Readonly<Record<string, string>> };
  readonly ipBlock?: { readonly cidr: string };
}
interface Rule {
  readonly from?: readonly Peer[];
  readonly to?: readonly Peer[];
  readonly ports?: readonly { readonly protocol: string; readonly port: number | string }[];
}
interface Policy {
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly podSelector: { readonly matchLabels: Readonly<Record<string, string>> };
    readonly policyTypes: readonly string[];
    readonly ingress?: readonly Rule[];
    readonly egress?: readonly Rule[];
  };
}

/** A peer: a pod by its namespace, or anything else by its address. */
type Party = { readonly namespace: string } | { readonly ip: string };
type Port = `${"TCP" | "UDP"} ${number | string}`;

function documentsOf(file: string): readonly Policy[] {
  return parseAllDocuments(readFileSync(join(deploy, file), "utf8")).map((one) => one.toJS());
}

/**
 * As defined by networking.k8s.io/v1: a rule without peers applies to all peers. A rule without
 * ports, which would allow all of them, counts as none here.
 */
function allows(rules: readonly Rule[], party: Party, port: Port): boolean {
  return rules.some(({ from, to, ports }) => {
    const peers = from ?? to;
    const isPeer = peers === undefined || peers.some((peer) => isAmong(peer, party));
    return isPeer && (ports ?? []).some((one) => `${one.protocol} ${one.port}` === port);
  });
}

function isAmong({ namespaceSelector, ipBlock }: Peer, party: Party): boolean {
  if ("namespace" in party) {
    const wanted = namespaceSelector?.matchLabels?.["kubernetes.io/metadata.name"];
    return namespaceSelector !== undefined && (wanted ?? party.namespace) === party.namespace;
  }
  if (ipBlock === undefined) return false;
  const [network = "", bits = ""] = ipBlock.cidr.split("/");
  const family = (ip: string) => (isIPv6(ip) ? "ipv6" : "ipv4");
  const list = new BlockList();
  list.addSubnet(network, Number(bits), family(network));
  return list.check(party.ip, family(party.ip));
}

const [controller, placeholder] = documentsOf("network-policy/controller.yaml");
const [agent] = documentsOf("network-policy/agent.yaml");
const internet = { ip: "203.0.113.7" };
const imds = { ip: "169.254.169.254" };

describe("the controller's network policy", () => {
  it.each<[string, Party, Port]>([
    ["the API server by its Service", { ip: "10.0.0.1" }, "TCP 443"],
    ["the API server's own address", { ip: "10.128.0.2" }, "TCP 6443"],
    ["the API of a cloud", internet, "TCP 443"],
    ["the cluster's DNS", { namespace: "kube-system" }, "UDP 53"],
    ["the cluster's DNS over TCP", { namespace: "kube-system" }, "TCP 53"],
    ["the DNS cache of a node", { ip: "169.254.20.10" }, "UDP 53"],
    ["Cloud DNS for GKE", imds, "UDP 53"],
    ["GKE's metadata server", { ip: "169.254.169.252" }, "TCP 988"],
    ["GKE's metadata server with Dataplane V2", imds, "TCP 80"],
    ["EKS Pod Identity", { ip: "169.254.170.23" }, "TCP 80"],
    ["EKS Pod Identity by IPv6", { ip: "fd00:ec2::23" }, "TCP 80"],
  ])("lets it reach %s", (_, party, port) => {
    expect(allows(controller?.spec.egress ?? [], party, port)).toBe(true);
  });

  it.each<[string, Party, Port]>([
    ["a kubelet", { ip: "10.128.0.9" }, "TCP 10250"],
    ["etcd", { ip: "10.128.0.2" }, "TCP 2379"],
    ["another pod's plain HTTP", { namespace: "default" }, "TCP 80"],
    ["an Alertmanager, unless it is added", { namespace: "monitoring" }, "TCP 9093"],
    ["a DNS server outside of the cluster", internet, "UDP 53"],
    ["the internet in clear text", internet, "TCP 80"],
    ["another link-local address", { ip: "169.254.169.250" }, "TCP 80"],
  ])("does not let it reach %s", (_, party, port) => {
    expect(allows(controller?.spec.egress ?? [], party, port)).toBe(false);
  });

  it("lets pods in the cluster scrape metrics, and nothing outside it", () => {
    const rules = controller?.spec.ingress ?? [];
    expect(allows(rules, { namespace: "monitoring" }, "TCP metrics")).toBe(true);
    expect(allows(rules, internet, "TCP metrics")).toBe(false);
    expect(allows(rules, { namespace: "monitoring" }, "TCP health")).toBe(false);
  });
});

describe("the agent's network policy", () => {
  it.each<[string, Party, Port]>([
    ["the API server", { ip: "10.0.0.1" }, "TCP 443"],
    ["the machine's own metadata", imds, "TCP 80"],
  ])("lets it reach %s", (_, party, port) => {
    expect(allows(agent?.spec.egress ?? [], party, port)).toBe(true);
  });

  it.each<[string, Party, Port]>([
    ["other pods", { namespace: "default" }, "TCP 80"],
    ["DNS, which it does not need", { namespace: "kube-system" }, "UDP 53"],
    ["GKE's metadata server, which has no notices", { ip: "169.254.169.252" }, "TCP 988"],
  ])("does not let it reach %s", (_, party, port) => {
    expect(allows(agent?.spec.egress ?? [], party, port)).toBe(false);
  });
});

it("the placeholder's network policy allows no traffic", () => {
  expect(placeholder?.spec).toMatchObject({ policyTypes: ["Ingress", "Egress"] });
  expect([placeholder?.spec.ingress, placeholder?.spec.egress]).toEqual([undefined, undefined]);
});

it("each network policy selects the installed pods, which have a metrics port", () => {
  const [deployment] = documentsOf("base/controller.yaml") as unknown as readonly Workload[];
  const [daemonSet] = documentsOf("agent/daemonset.yaml") as unknown as readonly Workload[];
  for (const [policy, workload] of [
    [controller, deployment],
    [agent, daemonSet],
  ] as const) {
    const { metadata, spec } = workload?.spec.template ?? {};
    expect(metadata?.labels).toEqual(policy?.spec.podSelector.matchLabels);
    const names = spec?.containers.flatMap(({ ports }) => ports.map(({ name }) => name));
    expect(names).toContain("metrics");
  }
});

interface Workload {
  readonly spec: {
    readonly template: {
      readonly metadata: { readonly labels: Readonly<Record<string, string>> };
      readonly spec: {
        readonly containers: readonly { readonly ports: readonly { readonly name: string }[] }[];
      };
    };
  };
}
