/**
 * The installed pods against the API server's own standards: the controller's pods are restricted,
 * the agents except for the host network, and the controller may create only placeholders.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Pod } from "kubernetes-types/core/v1.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import type { KubeObject } from "../../src/contracts/kube-api.ts";
import { placeholderImage, placeholderObject } from "../../src/kube/cluster-capacity.ts";
import type { ApiAnswer } from "../support/api-request.ts";
import { type ControlPlane, startControlPlane } from "../support/control-plane.ts";
import { waitUntil } from "../support/wait-until.ts";
import { mustRun } from "./must-run.ts";

const deploy = join(import.meta.dirname, "../../deploy");

let plane: ControlPlane;
let token: string;

beforeAll(async () => {
  plane = await startControlPlane({ withKwok: false, withScheduler: false });
  const labels = { "pod-security.kubernetes.io/enforce": "restricted" };
  const namespace = {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name: "restricted", labels },
  };
  await mustRun(plane, ["apply", "-f", "-"], namespace);
  for (const folder of ["base", "agent", "network-policy"]) {
    await mustRun(plane, ["apply", "-k", `${deploy}/${folder}`]);
  }
  token = await plane.tokenFor("lastcall", "lastcall");
  const inForce = async () => (await create(placeholder(), { labels: {} })).status === 403;
  await waitUntil(inForce, {
    ...{ what: "the admission policy is in force", timeoutMs: 60_000, signal: plane.signal },
  });
});

afterAll(() => plane?.stop());

/** A pod from the template of a workload in `deploy/`. */
function podOf(file: string): Pod {
  const [workload] = parseAllDocuments(readFileSync(join(deploy, file), "utf8")).map((one) =>
    one.toJS(),
  );
  const { metadata, spec } = workload.spec.template;
  // Its account is in another namespace, and is not what this checks.
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { ...metadata, name: "judged" },
    spec: { ...spec, serviceAccountName: "default" },
  };
}

async function judged(pod: Pod): Promise<ApiAnswer> {
  const wait = { what: "the account exists", timeoutMs: 30_000, signal: plane.signal };
  const account = "/api/v1/namespaces/restricted/serviceaccounts/default";
  await waitUntil(async () => (await plane.request({ path: account })).status === 200, wait);
  const path = "/api/v1/namespaces/restricted/pods?dryRun=All";
  return plane.request({ method: "POST", path, body: pod });
}

describe("the installed pods", () => {
  test("of the controller satisfy the restricted standard", async () => {
    const answer = await judged(podOf("base/controller.yaml"));
    expect(answer.body.message).toBeUndefined();
    expect(answer.status).toBe(201);
  });

  test("of the agents satisfy the restricted standard, except for the host network", async () => {
    const agent = podOf("agent/daemonset.yaml");
    const refused = await judged(agent);
    expect(refused.status).toBe(403);
    const found = /violates PodSecurity "[^"]+": (.*)$/.exec(refused.body.message)?.[1];
    const network =
      'host namespaces (hostNetwork=true), hostPort (container "agent" uses hostPort 9101)';
    // Its probes use the loopback address of the host network, which 1.34 began to look at.
    const probes =
      'probe or lifecycle host (container "agent" uses probe or lifecycle host "127.0.0.1")';
    const { body } = await plane.request({ path: "/version" });
    expect(found).toBe(Number(body.minor) < 34 ? network : `${network}, ${probes}`);
  });

  test("mount their tokens explicitly, and their accounts mount none by default", async () => {
    for (const [name, file] of [
      ["lastcall", "base/controller.yaml"],
      ["lastcall-agent", "agent/daemonset.yaml"],
    ] as const) {
      const path = `/api/v1/namespaces/lastcall/serviceaccounts/${name}`;
      expect((await plane.request({ path })).body.automountServiceAccountToken).toBe(false);
      expect(podOf(file).spec?.automountServiceAccountToken).toBe(true);
    }
  });
});

function placeholder(): KubeObject {
  return placeholderObject(
    {
      name: "placeholder-1",
      departure: { name: "n1-01234567", uid: "0b1f7a3e-7f0e-4c53-9c1a-5d1f6f2f8a11" },
      forPod: { namespace: "default", name: "web", uid: "u" },
      placement: { requests: { cpu: 100 }, nodeSelector: {}, podAffinity: [], podAntiAffinity: [] },
      tolerations: [],
    },
    { namespace: "lastcall", image: placeholderImage },
  );
}

/**
 * Creates a pod as the controller: `pod` with changes to it, its spec and its only container.
 */
function create(
  pod: KubeObject,
  change: { labels?: object; spec?: object; container?: object; namespace?: string },
): Promise<ApiAnswer> {
  const { namespace = "lastcall", labels, container } = change;
  const spec = pod.spec as { readonly containers: readonly object[] };
  const body = {
    ...pod,
    metadata: { ...pod.metadata, namespace, ...(labels && { labels }) },
    spec: { ...spec, containers: [{ ...spec.containers[0], ...container }], ...change.spec },
  };
  const path = `/api/v1/namespaces/${namespace}/pods?dryRun=All`;
  return plane.request({ method: "POST", path, body, token });
}

describe("the controller's permission to create pods", () => {
  test("allows a placeholder", async () => {
    expect((await create(placeholder(), {})).status).toBe(201);
  });

  const secure = { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } };
  const volume = (source: object) => ({ volumes: [{ name: "v", ...source }] });
  const env = (source: object) => ({ env: [{ name: "E", valueFrom: source }] });

  test.each<[string, Parameters<typeof create>[1]]>([
    ["without the placeholder label", { labels: { "app.kubernetes.io/name": "lastcall" } }],
    ["with a higher priority class", { spec: { priorityClassName: "system-node-critical" } }],
    ["without a priority class", { spec: { priorityClassName: undefined } }],
    ["with the agents' ServiceAccount", { spec: { serviceAccountName: "lastcall-agent" } }],
    ["with the controller's ServiceAccount", { spec: { serviceAccountName: "lastcall" } }],
    ["with a token", { spec: { automountServiceAccountToken: true } }],
    ["on the host network", { spec: { hostNetwork: true } }],
    ["with the host's processes", { spec: { hostPID: true } }],
    ["with the host's IPC", { spec: { hostIPC: true } }],
    ["on a host port", { container: { ports: [{ containerPort: 80, hostPort: 80 }] } }],
    ["with a host directory", { spec: volume({ hostPath: { path: "/" } }) }],
    ["with a Secret", { spec: volume({ secret: { secretName: "s" } }) }],
    [
      "with a projected Secret",
      { spec: volume({ projected: { sources: [{ secret: { name: "s" } }] } }) },
    ],
    ["with a volume claim", { spec: volume({ persistentVolumeClaim: { claimName: "c" } }) }],
    [
      "with a Secret in an environment variable",
      { container: env({ secretKeyRef: { name: "s", key: "k" } }) },
    ],
    ["with envFrom a Secret", { container: { envFrom: [{ secretRef: { name: "s" } }] } }],
    ["that is privileged", { container: { securityContext: { privileged: true } } }],
    [
      "that may escalate privileges",
      { container: { securityContext: { ...secure, allowPrivilegeEscalation: true } } },
    ],
    [
      "with a capability",
      {
        container: {
          securityContext: { ...secure, capabilities: { drop: ["ALL"], add: ["SYS_ADMIN"] } },
        },
      },
    ],
    [
      "that keeps its capabilities",
      { container: { securityContext: { allowPrivilegeEscalation: false } } },
    ],
    ["that runs as root", { container: { securityContext: { ...secure, runAsUser: 0 } } }],
    ["that may run as root", { spec: { securityContext: {} } }],
    [
      "whose init container is privileged",
      {
        spec: {
          initContainers: [{ name: "i", image: "i:1", securityContext: { privileged: true } }],
        },
      },
    ],
  ])("does not allow one %s", async (_, change) => {
    const refused = await create(placeholder(), change);
    expect(refused.status).toBe(403);
    expect(refused.body.message).toMatch(/a placeholder|only placeholder pods/);
  });

  test("is limited to its own namespace", async () => {
    expect((await create(placeholder(), { namespace: "default" })).status).toBe(403);
  });

  test("is limited by an admission policy without type-checking warnings", async () => {
    const policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
    const path = `${policies}/lastcall-placeholder`;
    const how = { what: "the policy is checked", timeoutMs: 30_000, signal: plane.signal };
    const checked = async () => (await plane.request({ path })).body.status;
    expect((await waitUntil(checked, how)).typeChecking).toEqual({});
  });
});
