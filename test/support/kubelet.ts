import { writeFileSync } from "node:fs";
import { request } from "node:https";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildControlPlane } from "../controlplane/build.ts";
import { type ChildPart, startPart } from "./child-part.ts";
import type { ControlPlane } from "./control-plane.ts";
import { waitUntil } from "./wait-until.ts";

const pem = (name: string) =>
  fileURLToPath(new URL(`../kube/fixtures/${name}.pem`, import.meta.url));

/**
 * Self-signed, for 127.0.0.1: for the kubelet, and for the API server as a client of the kubelet.
 */
const certificate = { cert: pem("server.cert"), key: pem("server.key") };

/** A client that trusts it trusts the kubelet at 127.0.0.1. */
export const kubeletAuthority: string = certificate.cert;

/** The user that the API server is to a kubelet, if it runs with `kubeletClientFlags`. */
export const apiServerUser = "lastcall test server";
export const kubeletClientFlags: readonly string[] = [
  `--kubelet-client-certificate=${certificate.cert}`,
  `--kubelet-client-key=${certificate.key}`,
];

/**
 * The status of the kubelet's Node. People reach it at the InternalIP. The API server tries the
 * host name first, and refuses to proxy to a loopback address.
 */
export function kubeletNodeStatus(): object {
  const own = Object.values(networkInterfaces())
    .flatMap((found) => found ?? [])
    .find(({ family, internal }) => family === "IPv4" && !internal);
  if (own === undefined) {
    throw new Error("Cannot place a kubelet: only loopback addresses are here, expected another");
  }
  return {
    addresses: [
      { type: "Hostname", address: own.address },
      { type: "InternalIP", address: "127.0.0.1" },
    ],
    daemonEndpoints: { kubeletEndpoint: { Port: 10_250 } },
  };
}

export interface KubeletRequest {
  readonly plane: ControlPlane;
  /** Contains its files and its log. */
  readonly folder: string;
  /** The name of its Node, which it does not write. */
  readonly name: string;
  /** Fields of a KubeletConfiguration in addition to those for access control. */
  readonly configuration: object;
  readonly onDeath: (error: Error) => void;
}

/**
 * The kubelet of the control plane's version, on port 10250, with its server, authentication and
 * authorization, but without containers. Resolves once it responds.
 */
export async function startKubelet(wanted: KubeletRequest): Promise<ChildPart> {
  const { plane, folder, name, configuration, onDeath } = wanted;
  const config = join(folder, `${name}.kubelet.json`);
  writeFileSync(
    config,
    JSON.stringify({
      apiVersion: "kubelet.config.k8s.io/v1beta1",
      kind: "KubeletConfiguration",
      address: "0.0.0.0",
      authentication: {
        anonymous: { enabled: false },
        webhook: { enabled: true },
        x509: { clientCAFile: certificate.cert },
      },
      authorization: { mode: "Webhook" },
      tlsCertFile: certificate.cert,
      tlsPrivateKeyFile: certificate.key,
      ...configuration,
    }),
  );
  const args = [
    ...["kubelet", "--name", name, "--kubeconfig", plane.kubeconfig],
    ...["--config", config, "--root-dir", folder],
  ];
  const command = buildControlPlane().controlplane;
  const part = startPart({ name: `kubelet-${name}`, command, args, folder, onDeath });
  await waitUntil(isUp, { what: `the kubelet of ${name} answers`, timeoutMs: 60_000 });
  return part;
}

/** A 401 is enough: the kubelet refuses anonymous requests. */
function isUp(): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const call = request({
    host: "127.0.0.1",
    port: 10_250,
    path: "/healthz",
    rejectUnauthorized: false,
  });
  call.once("response", (answer) => {
    answer.resume();
    resolve(answer.statusCode === 401);
  });
  call.once("error", () => resolve(false));
  call.end();
  return promise;
}
