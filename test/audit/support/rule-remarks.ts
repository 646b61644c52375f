import { auditYaml } from "./audit-yaml.ts";

/** The findings of a rule for the input, as `severity message` lines. */
export async function remarks(rule: string, yaml: string, platform = "gke") {
  const { findings } = await auditYaml(yaml, { platforms: [platform] });
  const own = findings.filter((finding) => finding.rule === rule);
  return own.map((finding) => `${finding.severity} ${finding.message}`);
}

export const withContainer = (container: string, pod = "", kind = "Deployment") =>
  `{apiVersion: apps/v1, kind: ${kind}, metadata: {name: web}, spec: {replicas: 2, template: {metadata: {labels: {app: web}}, spec: {${pod} containers: [{name: main, image: main, ${container}}]}}}}\n`;
