import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { awsPermissions } from "../../src/cloud/aws/setup/permissions.ts";
import { healthEvents, machineEvents } from "../../src/cloud/aws/setup/setup-documents.ts";
import ofAws from "../data/terraform/aws-arguments.json" with { type: "json" };
import ofHelm from "../data/terraform/helm-arguments.json" with { type: "json" };
import {
  type Block,
  iamActions,
  readHcl,
  readTemplate,
  readTerraform,
  responderCalls,
  terraformVariables,
} from "../support/aws-iac.ts";

const services: Readonly<Record<string, string>> = {
  "client-auto-scaling": "autoscaling",
  "client-ec2": "ec2",
  "client-elastic-load-balancing": "elasticloadbalancing",
  "client-elastic-load-balancing-v2": "elasticloadbalancing",
  "client-lambda": "lambda",
  "client-sns": "sns",
  "client-sqs": "sqs",
};
/** Calls whose permission has another name. */
const rights: Readonly<Record<string, string>> = {
  "lambda:Invoke": "lambda:InvokeFunction",
  "sqs:DeleteMessageBatch": "sqs:DeleteMessage",
  "sqs:ChangeMessageVisibilityBatch": "sqs:ChangeMessageVisibility",
};

/** Every call that the code can make: the commands of the AWS SDK that it imports. */
function calls(): readonly string[] {
  const files = readdirSync("src/cloud/aws", { recursive: true, encoding: "utf8" });
  const found = files
    .filter((name) => name.endsWith(".ts"))
    .flatMap((name) => {
      const text = readFileSync(`src/cloud/aws/${name}`, "utf8");
      return [...text.matchAll(/import \{([^}]*)\} from "@aws-sdk\/([^"]+)"/g)].flatMap(
        ([, names = "", client = ""]) =>
          [...names.matchAll(/\b(\w+)Command\b/g)].map(([, call]) => {
            const action = `${services[client]}:${call}`;
            return rights[action] ?? action;
          }),
      );
    });
  return [...new Set(found)].sort();
}

const granted = awsPermissions.map(({ action }) => action).sort();
/** With these, Lambda itself writes a function's log. */
const ofLambda = ["logs:CreateLogStream", "logs:PutLogEvents"];
/** The doctor calls it with the rights of its caller (docs/doctor.md). */
const ofDoctor = "sqs:GetQueueAttributes";

it("the controller's permissions are exactly the calls that the code can make", () => {
  expect(granted).toEqual(calls().filter((one) => one !== ofDoctor));
});

it("deploy/aws takes the partition of every ARN from the place of deployment", () => {
  const files = readdirSync("deploy/aws", { recursive: true, encoding: "utf8" });
  const code = files.filter((name) => /\.(tf|ya?ml)$/.test(name));
  const arns = code.flatMap((name) => {
    const text = readFileSync(`deploy/aws/${name}`, "utf8");
    return [...text.matchAll(/\barn:(\$\{[\w.:]+\}|[a-z-]+)/g)].map(([, partition]) => partition);
  });
  expect(code.length).toBeGreaterThan(1);
  // biome-ignore lint/suspicious/noTemplateCurlyInString: so both languages write it.
  expect([...new Set(arns)].sort()).toEqual(["${AWS::Partition}", "${local.partition}"]);
});

/** `terraform fmt` sends no requests and reads no settings. */
function format(program: string, ...args: readonly string[]) {
  const env = { ...process.env, TF_CLI_CONFIG_FILE: "/dev/null", CHECKPOINT_DISABLE: "1" };
  return spawnSync(program, args, { env, encoding: "utf8" });
}

const formatter = ["tofu", "terraform"].find((one) => format(one, "version").status === 0);

describe("deploy/aws/terraform", async () => {
  const resources = await readTerraform();

  it.skipIf(formatter === undefined)("is formatted as by terraform fmt", () => {
    const args = ["fmt", "-check", "-diff", "-recursive", "deploy/aws/terraform"];
    const { status, stdout } = format(formatter ?? "", ...args);
    expect({ status, stdout }).toEqual({ status: 0, stdout: "" });
  });

  it("grants the controller what it calls, and nothing else", () => {
    expect(iamActions(resources.get("aws_iam_role_policy.controller"))).toEqual(granted);
  });

  it("installs a chart whose pods get the role", () => {
    const { values, depends_on } = resources.get("helm_release.lastcall") ?? {};
    const [chart] = values as readonly string[];
    expect(chart).toMatch(/serviceAccount = \{\s*name\s*= var\.service_account/);
    expect(chart).toMatch(
      /var\.identity == "IRSA" \? \{ "eks\.amazonaws\.com\/role-arn" = aws_iam_role/,
    );
    expect(JSON.stringify(depends_on)).toMatch(/aws_eks_pod_identity_association\.controller/);
    expect(JSON.stringify(depends_on)).toMatch(/aws_iam_role_policy\.controller/);
  });

  it("installs images that can be pulled, or nothing", () => {
    const { values, lifecycle } = resources.get("helm_release.lastcall") ?? {};
    const [chart = "", more = ""] = [values].flat().map(String);
    expect(chart).toMatch(/\n {4}image\s*= local\.controller_image\n/);
    expect(chart).toMatch(/agent = \{\s*image\s*= local\.agent_image/);
    expect(chart).toMatch(/"action-hosts" = join\(",", var\.action_hosts\)/);
    expect(more).toContain("yamlencode(var.release_values)");
    // No image is published, so the chart's own names can be pulled from nowhere.
    const [{ precondition }] = lifecycle as [{ readonly precondition: readonly Block[] }];
    const conditions = precondition.map(({ condition }) => String(condition)).join();
    expect(conditions).toContain("var.controller_image != null");
    expect(conditions).toContain("var.agent_image != null");
  });

  it("grants the responder what it calls, and nothing else", () => {
    const found = iamActions(resources.get("aws_iam_role_policy.responder"));
    expect(found).toEqual([...responderCalls, ...ofLambda].sort());
  });

  const known = { ...ofAws, ...ofHelm };
  const ofEvery = new Set(["count", "for_each", "depends_on", "lifecycle"]);

  it.each([...resources])("gives %s only arguments that the provider knows", (name, block) => {
    const type = name.split(".")[0] as keyof typeof known;
    const names = Object.keys(block).filter((one) => !ofEvery.has(one));
    expect(names.length).toBeGreaterThan(0);
    expect(names.filter((one) => !known[type].includes(one))).toEqual([]);
  });

  it("is shown with the settings that it has, and a provider that can reach the cluster", async () => {
    const readme = readFileSync("deploy/aws/README.md", "utf8");
    const example = /```hcl\n([\s\S]*?)```/.exec(readme)?.[1] ?? "";
    const { module, provider } = await readHcl("example.tf", example);
    const { source, ...settings } = module?.lastcall?.[0] ?? {};
    expect(source).toBe("./deploy/aws/terraform");
    const variables = await terraformVariables();
    expect(Object.keys(settings).filter((one) => !variables.includes(one))).toEqual([]);
    // An object since 3.0, no longer a block, which would be parsed as a list.
    expect(provider?.helm?.[0]?.kubernetes).toMatchObject({ config_path: expect.any(String) });
    expect(Object.keys(provider ?? {}).sort()).toEqual(["aws", "helm"]);
  });
});

describe("deploy/aws/cloudformation", () => {
  const { Resources } = readTemplate();
  const propertiesOf = (name: string) => Resources[name]?.Properties as Block;

  it("grants the controller what it calls, and nothing else", () => {
    expect(iamActions(propertiesOf("ControllerRole").Policies)).toEqual(granted);
  });

  it("grants the responder what it calls, and nothing else", () => {
    const found = iamActions(propertiesOf("ResponderRole").Policies);
    expect(found).toEqual([...responderCalls, ...ofLambda].sort());
  });

  it.each([
    ["MachineRule", machineEvents],
    ["HealthRule", healthEvents],
  ])("has the event pattern of `setup aws` in %s", (name, pattern) => {
    expect(propertiesOf(name).EventPattern).toEqual(JSON.parse(pattern));
  });
});

/** The module's variables, and the corresponding parameters of the template. */
const twins: Readonly<Record<string, readonly string[]>> = {
  cluster_name: ["ClusterName"],
  name: ["Name"],
  namespace: ["Namespace"],
  service_account: ["ServiceAccount"],
  // A template knows no OIDC issuer: without Pod Identity it leaves the role to others.
  identity: ["Associate"],
  responder_zip: ["ResponderBucket", "ResponderKey"],
  responder_actions: ["ResponderActions"],
  responder_event_fields: ["ResponderEventFields"],
  responder_managed_tag: ["ResponderManagedTag"],
  responder_environment: ["ResponderActionHosts", "ResponderSecret"],
  responder_listens: ["ResponderListens"],
};
interface LambdaFunction {
  readonly Properties: { readonly Environment: { readonly Variables: Block } };
}

/** Variables for what CloudFormation does itself, or in other ways. */
const ofTerraform = [
  ...["action_hosts", "agent_image", "alarm_emails", "controller_image", "oidc_provider_arn"],
  ...["policies", "release_chart", "release_values", "tags"],
];

describe("deploy/aws/terraform and deploy/aws/cloudformation", () => {
  const { Parameters, Resources } = readTemplate();

  it("have the same settings", async () => {
    expect(await terraformVariables()).toEqual([...Object.keys(twins), ...ofTerraform].sort());
    expect(Object.keys(Parameters).sort()).toEqual(Object.values(twins).flat().sort());
  });

  it("give the function every variable that it reads", async () => {
    const files = ["lambda-main.ts", "lambda/create-responder.ts"];
    const texts = files.map((name) => readFileSync(`src/cli/${name}`, "utf8"));
    const read = new Set(texts.join().match(/(?<=env\.)LASTCALL_\w+/g));
    const { Properties } = Resources.Responder as unknown as LambdaFunction;
    expect(Object.keys(Properties.Environment.Variables).sort()).toEqual([...read].sort());
    const { environment } = (await readTerraform()).get("aws_lambda_function.responder") ?? {};
    expect(JSON.stringify(environment)).toContain("var.responder_environment");
  });
});

it.each(["docs/cloud/aws.md", "docs/ja/migrate.md"])(
  "%s shows a role with what the responder calls, and nothing else",
  (page) => {
    const text = readFileSync(new URL(`../../${page}`, import.meta.url), "utf8");
    const policy = /```json\n(\s*\{"Version"[\s\S]*?)```/.exec(text)?.[1] ?? "{}";
    expect(iamActions(JSON.parse(policy))).toEqual([...responderCalls, ...ofLambda].sort());
  },
);
