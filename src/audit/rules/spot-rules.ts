/** What should not run on a node that may leave at short notice. */
import { criticalPriority } from "../../core/drain-plan/drain-order.ts";
import {
  fieldsOf,
  isFields,
  listOf,
  parseJson,
  textOf,
  valueAt,
  wholeNumberOf,
} from "../../core/json/json-field.ts";
import { type AuditedFleet, isServed } from "../fleet.ts";
import type { Manifest } from "../objects/manifest.ts";
import type { Workload } from "../objects/workload.ts";
import { type Remark, type Rule, spotWorkloads } from "../report.ts";

export const criticalOnSpot: Rule = {
  id: "critical-on-spot",
  severity: "warning",
  title: "a system-critical workload can land on Spot nodes",
  why: "Pods of priority 2000000000 and above (system-cluster-critical, system-node-critical) are what the cluster itself depends on: DNS, metrics, autoscalers, admission webhooks. On a Spot node they are lost with it, often together with the node that was to take over. DaemonSets belong on every node and jobs are retried, so both are skipped.",
  fix: "Keep it on stable nodes by a node selector or required node affinity.",
  whenNotToUse: "Several replicas are spread over Spot and stable nodes.",
  bad: {
    yaml: `apiVersion: apps/v1
kind: Deployment
metadata: {name: dns, namespace: kube-system}
spec:
  template:
    spec:
      priorityClassName: system-cluster-critical
      containers: [{name: dns, image: dns}]
`,
  },
  good: {
    yaml: `apiVersion: apps/v1
kind: Deployment
metadata: {name: dns, namespace: kube-system}
spec:
  template:
    spec:
      priorityClassName: system-cluster-critical
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms:
            - matchExpressions: [{key: cloud.google.com/gke-spot, operator: DoesNotExist}]
      containers: [{name: dns, image: dns}]
`,
  },
  check: checkCriticalOnSpot,
};

const harmless = new Set(["DaemonSet", "Job", "CronJob"]);

function checkCriticalOnSpot(fleet: AuditedFleet): readonly Remark[] {
  return spotWorkloads(fleet)
    .filter(({ priority, kind }) => priority >= criticalPriority && !harmless.has(kind))
    .map((workload) => ({
      severity: "warning",
      about: workload,
      message: `Has the system-critical priority ${workload.priority} and may be placed on Spot nodes`,
      fix: "Keep it on stable nodes by a node selector or required node affinity",
    }));
}

/** A job that may run longer than this will probably outlive its Spot node. */
const longSeconds = 3600;

export const longJobOnSpot: Rule = {
  id: "long-job-on-spot",
  severity: "warning",
  title: "a job that may run long, or may fail only once, can land on Spot nodes",
  why: "A job that loses its node starts over unless it writes checkpoints, and each loss counts as a failure unless a podFailurePolicy ignores the condition DisruptionTarget. With backoffLimit 0, one interrupted node fails the job. A deadline over an hour or a backoffLimit of 0 is a warning; having no deadline is information, but no finding for a hook of Helm or Argo CD.",
  fix: "Write checkpoints; ignore DisruptionTarget in a podFailurePolicy (restartPolicy Never); or keep long jobs on stable nodes.",
  whenNotToUse: "The job is short although it sets no deadline, or it resumes where it stopped.",
  bad: {
    yaml: `apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers: [{name: train, image: train}]
`,
  },
  good: {
    yaml: `apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  backoffLimit: 0
  podFailurePolicy:
    rules:
    - action: Ignore
      onPodConditions: [{type: DisruptionTarget}]
  template:
    spec:
      restartPolicy: Never
      containers: [{name: train, image: train}]
`,
  },
  check: checkLongJobOnSpot,
};

function checkLongJobOnSpot(fleet: AuditedFleet): readonly Remark[] {
  return spotWorkloads(fleet).flatMap((workload): readonly Remark[] => {
    const remark = judgeJob(workload);
    return remark === undefined ? [] : [{ ...remark, about: workload }];
  });
}

function judgeJob(workload: Workload): Omit<Remark, "about"> | undefined {
  const spec = jobSpecOf(workload);
  if (spec === undefined || ignoresDisruption(spec)) return undefined;
  const fix = "Write checkpoints, and ignore DisruptionTarget in a podFailurePolicy";
  if (wholeNumberOf(valueAt(spec, ["backoffLimit"])) === 0) {
    const message =
      "May fail only once (backoffLimit 0), and the loss of a node counts as a failure";
    return { severity: "warning", message, fix };
  }
  const podSeconds = valueAt(spec, ["template", "spec", "activeDeadlineSeconds"]);
  const limitSeconds = wholeNumberOf(valueAt(spec, ["activeDeadlineSeconds"]) ?? podSeconds);
  if (limitSeconds === undefined && isHook(workload)) return undefined;
  if (limitSeconds === undefined) {
    const message = "May run for any length of time, and starts over when its node leaves";
    return { severity: "info", message, fix };
  }
  if (limitSeconds <= longSeconds) return undefined;
  const message = `May run for ${limitSeconds} s, and starts over when its node leaves`;
  return { severity: "warning", message, fix };
}

/** A Helm or Argo CD hook runs once, while somebody waits for it. */
function isHook({ manifest }: Workload): boolean {
  const keys = Object.keys(manifest.annotations);
  return keys.some((key) => key === "helm.sh/hook" || key === "argocd.argoproj.io/hook");
}

/** Of Kubernetes' own kinds: others have a Job, too, with other fields. */
function jobSpecOf({ kind, group, manifest }: Workload): unknown {
  if (group !== "batch") return undefined;
  if (kind === "Job") return valueAt(manifest.json, ["spec"]);
  if (kind === "CronJob") return valueAt(manifest.json, ["spec", "jobTemplate", "spec"]);
  return undefined;
}

function ignoresDisruption(spec: unknown): boolean {
  return listOf(valueAt(spec, ["podFailurePolicy", "rules"])).some((rule) => {
    const { action, onPodConditions } = fieldsOf(rule);
    const types = listOf(onPodConditions).map((one) => fieldsOf(one).type);
    return action === "Ignore" && types.includes("DisruptionTarget");
  });
}

/** The notice period of EC2 and Compute Engine for a Spot machine. */
const noticeSeconds = { aws: 120, gke: 30 } as const;

/**
 * The ELBv2 default of `deregistration_delay.timeout_seconds`, and that of a classic load balancer
 * with connection draining.
 */
const awsDefaultDelaySeconds = 300;

export const lbDelayOverNotice: Rule = {
  id: "lb-delay-over-notice",
  severity: "warning",
  title: "the load balancer drains longer than the notice lasts",
  why: "A deregistered target keeps its open connections for the deregistration delay: 300 s by default on AWS, where the notice is 120 s (a classic load balancer has a delay only if connection draining is enabled). Connections that are still open when the machine shuts down are cut. Behind an ALB, the annotation of a Service replaces that of its Ingress; EKS Auto Mode's load balancers and the TargetGroupConfiguration of a Gateway are checked alike. On GKE, the same applies to connection draining longer than the notice of 30 s.",
  fix: "Set the delay below the notice, and let the application close its connections on SIGTERM.",
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

/** A load balancer's delay, and the manifest that sets it or leaves it at its default. */
interface DelayOf {
  readonly about: Manifest;
  readonly delay: Delay;
}

interface Delay {
  readonly cloud: keyof typeof noticeSeconds;
  readonly seconds: number;
  readonly source: "Set" | "Default";
}

function checkLbDelayOverNotice(fleet: AuditedFleet): readonly Remark[] {
  const simple = fleet.manifests.flatMap((about): readonly DelayOf[] => {
    const delay = delayOf(about);
    return delay === undefined ? [] : [{ about, delay }];
  });
  // A Service may be behind several Ingresses, which say the same about it.
  const ofAlbs = new Map(albDelays(fleet).map((one) => [one.about, one]));
  return [...simple, ...ofAlbs.values()].flatMap(({ about, delay }): readonly Remark[] => {
    if (delay.seconds <= noticeSeconds[delay.cloud] || !isServed(fleet, about)) return [];
    const limitSeconds = noticeSeconds[delay.cloud];
    const origin = delay.source === "Set" ? "" : " (the default)";
    const message = `Connections may drain for ${delay.seconds} s${origin}, and the notice is ${limitSeconds} s`;
    const fix = `Set the delay to less than ${limitSeconds} s`;
    return [{ severity: "warning", about, message, fix }];
  });
}

function delayOf(manifest: Manifest): Delay | undefined {
  if (manifest.kind === "Service") return serviceDelay(manifest);
  const { kind, group } = manifest;
  const isGatewayOfAws = `${kind}.${group}` === "TargetGroupConfiguration.gateway.k8s.aws";
  return isGatewayOfAws ? gatewayDelay(manifest) : gkeDelay(manifest);
}

const albAttributes = "alb.ingress.kubernetes.io/target-group-attributes";

/**
 * The delays behind the ALBs of aws-load-balancer-controller, which makes a target group for each
 * Service of an Ingress. The Service's annotation replaces that of the Ingress, as a whole. Source:
 * its guide, "Ingress annotations".
 */
function albDelays({ manifests }: AuditedFleet): readonly DelayOf[] {
  const keyOf = (namespace: string, name: string) => `${namespace}/${name}`;
  const services = new Map(
    manifests
      .filter(({ kind, group }) => kind === "Service" && group === "")
      .map((service) => [keyOf(service.namespace, service.name), service]),
  );
  const classes = ingressClasses(manifests);
  const albs = manifests.filter((one) => one.kind === "Ingress" && isAlb(one, classes));
  return albs.flatMap((ingress) => {
    // One without a known Service has its delay from here, too.
    const named = backendsOf(ingress) ?? [undefined];
    return named.map((name): DelayOf => {
      const service = services.get(keyOf(ingress.namespace, name ?? ""));
      const about = service?.annotations[albAttributes] === undefined ? ingress : service;
      return { about, delay: awsDelay(about.annotations[albAttributes]) };
    });
  });
}

/** The Services of an Ingress; undefined if it names no backend at all. */
function backendsOf({ json, annotations }: Manifest): readonly string[] | undefined {
  const paths = listOf(valueAt(json, ["spec", "rules"])).flatMap((rule) =>
    listOf(valueAt(rule, ["http", "paths"])).map((path) => fieldsOf(path).backend),
  );
  const backends = [valueAt(json, ["spec", "defaultBackend"]), ...paths];
  const services = backends.flatMap((backend) => {
    const { name, port } = fieldsOf(valueAt(backend, ["service"]));
    const text = textOf(name);
    if (text === undefined) return [];
    const isAction = fieldsOf(port).name === "use-annotation";
    return [isAction ? actionServices(annotations[`${albActions}${text}`], text) : [text]];
  });
  return services.length === 0 ? undefined : services.flat();
}

const albActions = "alb.ingress.kubernetes.io/actions.";

/**
 * The Services to which an action forwards, in the name of which a backend stands: none for a
 * redirect, a fixed response or a target group of somebody else. Of one that cannot be read, its
 * name. Source: aws-load-balancer-controller, "Ingress annotations", actions.
 */
function actionServices(text: string | undefined, name: string): readonly string[] {
  const action = parseJson(text ?? "")?.value;
  if (!isFields(action)) return [name];
  const groups = listOf(fieldOf(fieldOf(action, "forwardConfig"), "targetGroups"));
  return groups.flatMap((group) => textOf(fieldOf(group, "serviceName")) ?? []);
}

/** A field by a name in any case, as Go reads JSON. */
function fieldOf(value: unknown, name: string): unknown {
  const isNamed = ([key]: readonly [string, unknown]) => key.toLowerCase() === name.toLowerCase();
  return Object.entries(fieldsOf(value)).find(isNamed)?.[1];
}

/** The controllers of the IngressClasses by their names; by "", that of the default class. */
type IngressClasses = ReadonlyMap<string, string>;

function ingressClasses(manifests: readonly Manifest[]): IngressClasses {
  const all = manifests.filter(({ kind }) => kind === "IngressClass");
  return new Map(
    all.flatMap(({ name, annotations, json }) => {
      const controller = textOf(valueAt(json, ["spec", "controller"])) ?? "";
      const isDefault = annotations["ingressclass.kubernetes.io/is-default-class"] === "true";
      return (isDefault ? [name, ""] : [name]).map((one) => [one, controller] as const);
    }),
  );
}

/**
 * aws-load-balancer-controller, and its counterpart in EKS Auto Mode (EKS user guide, "Create an
 * IngressClass"). A class that is not in the input is known by its usual name.
 */
const albControllers: ReadonlySet<string> = new Set([
  "ingress.k8s.aws/alb",
  "eks.amazonaws.com/alb",
]);

function isAlb({ json, annotations }: Manifest, classes: IngressClasses): boolean {
  const named = textOf(valueAt(json, ["spec", "ingressClassName"]));
  const className = named ?? annotations["kubernetes.io/ingress.class"] ?? "";
  const controller = classes.get(className);
  return controller === undefined ? className === "alb" : albControllers.has(controller);
}

/** Of aws-load-balancer-controller and of EKS Auto Mode. */
const nlbClasses: ReadonlySet<string> = new Set(["service.k8s.aws/nlb", "eks.amazonaws.com/nlb"]);

const awsPrefix = "service.beta.kubernetes.io/aws-load-balancer-";

function serviceDelay({ json, annotations }: Manifest): Delay | undefined {
  if (valueAt(json, ["spec", "type"]) !== "LoadBalancer") return undefined;
  const attributes = annotations[`${awsPrefix}target-group-attributes`];
  const loadBalancerClass = textOf(valueAt(json, ["spec", "loadBalancerClass"]));
  const isNlb =
    nlbClasses.has(loadBalancerClass ?? "") ||
    ["external", "nlb", "nlb-ip"].includes(annotations[`${awsPrefix}type`] ?? "");
  return isNlb || attributes !== undefined ? awsDelay(attributes) : classicDelay(annotations);
}

/** A classic load balancer drains only if told to. Source: kubernetes cloud-provider-aws aws.go. */
function classicDelay(annotations: Manifest["annotations"]): Delay | undefined {
  const enabled = annotations[`${awsPrefix}connection-draining-enabled`] ?? "";
  if (!/^(?:true|t|1)$/i.test(enabled)) return undefined;
  const seconds = Number(annotations[`${awsPrefix}connection-draining-timeout`]);
  if (seconds > 0) return { cloud: "aws", seconds, source: "Set" };
  return { cloud: "aws", seconds: awsDefaultDelaySeconds, source: "Default" };
}

function awsDelay(attributes: string | undefined): Delay {
  const found = /deregistration_delay\.timeout_seconds\s*=\s*(\d+)/.exec(attributes ?? "")?.[1];
  if (found === undefined)
    return { cloud: "aws", seconds: awsDefaultDelaySeconds, source: "Default" };
  return { cloud: "aws", seconds: Number(found), source: "Set" };
}

/**
 * The longest of what aws-load-balancer-controller sets behind a Gateway: for all routes, and for
 * single ones. Source: its `apis/gateway/v1/targetgroupconfig_types.go`.
 */
function gatewayDelay({ json }: Manifest): Delay {
  const spec = fieldsOf(valueAt(json, ["spec"]));
  const routes = listOf(spec.routeConfigurations).map((one) => fieldsOf(one).targetGroupProps);
  const delays = routes.map(propsDelay).filter(({ source }) => source === "Set");
  return [propsDelay(spec.defaultConfiguration), ...delays].reduce((longest, one) =>
    one.seconds > longest.seconds ? one : longest,
  );
}

function propsDelay(props: unknown): Delay {
  const attributes = listOf(fieldsOf(props).targetGroupAttributes).map(fieldsOf);
  return awsDelay(attributes.map(({ key, value }) => `${key}=${value}`).join());
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
