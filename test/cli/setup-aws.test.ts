import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { makeFakeAws } from "../support/fake-aws.ts";
import type { FakeTools } from "../support/fake-tools.ts";
import { runSetupOn } from "../support/run-setup.ts";

const plain = {
  cloud: "aws",
  account: "123456789012",
  region: "eu-west-1",
  cluster: "main",
  serviceAccount: "lastcall",
  role: "lastcall",
  release: "Recreate",
  identity: "PodIdentity",
  sqsCompleteHooks: true,
};
const clusterArn = "arn:aws:eks:eu-west-1:123456789012:cluster/main";
const mark = `${clusterArn}/lastcall/lastcall`;
const roleArn = "arn:aws:iam::123456789012:role/lastcall";
const linked = { "annotation-lastcall-eks.amazonaws.com_role-arn": roleArn };
const marked = { ...linked, "annotation-lastcall-lastcall.dev_identity": roleArn };
const issuer = "oidc.eks.eu-west-1.amazonaws.com/id/EXAMPLED539D4633E53DE1B71EXAMPLE";

let aws: FakeTools;
beforeEach(() => {
  aws = makeFakeAws();
  aws.put("cluster", `https://${issuer}`);
  aws.put("addon");
  aws.put("service-account");
});
afterEach(() => aws.remove());

const foundations = ["addon", "cluster", "service-account"];
const writes = /\|(create|put|update|set|delete|remove|annotate)/;
const changes = () => aws.calls().filter((call) => writes.test(call));
const setup = (options: object) => runSetupOn(aws, { ...plain, ...options });

describe.each([
  ["with Pod Identity and a queue", { queue: "lastcall-main" }],
  ["with IRSA", { identity: "IRSA" }],
  ["with IRSA and a queue", { identity: "IRSA", queue: "q" }],
])("lastcall setup aws %s", (_, options) => {
  beforeEach(() => aws.put("provider"));

  it("creates everything, and nothing when run again", async () => {
    expect(await setup(options)).toMatchObject({ code: 0, err: "" });
    const made = aws.standing();
    expect(made).toMatchObject({ role: mark });
    aws.forget();
    expect(await setup(options)).toMatchObject({ code: 0, err: "" });
    expect(aws.standing()).toEqual(made);
    expect(changes().filter((call) => call.includes("|create-"))).toEqual([]);
  });

  it("does the same with version 1 of AWS's command line, whose errors all end with 255", async () => {
    aws.put("version-1");
    const before = aws.standing();
    expect(await setup(options)).toMatchObject({ code: 0, err: "" });
    expect(await setup({ ...options, undo: true })).toMatchObject({ code: 0, err: "" });
    expect(aws.standing()).toEqual(before);
  });

  it("removes everything with --undo, and nothing when run again", async () => {
    const before = aws.standing();
    await setup(options);
    expect(await setup({ ...options, undo: true })).toMatchObject({ code: 0, err: "" });
    expect(aws.standing()).toEqual(before);
    aws.forget();
    expect(await setup({ ...options, undo: true })).toMatchObject({ code: 0, err: "" });
    expect(changes()).toEqual([]);
  });
});

describe("lastcall setup aws", () => {
  it("associates the role with the ServiceAccount, which needs no annotation", async () => {
    await setup({});
    expect(aws.standing()).toMatchObject({ association: `${roleArn} ${mark}` });
    expect(Object.keys(aws.standing()).join()).not.toContain("annotation");
    expect(aws.calls().some((call) => call.startsWith("kubectl"))).toBe(false);
  });

  it("with IRSA trusts one ServiceAccount of the cluster's issuer, and annotates it", async () => {
    aws.put("provider");
    await setup({ identity: "IRSA" });
    expect(aws.standing()).toMatchObject(marked);
    expect(JSON.parse(aws.standing().trust ?? "")).toMatchObject({
      Statement: [
        {
          Principal: { Federated: `arn:aws:iam::123456789012:oidc-provider/${issuer}` },
          Action: "sts:AssumeRoleWithWebIdentity",
          Condition: {
            StringEquals: {
              [`${issuer}:aud`]: "sts.amazonaws.com",
              [`${issuer}:sub`]: "system:serviceaccount:lastcall:lastcall",
            },
          },
        },
      ],
    });
  });

  it("feeds the queue by two rules, and allows no other sender", async () => {
    const { out } = await setup({ queue: "q" });
    const arn = "arn:aws:sqs:eu-west-1:123456789012:q";
    expect(aws.standing()).toMatchObject({
      "target-q": `Id=lastcall,Arn=${arn}`,
      "target-q-health": `Id=lastcall,Arn=${arn}`,
    });
    expect(JSON.parse(aws.standing()["pattern-q-health"] ?? "").source).toEqual(["aws.health"]);
    const { Policy } = JSON.parse(aws.standing()["queue-attributes"] ?? "");
    const rule = "arn:aws:events:eu-west-1:123456789012:rule/q";
    expect(JSON.parse(Policy).Statement[0]).toMatchObject({
      Resource: arn,
      Condition: { ArnEquals: { "aws:SourceArn": [rule, `${rule}-health`] } },
    });
    expect(out).toContain("--sqs-queue-url https://sqs.eu-west-1.amazonaws.com/123456789012/q");
  });

  it("waits for a new role to propagate", async () => {
    aws.put("slow-role");
    expect(await setup({})).toMatchObject({ code: 0 });
    expect(aws.calls()).toContain("sleep|1");
  });

  it("reports a rule's target that AWS did not add, although the call succeeded", async () => {
    aws.put("no-target");
    expect((await setup({ queue: "q" })).err).toContain("Cannot send events of the rule q");
  });

  it("warns that the add-on is missing, and continues", async () => {
    aws.remove();
    aws = makeFakeAws();
    aws.put("cluster");
    const { code, err } = await setup({});
    expect(code).toBe(0);
    expect(err).toContain("aws eks create-addon --cluster-name main");
  });
});

describe("lastcall setup aws changes nothing", () => {
  it.each([
    ["in another account", { account: "210987654321" }, [], "the account 123456789012"],
    [
      "if the role belongs to somebody else",
      {},
      [["role", "None"]],
      "the role lastcall already exists",
    ],
    [
      "if the role belongs to another cluster",
      {},
      [["role", "old"]],
      "the role lastcall already exists",
    ],
    [
      "if the role belongs to a cluster of the same name in another region",
      {},
      [["role", "arn:aws:eks:us-east-1:123456789012:cluster/main"]],
      "the role lastcall already exists",
    ],
    [
      "if the role belongs to an installation in another namespace",
      {},
      [["role", `${clusterArn}/other/lastcall`]],
      "the role lastcall already exists",
    ],
    [
      "if the role has the mark of an earlier version",
      {},
      [["role", "main"]],
      `aws iam tag-role --role-name lastcall --tags Key=lastcall-cluster,Value=${mark}`,
    ],
    [
      "if the queue has the mark of an earlier version",
      { queue: "q" },
      [["queue", "main"]],
      `aws sqs tag-queue --queue-url https://sqs.eu-west-1.amazonaws.com/123456789012/q --tags lastcall-cluster=${mark}`,
    ],
    [
      "if a rule has the mark of an earlier version",
      { queue: "q" },
      [["rule-q", "main"]],
      `aws events tag-resource --resource-arn arn:aws:events:eu-west-1:123456789012:rule/q --tags Key=lastcall-cluster,Value=${mark}`,
    ],
    [
      "if the queue belongs to somebody else",
      { queue: "q" },
      [["queue", "None"]],
      "the queue q already exists",
    ],
    [
      "if a rule belongs to somebody else",
      { queue: "q" },
      [["rule-q-health", "None"]],
      "the rule q-health already exists",
    ],
    [
      "if the ServiceAccount has another role",
      {},
      [["association", "arn:aws:iam::123456789012:role/other"]],
      "already has the role arn:aws:iam::123456789012:role/other",
    ],
    ["if IAM does not know the issuer", { identity: "IRSA" }, [], "create-open-id-connect"],
  ] as const)("%s", async (_, options, standing, sentence) => {
    for (const [what, content] of standing) aws.put(what, content);
    const before = aws.standing();
    const { code, err } = await setup(options);
    expect(code).toMatchObject({ code: "SCRIPT_FAILED", exitCode: 1 });
    expect(err).toContain(sentence);
    expect(err).toContain("Not finished: nothing was changed\n");
    expect(aws.standing()).toEqual(before);
    expect(changes()).toEqual([]);
  });

  it("if the cluster's ARN and the ServiceAccount are too long for a tag", async () => {
    const { code } = await setup({ serviceAccount: "a".repeat(200) });
    expect(code).toMatchObject({ code: "USAGE" });
    expect((code as Error).message).toMatch(/^Cannot use --service-account: .* too long for a tag/);
    expect(changes()).toEqual([]);
  });

  it("if the cluster does not exist", async () => {
    aws.remove();
    aws = makeFakeAws();
    expect((await setup({})).err).toContain("there is no cluster main in eu-west-1");
    expect(changes()).toEqual([]);
  });

  it.each([false, true])(
    "if SQS responds that there is no such queue to whoever has no access to it (--undo: %s)",
    async (undo) => {
      if (undo) await setup({ queue: "q" });
      else aws.put("queue", "None");
      aws.put("queue-hidden");
      aws.forget();
      const before = aws.standing();
      const { code, err, out } = await setup({ queue: "q", undo });
      expect(code).toMatchObject({ code: "SCRIPT_FAILED" });
      expect(err).toContain("Cannot tell whose the queue q is: sqs list-queues has it");
      expect(err).toContain("Not finished: nothing was changed\n");
      expect(out).not.toContain("Done");
      expect(aws.standing()).toEqual(before);
      expect(changes()).toEqual([]);
    },
  );

  it("if it may not list the queues, so that it cannot tell", async () => {
    const denied = "An error occurred (AccessDenied) when calling the ListQueues operation";
    aws.break("sqs|list-queues", { exitCode: 254, message: denied });
    const { code, err } = await setup({ queue: "q" });
    expect(code).toMatchObject({ code: "SCRIPT_FAILED" });
    expect(err).toContain(denied);
    expect(changes()).toEqual([]);
  });

  it("to a queue that somebody creates at the same moment", async () => {
    aws.put("queue", "None");
    aws.put("queue-attributes", "theirs");
    aws.put("queue-unlisted");
    const { code, err } = await setup({ queue: "q" });
    expect(code).toMatchObject({ code: "SCRIPT_FAILED" });
    expect(err).toContain("QueueAlreadyExists");
    expect(aws.standing()).toMatchObject({ queue: "None", "queue-attributes": "theirs" });
  });

  it("without --apply", async () => {
    expect((await setup({ apply: false })).out).toMatch(/^#!\/usr\/bin\/env bash\n/);
    expect(aws.calls()).toEqual([]);
  });

  it.each(["account", "region", "cluster"])("without --%s", async (flag) => {
    const { code } = await setup({ [flag]: undefined });
    expect(code).toMatchObject({ code: "USAGE", exitCode: 2 });
    expect(String(code)).toContain(`Cannot set up aws: --${flag} is required`);
    expect(aws.calls()).toEqual([]);
  });

  it("for an invalid tag", async () => {
    const { code } = await setup({ awsManagedTag: "=a" });
    expect(String(code)).toContain('Cannot use --aws-managed-tag: found "=a"');
    expect(aws.calls()).toEqual([]);
  });
});

describe("lastcall setup aws --undo", () => {
  it("says what it did not look for", async () => {
    await setup({ queue: "q" });
    const { out } = await setup({ undo: true });
    expect(out).toContain("with these options is removed.\n");
    expect(out).toContain("Not looked for: an annotation (--identity IRSA), a queue (--queue).");
  });

  it("keeps a role of others and its association", async () => {
    aws.put("role", "None");
    aws.put("association", "arn:aws:iam::123456789012:role/other");
    const before = aws.standing();
    expect((await setup({ undo: true })).code).toMatchObject({ code: "SCRIPT_FAILED" });
    expect(aws.standing()).toEqual(before);
  });

  it("removes its own role even if the ServiceAccount now has another", async () => {
    await setup({});
    aws.put("association", "arn:aws:iam::123456789012:role/other");
    expect((await setup({ undo: true })).code).toBe(0);
    expect(Object.keys(aws.standing()).sort()).toEqual([...foundations, "association"].sort());
  });

  it.each([
    ["the role of a cluster of the same name in another region", { region: "us-east-1" }],
    ["the role of another cluster", { cluster: "other" }],
    ["the role of an installation in another namespace", { namespace: "other" }],
    ["the role of another ServiceAccount", { serviceAccount: "other" }],
  ])("keeps %s", async (_, options) => {
    await setup({});
    const before = aws.standing();
    expect((await setup({ ...options, undo: true })).code).toMatchObject({ code: "SCRIPT_FAILED" });
    expect(aws.standing()).toEqual(before);
  });

  it.each(["main", clusterArn])(
    "keeps a role with the mark of an earlier version, %s, until it is marked",
    async (former) => {
      await setup({});
      aws.put("role", former);
      const before = aws.standing();
      const { code, err } = await setup({ undo: true });
      expect(code).toMatchObject({ code: "SCRIPT_FAILED" });
      expect(err).toContain("Its tag names only the cluster, as set by Terraform and");
      expect(aws.standing()).toEqual(before);
      aws.put("role", mark);
      expect((await setup({ undo: true })).code).toBe(0);
    },
  );

  it("fails if the annotation stays because kubectl failed, and removes the rest", async () => {
    aws.put("provider");
    const before = aws.standing();
    await setup({ identity: "IRSA" });
    aws.put("cluster-gone");
    const { code, err, out } = await setup({ identity: "IRSA", undo: true });
    expect(code).toMatchObject({ code: "SCRIPT_FAILED" });
    expect(err).toContain(
      "Not finished: kubectl failed, so the annotation eks.amazonaws.com/role-arn of lastcall/lastcall is still there",
    );
    expect(out).not.toContain("Done");
    expect(aws.standing()).toEqual({ ...before, ...marked, "cluster-gone": "" });
  });

  it("succeeds if kubectl failed and AWS says that the cluster is gone", async () => {
    aws.put("provider");
    await setup({ identity: "IRSA" });
    aws.put("cluster-gone");
    const options = { ...plain, identity: "IRSA", undo: true };
    const { code, out } = await runSetupOn(withoutCluster(aws), options);
    expect(code).toBe(0);
    expect(out).toContain(
      "The cluster main is gone, and the annotation eks.amazonaws.com/role-arn",
    );
    expect(aws.has("role")).toBe(false);
  });

  it("works when the cluster is gone", async () => {
    await setup({});
    const { code } = await runSetupOn(withoutCluster(aws), { ...plain, undo: true });
    expect(code).toBe(0);
    expect(aws.has("role")).toBe(false);
  });
});

function withoutCluster(tools: FakeTools): FakeTools {
  const kept = tools.standing();
  tools.remove();
  aws = makeFakeAws();
  for (const [what, content] of Object.entries(kept)) {
    if (what !== "cluster") aws.put(what, content);
  }
  return aws;
}
