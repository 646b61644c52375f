import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { awsPermissions } from "../../src/cloud/aws/setup/permissions.ts";
import { healthEvents, machineEvents } from "../../src/cloud/aws/setup/setup-documents.ts";
import ofAws from "../data/terraform/aws-arguments.json" with { type: "json" };
import ofHelm from "../data/terraform/helm-arguments.json" with { type: "json" };
import {
  type Block,
  iamActions,
  readHcl,
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
  const code = files.filter((name) => name.endsWith(".tf"));
  const arns = code.flatMap((name) => {
    const text = readFileSync(`deploy/aws/${name}`, "utf8");
    return [...text.matchAll(/\barn:(\$\{[\w.:]+\}|[a-z-]+)/g)].map(([, partition]) => partition);
  });
  expect(code.length).toBeGreaterThan(1);
  // biome-ignore lint/suspicious/noTemplateCurlyInString: so Terraform writes it.
  expect([...new Set(arns)]).toEqual(["${local.partition}"]);
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

  it.each([
    ["machines", machineEvents],
    ["health", healthEvents],
  ])("has the event pattern of `setup aws` in the rule %s", (name, pattern) => {
    const { event_pattern } = resources.get(`aws_cloudwatch_event_rule.${name}`) ?? {};
    const [, object = ""] = /^\$\{jsonencode\((.*)\)\}$/s.exec(String(event_pattern)) ?? [];
    // Apart from `=` and the missing commas, the object is written as in YAML.
    const flow = object.replaceAll(/ *= /g, ": ").replaceAll(/\]\n(?=\s*["\w])/g, "],\n");
    expect(parse(flow)).toEqual(JSON.parse(pattern));
  });

  it("gives the function every variable that it reads", () => {
    const files = ["lambda-main.ts", "lambda/create-responder.ts"];
    const texts = files.map((name) => readFileSync(`src/cli/${name}`, "utf8"));
    const read = new Set(texts.join().match(/(?<=env\.)LASTCALL_\w+/g));
    const { environment } = resources.get("aws_lambda_function.responder") ?? {};
    const given = JSON.stringify(environment);
    expect(given).toContain("var.responder_environment");
    const module = readFileSync("deploy/aws/terraform/variables.tf", "utf8");
    expect(read.size).toBeGreaterThan(3);
    expect([...read].filter((one) => !`${given}${module}`.includes(one))).toEqual([]);
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

it.each(["docs/cloud/aws.md", "docs/ja/migrate.md"])(
  "%s shows a role with what the responder calls, and nothing else",
  (page) => {
    const text = readFileSync(new URL(`../../${page}`, import.meta.url), "utf8");
    const policy = /```json\n(\s*\{"Version"[\s\S]*?)```/.exec(text)?.[1] ?? "{}";
    expect(iamActions(JSON.parse(policy))).toEqual([...responderCalls, ...ofLambda].sort());
  },
);
