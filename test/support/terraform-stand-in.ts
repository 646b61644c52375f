import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** No requests, and nobody's settings. */
const env = {
  ...process.env,
  ...{ TF_CLI_CONFIG_FILE: "/dev/null", CHECKPOINT_DISABLE: "1", TF_IN_AUTOMATION: "1" },
};

function run(program: string, cwd: string, args: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(program, args, { cwd, env, encoding: "utf8" });
  return { ok: status === 0, stdout, stderr };
}

/** The name of an installed program that evaluates Terraform modules, if there is one. */
export const terraform = ["tofu", "terraform"].find((one) => run(one, ".", ["version"]).ok);

/** What a provider would return, and the data sources. */
const computed: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  aws_sqs_queue: {
    arn: "arn:aws:sqs:eu-west-1:123456789012:lastcall",
    url: "https://sqs.eu-west-1.amazonaws.com/123456789012/lastcall",
  },
  aws_iam_role: { arn: "arn:aws:iam::123456789012:role/lastcall-controller", id: "role" },
  aws_cloudwatch_event_rule: { arn: "arn:aws:events:eu-west-1:123456789012:rule/lastcall" },
  aws_cloudwatch_log_group: { arn: "arn:aws:logs:eu-west-1:123456789012:log-group:lastcall" },
  aws_lambda_function: { arn: "arn:aws:lambda:eu-west-1:123456789012:function:lastcall" },
  aws_sns_topic: { arn: "arn:aws:sns:eu-west-1:123456789012:lastcall" },
};
const data: readonly (readonly [string, string])[] = [
  ["data.aws_caller_identity.current.account_id", '"123456789012"'],
  ["data.aws_region.current.region", '"eu-west-1"'],
  ["data.aws_partition.current.partition", '"aws"'],
];

const block = (name: string, body: string) => (body.trim() === "" ? "" : `${name} {\n${body}}\n`);

/** A resource of a provider as one of `terraform_data`, which every Terraform has. */
function standIn(type: string, name: string, body: string): string {
  let rest = body;
  const take = (form: RegExp): string => {
    const found = form.exec(rest)?.[0] ?? "";
    rest = rest.replace(found, "");
    return found;
  };
  const own = [
    take(/^ {2}(count|for_each) +=.*\n/m),
    take(/^ {2}lifecycle \{\n.*?^ {2}\}\n/ms),
    take(/^ {2}depends_on = \[.*?\]\n/ms),
  ].join("\n");
  const input = rest.replaceAll(/^ {2}(\w+) \{$/gm, "  $1 = {");
  const more = Object.entries(computed[type] ?? {}).map(([key, value]) => `${key} = "${value}"\n`);
  return block(
    `resource "terraform_data" "${type}__${name}"`,
    `${own}\n  input = {\n${input}\n${more.join("")}  }\n`,
  );
}

/**
 * The module `deploy/aws/terraform` with stand-ins for its providers, which cannot be downloaded
 * where the tests run: every expression, variable, reference and condition is Terraform's own work,
 * the arguments of the resources are not checked.
 */
export class TerraformStandIn {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
    mkdirSync(folder, { recursive: true });
    const source = join(import.meta.dirname, "../../deploy/aws/terraform");
    const made: string[] = [];
    for (const file of readdirSync(source)) {
      let text = readFileSync(join(source, file), "utf8")
        .replace(/ {2}required_providers \{.*?\n {2}\}\n/s, "")
        .replaceAll(/^data "\w+" "current" \{\}\n/gm, "");
      for (const [from, to] of data) text = text.replaceAll(from, to);
      text = text.replaceAll(
        /^resource "(\w+)" "(\w+)" \{\n(.*?)^\}\n/gms,
        (_, type: string, name: string, body: string) => {
          const all = `terraform_data.${type}__${name}`;
          const each = /^ {2}for_each/m.test(body) ? `values(${all})` : all;
          made.push(`    ${type}__${name} = ${each}[*].output\n`);
          return standIn(type, name, body);
        },
      );
      text = text.replaceAll(
        /\b(aws_\w+|helm_release)\.(\w+)(\[[0*]\])?(\.)?/g,
        (_, type, name, at = "", attribute) =>
          `terraform_data.${type}__${name}${at}${attribute === undefined ? "" : ".output."}`,
      );
      writeFileSync(join(folder, file), text);
    }
    writeFileSync(
      join(folder, "made.tf"),
      block('output "made"', `  value = {\n${made.join("")}  }\n`),
    );
    this.#run("init", "-input=false");
  }

  /** Throws Terraform's words if the module is not valid. */
  validate(): void {
    this.#run("validate");
  }

  /**
   * What each resource gets with these variables: by `TYPE__NAME`, one for each instance. Throws
   * Terraform's words if it refuses them.
   */
  made(variables: object): Readonly<Record<string, readonly Readonly<Record<string, unknown>>[]>> {
    rmSync(join(this.#folder, "terraform.tfstate"), { force: true });
    writeFileSync(join(this.#folder, "case.tfvars.json"), JSON.stringify(variables));
    this.#run("apply", "-auto-approve", "-input=false", "-var-file=case.tfvars.json");
    return JSON.parse(this.#run("output", "-json", "made"));
  }

  #run(...args: readonly string[]): string {
    const [command = "", ...more] = args;
    const all = command === "output" ? args : [command, "-no-color", ...more];
    const { ok, stdout, stderr } = run(terraform ?? "terraform", this.#folder, all);
    if (ok) return stdout;
    // Its errors are wrapped to the terminal's width, behind bars.
    throw new Error(stderr.replaceAll(/[\s│╷╵]+/g, " "));
  }
}
