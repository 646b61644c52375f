import { describe, expect, it } from "vitest";
import { auditYaml } from "./support/audit-yaml.ts";
import { remarks } from "./support/rule-remarks.ts";

describe("a load balancer's delay", () => {
  const attributes = "service.beta.kubernetes.io/aws-load-balancer-target-group-attributes";
  const service = (annotations: string, spec = "type: LoadBalancer") =>
    `{apiVersion: v1, kind: Service, metadata: {name: s, annotations: {${annotations}}}, spec: {${spec}}}\n`;
  const nlb = "service.beta.kubernetes.io/aws-load-balancer-type: nlb";
  const classic = (field: "enabled" | "timeout", value: boolean | number) =>
    `service.beta.kubernetes.io/aws-load-balancer-connection-draining-${field}: "${value}"`;
  const ingress = (annotations: string, spec: string) =>
    `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: i, annotations: {${annotations}}}, spec: {${spec}}}\n`;
  const alb = "alb.ingress.kubernetes.io/target-group-attributes";
  const isDefault = 'ingressclass.kubernetes.io/is-default-class: "true"';
  const ingressClass = (name: string, controller: string, annotations = "") =>
    `{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: ${name}, annotations: {${annotations}}}, spec: {controller: ${controller}}}\n---\n`;
  const delayOf = (seconds: number) =>
    `[{key: deregistration_delay.timeout_seconds, value: "${seconds}"}]`;
  const targetGroups = (attributes: string, ofRoute?: string) => {
    const route = `{routeIdentifier: {kind: HTTPRoute}, targetGroupProps: {targetGroupAttributes: ${ofRoute}}}`;
    const routes = ofRoute === undefined ? "[]" : `[${route}]`;
    return `{apiVersion: gateway.k8s.aws/v1, kind: TargetGroupConfiguration, metadata: {name: g}, spec: {targetReference: {name: s}, defaultConfiguration: {targetGroupAttributes: ${attributes}}, routeConfigurations: ${routes}}}\n`;
  };

  it.each([
    { yaml: service(`${attributes}: deregistration_delay.timeout_seconds=121`), seconds: 121 },
    {
      yaml: service(`${attributes}: deregistration_delay.timeout_seconds=120`),
      seconds: undefined,
    },
    { yaml: service(`${attributes}: preserve_client_ip.enabled=true`), seconds: 300 },
    {
      yaml: service("", "type: LoadBalancer, loadBalancerClass: service.k8s.aws/nlb"),
      seconds: 300,
    },
    { yaml: service("a: b"), seconds: undefined },
    { yaml: service(classic("timeout", 300)), seconds: undefined },
    {
      yaml: service(`${classic("enabled", false)}, ${classic("timeout", 300)}`),
      seconds: undefined,
    },
    { yaml: service(`${classic("enabled", true)}, ${classic("timeout", 240)}`), seconds: 240 },
    {
      yaml: service(`${classic("enabled", true)}, ${classic("timeout", 60)}`),
      seconds: undefined,
    },
    { yaml: service(classic("enabled", true)), seconds: 300 },
    {
      yaml: service(`${nlb}, ${classic("enabled", true)}, ${classic("timeout", 60)}`),
      seconds: 300,
    },
    { yaml: service("a: b", "type: ClusterIP"), seconds: undefined },
    { yaml: ingress("a: b", "ingressClassName: alb"), seconds: 300 },
    {
      yaml: ingress(`${alb}: deregistration_delay.timeout_seconds=30`, "ingressClassName: alb"),
      seconds: undefined,
    },
    { yaml: ingress("a: b", "ingressClassName: nginx"), seconds: undefined },
    {
      yaml: service("", "type: LoadBalancer, loadBalancerClass: eks.amazonaws.com/nlb"),
      seconds: 300,
    },
    {
      yaml: ingressClass("web", "ingress.k8s.aws/alb") + ingress("", "ingressClassName: web"),
      seconds: 300,
    },
    {
      yaml: ingressClass("web", "eks.amazonaws.com/alb") + ingress("", "ingressClassName: web"),
      seconds: 300,
    },
    {
      yaml: ingressClass("alb", "k8s.io/ingress-nginx") + ingress("", "ingressClassName: alb"),
      seconds: undefined,
    },
    { yaml: ingressClass("web", "ingress.k8s.aws/alb") + ingress("", ""), seconds: undefined },
    {
      yaml: ingressClass("web", "ingress.k8s.aws/alb", isDefault) + ingress("", ""),
      seconds: 300,
    },
    {
      yaml:
        ingressClass("web", "ingress.k8s.aws/alb", isDefault) +
        ingress("kubernetes.io/ingress.class: nginx", ""),
      seconds: undefined,
    },
    { yaml: targetGroups(delayOf(300)), seconds: 300 },
    { yaml: targetGroups(delayOf(60)), seconds: undefined },
    { yaml: targetGroups("[{key: stickiness.enabled, value: 'true'}]"), seconds: 300 },
    { yaml: targetGroups(delayOf(60), delayOf(900)), seconds: 900 },
    { yaml: targetGroups(delayOf(60), "[]"), seconds: undefined },
    { yaml: targetGroups(delayOf(900)).replace("gateway.k8s.aws", "x.io"), seconds: undefined },
    {
      yaml: "{apiVersion: cloud.google.com/v1, kind: BackendConfig, metadata: {name: b}, spec: {connectionDraining: {drainingTimeoutSec: 60}}}\n",
      seconds: 60,
    },
  ])("$yaml drains for $seconds s", async ({ yaml, seconds }) => {
    const [found] = await remarks("lb-delay-over-notice", yaml);

    if (seconds === undefined) expect(found).toBe(undefined);
    else expect(found).toContain(`drain for ${seconds} s`);
  });

  const delay = (seconds: number) => `${alb}: deregistration_delay.timeout_seconds=${seconds}`;
  const backend = (name: string) => `{service: {name: ${name}, port: {number: 80}}}`;
  const behind = (...names: readonly string[]) => {
    const paths = names.map(
      (name) => `{path: /${name}, pathType: Prefix, backend: ${backend(name)}}`,
    );
    return `ingressClassName: alb, rules: [{http: {paths: [${paths.join(", ")}]}}]`;
  };
  const inside = "type: ClusterIP";
  const byAction = (name: string) =>
    `ingressClassName: alb, defaultBackend: {service: {name: ${name}, port: {name: use-annotation}}}`;
  const action = (name: string, json: object) =>
    `alb.ingress.kubernetes.io/actions.${name}: '${JSON.stringify(json)}'`;
  // As the controller reads JSON: with names of fields in any case.
  const redirect = action("redirect", { Type: "redirect", RedirectConfig: { Port: "443" } });
  const arn = { targetGroupARN: "arn:aws:elasticloadbalancing:…" };
  const forward = action("weighted", {
    type: "forward",
    forwardConfig: { targetGroups: [{ ServiceName: "s", servicePort: 80, weight: 1 }, arn] },
  });
  const others = action("others", { type: "forward", ...arn });

  it.each([
    ["is that of the Service", delay(300), behind("s"), delay(30), []],
    [
      "is that of the Service, if that is longer",
      delay(30),
      behind("s"),
      delay(900),
      ["Service 900"],
    ],
    [
      "is the default, if the Service has other attributes",
      delay(30),
      behind("s"),
      `${alb}: a=b`,
      ["Service 300"],
    ],
    [
      "is that of the default backend",
      delay(30),
      `ingressClassName: alb, defaultBackend: ${backend("s")}`,
      delay(900),
      ["Service 900"],
    ],
    [
      "is that of the Ingress, if the Service has none",
      delay(300),
      behind("s"),
      "a: b",
      ["Ingress 300"],
    ],
    [
      "is that of the Ingress for a Service that is not known",
      delay(300),
      behind("s", "t"),
      delay(30),
      ["Ingress 300"],
    ],
    [
      "does not depend on Services that the Ingress does not name",
      delay(30),
      behind("t"),
      delay(900),
      [],
    ],
    ["is none of a redirect", redirect, byAction("redirect"), "a: b", []],
    [
      "is that of the Services that an action names",
      forward,
      byAction("weighted"),
      delay(900),
      ["Service 900"],
    ],
    ["is that of such a Service, if that is shorter", forward, byAction("weighted"), delay(30), []],
    ["is not known of another's target group", others, byAction("others"), "a: b", []],
    [
      "is that of the Ingress for an action that cannot be read",
      "a: b",
      byAction("missing"),
      "a: b",
      ["Ingress 300"],
    ],
  ])("behind an ALB %s", async (_, onIngress, spec, onService, expected) => {
    const yaml = `${ingress(onIngress, spec)}---\n${service(onService, inside)}`;
    const { findings } = await auditYaml(yaml, { platforms: ["eks"] });
    const own = findings.filter(({ rule }) => rule === "lb-delay-over-notice");
    const parts = own.map(({ object, message }) => {
      const seconds = /drain for (\d+) s/.exec(message)?.[1];
      return `${object.split(" ")[0]} ${seconds}`;
    });
    expect(parts).toEqual(expected);
  });
});
