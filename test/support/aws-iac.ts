import { join } from "node:path";
import { convertFiles, parse as parseHcl } from "@cdktf/hcl2json";

/** A Terraform block as JSON: its contents by their own names. */
export type Block = Readonly<Record<string, unknown>>;

type Named = Readonly<Record<string, readonly Block[]>>;

async function convertTerraform() {
  return (await convertFiles(join("deploy", "aws", "terraform"))) as {
    readonly resource: Readonly<Record<string, Named>>;
    readonly variable: Named;
  };
}

/** The blocks of one file: modules by name, providers by type. */
export async function readHcl(
  name: string,
  text: string,
): Promise<Readonly<Partial<Record<"module" | "provider", Named>>>> {
  return (await parseHcl(name, text)) as Awaited<ReturnType<typeof readHcl>>;
}

/** The resources of `deploy/aws/terraform`, by type and name. */
export async function readTerraform(): Promise<ReadonlyMap<string, Block>> {
  const { resource } = await convertTerraform();
  return new Map(
    Object.entries(resource).flatMap(([type, named]) =>
      Object.entries(named).map(([name, blocks]) => [`${type}.${name}`, blocks[0] ?? {}] as const),
    ),
  );
}

/** The names of the Terraform variables. */
export async function terraformVariables(): Promise<readonly string[]> {
  return Object.keys((await convertTerraform()).variable);
}

const actionForm = /^(autoscaling|ec2|elasticloadbalancing|sqs|sns|lambda|logs|sts):\w+$/;

/** Every IAM action that occurs anywhere in a value. */
export function iamActions(value: unknown): readonly string[] {
  const found = new Set<string>();
  const walk = (part: unknown): void => {
    if (typeof part === "string") {
      for (const word of part.match(/[a-z][a-z0-9]+:[A-Z]\w+/g) ?? []) {
        if (actionForm.test(word)) found.add(word);
      }
    } else if (typeof part === "object" && part !== null) {
      for (const inner of Object.values(part)) walk(inner);
    }
  };
  walk(value);
  return [...found].sort();
}

/** The calls of a function without a cluster; test/cli/lambda/calls.test.ts makes each of them. */
export const responderCalls = [
  "autoscaling:DescribeAutoScalingInstances",
  "autoscaling:DetachInstances",
  "ec2:DescribeInstances",
  "ec2:DescribeNetworkInterfaces",
  "ec2:DescribeSecurityGroups",
  "ec2:DescribeTags",
  "ec2:ModifyNetworkInterfaceAttribute",
  "elasticloadbalancing:DeregisterInstancesFromLoadBalancer",
  "elasticloadbalancing:DeregisterTargets",
  "elasticloadbalancing:DescribeInstanceHealth",
  "elasticloadbalancing:DescribeLoadBalancers",
  "elasticloadbalancing:DescribeTargetGroups",
  "elasticloadbalancing:DescribeTargetHealth",
  "sns:Publish",
];
