/** Whether load balancers stop sending in time. */
import { textOf, valueAt, wholeNumberOf } from "../../core/json/json-field.ts";
import type { AuditedFleet } from "../fleet.ts";
import type { Manifest } from "../objects/manifest.ts";
import type { Remark, Rule } from "../rule.ts";

/** What EC2 and Compute Engine say before a Spot machine goes. */
const noticeSeconds = { aws: 120, gke: 30 } as const;

/** ELBv2's default of `deregistration_delay.timeout_seconds`. */
const awsDefaultDelaySeconds = 300;

export const lbDelayOverNotice: Rule = {
  id: "lb-delay-over-notice",
  severity: "warning",
  title: "the load balancer drains longer than the notice lasts",
  why: "A target that is taken out keeps its open connections for the deregistration delay: 300 s by default on AWS, where the notice is 120 s. Connections that still live when the machine goes are cut. On GKE the same holds for connection draining above the notice of 30 s.",
  fix: "Set the delay under the notice, and let the application close its connections on SIGTERM.",
  whenNotToUse: "The targets behind this load balancer are never on Spot nodes.",
  bad: {
    yaml: `apiVersion: v1
kind: Service
metadata:
  name: web
  annotations:
    service.beta.kubernetes.io/aws-load-balancer-type: external
    service.beta.kubernetes.io/aws-load-balancer-target-group-attributes: deregistration_delay.timeout_seconds=300
spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80}]}
`,
  },
  good: {
    yaml: `apiVersion: v1
kind: Service
metadata:
  name: web
  annotations:
    service.beta.kubernetes.io/aws-load-balancer-type: external
    service.beta.kubernetes.io/aws-load-balancer-target-group-attributes: deregistration_delay.timeout_seconds=60
spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80}]}
`,
  },
  check: checkLbDelayOverNotice,
};

interface Delay {
  readonly cloud: keyof typeof noticeSeconds;
  readonly seconds: number;
  readonly source: "Set" | "Default";
}

function checkLbDelayOverNotice(fleet: AuditedFleet): readonly Remark[] {
  return fleet.manifests.flatMap((manifest): readonly Remark[] => {
    const delay = delayOf(manifest);
    if (delay === undefined || delay.seconds <= noticeSeconds[delay.cloud]) return [];
    const limitSeconds = noticeSeconds[delay.cloud];
    const origin = delay.source === "Set" ? "" : " (the default)";
    const message = `Connections may drain for ${delay.seconds} s${origin}, and the notice is ${limitSeconds} s`;
    const fix = `Set the delay to less than ${limitSeconds} s`;
    return [{ severity: "warning", about: manifest, message, fix }];
  });
}

function delayOf(manifest: Manifest): Delay | undefined {
  if (manifest.kind === "Ingress" && isAlb(manifest)) {
    return awsDelay(manifest.annotations["alb.ingress.kubernetes.io/target-group-attributes"]);
  }
  if (manifest.kind === "Service") return serviceDelay(manifest);
  return gkeDelay(manifest);
}

function isAlb(ingress: Manifest): boolean {
  const className = textOf(valueAt(ingress.json, ["spec", "ingressClassName"]));
  return (className ?? ingress.annotations["kubernetes.io/ingress.class"]) === "alb";
}

const awsPrefix = "service.beta.kubernetes.io/aws-load-balancer-";

function serviceDelay({ json, annotations }: Manifest): Delay | undefined {
  if (valueAt(json, ["spec", "type"]) !== "LoadBalancer") return undefined;
  const classic = Number(annotations[`${awsPrefix}connection-draining-timeout`]);
  if (classic > 0) return { cloud: "aws", seconds: classic, source: "Set" };
  const attributes = annotations[`${awsPrefix}target-group-attributes`];
  const loadBalancerClass = textOf(valueAt(json, ["spec", "loadBalancerClass"]));
  const isNlb =
    loadBalancerClass === "service.k8s.aws/nlb" ||
    ["external", "nlb", "nlb-ip"].includes(annotations[`${awsPrefix}type`] ?? "");
  return isNlb || attributes !== undefined ? awsDelay(attributes) : undefined;
}

function awsDelay(attributes: string | undefined): Delay {
  const found = /deregistration_delay\.timeout_seconds\s*=\s*(\d+)/.exec(attributes ?? "")?.[1];
  if (found === undefined)
    return { cloud: "aws", seconds: awsDefaultDelaySeconds, source: "Default" };
  return { cloud: "aws", seconds: Number(found), source: "Set" };
}

function gkeDelay({ kind, json }: Manifest): Delay | undefined {
  const paths: Readonly<Record<string, readonly string[]>> = {
    BackendConfig: ["spec", "connectionDraining", "drainingTimeoutSec"],
    GCPBackendPolicy: ["spec", "default", "connectionDraining", "drainingTimeoutSec"],
  };
  const path = Object.hasOwn(paths, kind) ? paths[kind] : undefined;
  const seconds = path === undefined ? undefined : wholeNumberOf(valueAt(json, path));
  return seconds === undefined ? undefined : { cloud: "gke", seconds, source: "Set" };
}
