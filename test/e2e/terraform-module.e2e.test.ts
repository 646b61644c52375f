/**
 * The Terraform module with stand-ins for its providers: Terraform itself evaluates it, and the
 * real Helm renders the chart with the values that result.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { chart, helm, manifestsIn, oldest } from "../support/helm.ts";
import { TerraformStandIn, terraform } from "../support/terraform-stand-in.ts";

const registry = "123456789012.dkr.ecr.eu-west-1.amazonaws.com";
const digest = `sha256:${"0123456789abcdef".repeat(4)}`;
const controller_image = { repository: `${registry}/lastcall`, tag: "0.1.0" };
const agent_image = { repository: `${registry}/lastcall-agent`, digest };
const release = { cluster_name: "main", release_chart: chart, controller_image, agent_image };
const oidc_provider_arn = `arn:aws:iam::123456789012:oidc-provider/oidc.eks.example/id/ABC`;

describe.skipIf(terraform === undefined)("deploy/aws/terraform", () => {
  let home: string;
  let module: TerraformStandIn;

  beforeAll(() => {
    home = mkdtempSync(join(tmpdir(), "lastcall-terraform-"));
    module = new TerraformStandIn(join(home, "module"));
  });
  afterAll(() => rmSync(home, { recursive: true, force: true }));

  /** What Helm installs with the values of the release. */
  function installed(variables: object) {
    const { values } = module.made(variables).helm_release__lastcall?.[0] ?? {};
    const files = (values as readonly string[]).flatMap((text, place) => {
      const file = join(home, `values-${place}.yaml`);
      writeFileSync(file, text);
      return ["--values", file];
    });
    const flags = ["--namespace", "lastcall", "--kube-version", oldest, ...files];
    const { stdout, stderr, code } = helm(["template", "lastcall", chart, ...flags], { home });
    expect({ stderr, code }).toEqual({ stderr: "", code: 0 });
    return { objects: manifestsIn(stdout), text: stdout };
  }

  test("is valid", () => module.validate());

  test("installs the controller and the agents from the images that are named", () => {
    const { objects, text } = installed({
      ...release,
      action_hosts: ["hooks.slack.com", "*.example.com:443"],
      policies: [
        { name: "spot", spec: { lifetime: { max: "24h" } } },
        { name: "batch", spec: { budgets: [{ nodes: 1 }], windows: [] } },
      ],
      release_values: { controller: { options: { "log-level": "debug" }, replicas: 3 } },
    });
    const images = [...text.matchAll(/^ +image: "(.*)"$/gm)].map(([, image]) => image);
    expect(images.toSorted()).toEqual([
      `${registry}/lastcall-agent@${digest}`,
      `${registry}/lastcall:0.1.0`,
    ]);
    for (const argument of [
      "--action-hosts=hooks.slack.com,*.example.com:443",
      "--sqs-queue-url=https://sqs.eu-west-1.amazonaws.com/123456789012/lastcall",
      "--sqs-unknown=Delete",
      "--log-level=debug",
    ]) {
      expect(text).toContain(`- "${argument}"`);
    }
    expect(objects.get("Deployment lastcall/lastcall")).toMatchObject({ spec: { replicas: 3 } });
    expect(objects.has("DeparturePolicy /spot") && objects.has("DeparturePolicy /batch")).toBe(
      true,
    );
  });

  test("needs no image for agents that it does not install", () => {
    const { cluster_name, release_chart } = release;
    const variables = { cluster_name, release_chart, controller_image };
    expect(() => module.made(variables)).toThrow("Set controller_image, and agent_image unless");
    const { objects } = installed({ ...variables, release_values: { agent: { enabled: false } } });
    expect([...objects.keys()].filter((key) => key.startsWith("DaemonSet"))).toEqual([]);
  });

  test("annotates the ServiceAccount for IRSA, and trusts it alone", () => {
    const irsa = { ...release, identity: "IRSA", oidc_provider_arn };
    const { objects } = installed({ ...irsa, service_account: "pilot" });
    expect(objects.get("ServiceAccount lastcall/pilot")).toMatchObject({
      metadata: { annotations: { "eks.amazonaws.com/role-arn": expect.stringMatching(/^arn:/) } },
    });
    const made = module.made({ ...irsa, service_account: "pilot" });
    const [role] = made.aws_iam_role__controller ?? [];
    expect(JSON.parse(String(role?.assume_role_policy))).toMatchObject({
      Statement: [
        {
          Principal: { Federated: oidc_provider_arn },
          Condition: {
            StringEquals: {
              "oidc.eks.example/id/ABC:aud": "sts.amazonaws.com",
              "oidc.eks.example/id/ABC:sub": "system:serviceaccount:lastcall:pilot",
            },
          },
        },
      ],
    });
    expect(made.aws_eks_pod_identity_association__controller).toEqual([]);
  });

  test("gives the function its actions, and the rule only if it listens", () => {
    const zip = join(home, "responder.zip");
    writeFileSync(zip, "zip");
    const responder = {
      ...{ cluster_name: "main", responder_zip: zip, responder_managed_tag: "team=spot" },
      responder_environment: { LASTCALL_ACTION_HOSTS: "hooks.slack.com" },
      responder_actions: [
        { name: "targets", at: "AtNotice", deregisterTargets: { wait: true } },
        { name: "quarantine", at: "AtNotice", replaceSecurityGroups: { groupIds: ["sg-0abc"] } },
      ],
    };
    const made = module.made(responder);
    const { environment } = made.aws_lambda_function__responder?.[0] ?? {};
    const { variables } = environment as { readonly variables: Readonly<Record<string, string>> };
    expect(JSON.parse(variables.LASTCALL_ACTIONS ?? "")).toEqual(responder.responder_actions);
    expect(variables).toMatchObject({
      ...{ LASTCALL_ACTION_HOSTS: "hooks.slack.com", LASTCALL_AWS_MANAGED_TAG: "team=spot" },
    });
    expect(made.aws_lambda_permission__responder).toEqual([]);
    const heard = module.made({ ...responder, responder_listens: true });
    expect(heard.aws_lambda_permission__responder).toHaveLength(1);
    expect(heard.aws_cloudwatch_event_target__responder).toHaveLength(1);
  });

  test.each([
    ["the identity", { identity: "Pod" }, "The identity must be PodIdentity or IRSA."],
    ["IRSA without a provider", { identity: "IRSA" }, "Set oidc_provider_arn"],
    ["a long name", { name: "l".repeat(51) }, "The name must have 1 to 50"],
    ["a release without images", { release_chart: chart }, "no image of Lastcall is published"],
  ])("refuses %s", (_, variables, words) => {
    expect(() => module.made({ cluster_name: "main", ...variables })).toThrow(words);
  });
});
