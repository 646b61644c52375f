import { describe, expect, test } from "vitest";
import { parsePolicyObject } from "../../src/config/policy/parse-policy-object.ts";
import { cronProblem } from "../../src/core/limits/windows.ts";
import { handlerValuesSetup, handlerWorkloadSetup } from "../../src/migrate/handler-setup.ts";
import { translateHandler } from "../../src/migrate/termination-handler.ts";
import { onlyWorkload, workloadsOf } from "../../src/migrate/workload.ts";

function ofValues(values: unknown) {
  const made = translateHandler(handlerValuesSetup(values, "values.yaml"));
  for (const policy of made.policies) {
    const read = parsePolicyObject(policy, { cronProblem, unknownFields: "Refuse" });
    expect(read).toHaveProperty("policy");
  }
  return made;
}

const specOf = (values: unknown) => ofValues(values).policies[0]?.spec;
const queue = { enableSqsTerminationDraining: true, queueURL: "https://sqs.example/1/q" };

describe("NTH's reactions", () => {
  // In this order: interruptions, rebalance recommendations, maintenance.
  test.each([
    ["by default", {}, "Drain Ignore Drain"],
    ["with cordonOnly", { cordonOnly: true }, "Cordon Ignore Cordon"],
    ["with rebalance monitoring", { enableRebalanceMonitoring: true }, "Drain Cordon Drain"],
    [
      "with rebalance draining",
      { enableRebalanceMonitoring: true, enableRebalanceDraining: "true" },
      "Drain Drain Drain",
    ],
    [
      "without interruptions and maintenance",
      { enableSpotInterruptionDraining: false, enableScheduledEventDraining: "false" },
      "Ignore Ignore Ignore",
    ],
    [
      "in queue mode, which has no such switches",
      { ...queue, enableSpotInterruptionDraining: false },
      "Drain Drain Drain",
    ],
  ])("%s", (_, values, wanted) => {
    const spec = specOf(values);
    const [spotInterruption, rebalance, maintenance] = wanted.split(" ");
    expect(spec).toMatchObject({ onNotice: { spotInterruption, rebalance, maintenance } });
    // NTH plans nothing.
    expect(spec).not.toHaveProperty("lifetime");
  });

  test("with dryRun set become a policy with dryRun", () => {
    expect(specOf({ dryRun: true })).toMatchObject({ dryRun: true });
  });

  test.each([
    [{ cordonOnly: "perhaps" }, "cordonOnly"],
    [{ nodeTerminationGracePeriod: "2m" }, "nodeTerminationGracePeriod"],
    [{ podTerminationGracePeriod: "30s" }, "podTerminationGracePeriod"],
    [{ extraEnv: [{ name: "HEARTBEAT_UNTIL", value: "long" }] }, "extraEnv.HEARTBEAT_UNTIL"],
    [{ extraEnv: "CORDON_ONLY=true" }, "extraEnv"],
    [{ extraEnv: ["CORDON_ONLY=true"] }, "extraEnv"],
    [{ cordonOnly: [true] }, "cordonOnly"],
    [{ nodeSelector: "lifecycle=spot" }, "nodeSelector"],
  ])("are refused with %j", (values, place) => {
    expect(() => ofValues(values)).toThrow(`Cannot translate values.yaml: ${place}: found`);
  });
});

describe("NTH's values", () => {
  test("for the metadata service become agent values", () => {
    const made = ofValues({
      ...{ logLevel: "DEBUG", jsonLogging: true, nodeSelector: { lifecycle: "spot" } },
      instanceMetadataURL: "http://127.0.0.1:1338",
      podMonitor: { create: true },
    });
    const logs = { "log-format": "json", "log-level": "debug" };
    expect(made.values).toEqual({
      controller: { options: logs },
      agent: {
        options: { cloud: "aws", "metadata-url": "http://127.0.0.1:1338", ...logs },
        nodeSelector: { lifecycle: "spot" },
        // In addition to the label, the chart's own term would require a known Spot label.
        affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: {} } },
      },
      metrics: { podMonitor: { enabled: true } },
    });
    const expressions = [{ key: "lifecycle", operator: "In", values: ["spot"] }];
    expect(made.policies[0]?.spec.nodeSelector).toEqual({
      nodeSelectorTerms: [{ matchExpressions: expressions }],
    });
    expect(made.notes).toEqual([]);
  });

  test("that select only the operating system leave the agents on Spot nodes", () => {
    const nodeSelector = { "kubernetes.io/os": "linux" };
    const { policies, values } = ofValues({ nodeSelector });
    expect(values.agent).toMatchObject({ nodeSelector });
    expect(values.agent).not.toHaveProperty("affinity");
    expect(policies[0]?.spec).not.toHaveProperty("nodeSelector");
  });

  test("for the queue become controller values", () => {
    const annotations = { "eks.amazonaws.com/role-arn": "arn" };
    const made = ofValues({
      ...queue,
      ...{ awsRegion: "eu-west-1", replicas: 2, managedTag: "mine" },
      ...{ deleteSqsMsgIfNodeNotFound: true, nodeSelector: { pool: "system" } },
      serviceAccount: { create: true, name: "nth", annotations },
    });
    expect(made.values).toEqual({
      controller: {
        replicas: 2,
        options: {
          "log-format": "text",
          "sqs-queue-url": queue.queueURL,
          "aws-managed-tag": "mine",
          "sqs-unknown": "Delete",
        },
      },
      agent: { enabled: false },
      extraEnv: { AWS_REGION: "eu-west-1" },
      serviceAccount: { create: true, name: "nth", annotations },
      nodeSelector: { pool: "system" },
    });
    // Where NTH's own pod runs says nothing about the nodes that it handles.
    expect(made.policies[0]?.spec).not.toHaveProperty("nodeSelector");
  });

  const own = { key: "infra", operator: "Exists", effect: "NoSchedule" };
  const other = { key: "other", operator: "Exists" };
  const spread = { podAntiAffinity: {} };

  test("of its Deployment's pod become those of the controller", () => {
    const secrets = [{ name: "registry" }];
    const made = ofValues({
      ...{ ...queue, nodeSelector: { "node-role": "infra" }, tolerations: [own], affinity: spread },
      // These are of the DaemonSet, which does not run in queue mode.
      ...{ daemonsetNodeSelector: { a: "b" }, linuxTolerations: [other], linuxAffinity: {} },
      image: { tag: "v1.25.0", pullSecrets: secrets },
    });
    expect(made.values).toMatchObject({
      ...{ nodeSelector: { "node-role": "infra" }, tolerations: [own], affinity: spread },
      imagePullSecrets: secrets,
    });
    expect(made.values.agent).toEqual({ enabled: false });
  });

  test("do not give the controller the selector of a DaemonSet that does not run", () => {
    const { values } = ofValues({ ...queue, daemonsetNodeSelector: { a: "b" } });
    expect(values).not.toHaveProperty("nodeSelector");
  });

  // NTH's template prefers the values for Linux, and `daemonset…` is what it falls back on.
  test.each([
    ["for Linux first", { linuxNodeSelector: { a: "linux" }, linuxTolerations: [own] }, "linux"],
    ["for all systems next", { nodeSelector: { a: "any" }, tolerations: [own] }, "any"],
    ["for the DaemonSet last", { daemonsetTolerations: [own] }, "daemonset"],
  ])("of its DaemonSet's pod become those of the agents: %s", (_, values, label) => {
    const lower = { daemonsetNodeSelector: { a: "daemonset" } };
    const made = ofValues({ ...lower, ...values });
    expect(made.values.agent).toMatchObject({ nodeSelector: { a: label }, tolerations: [own] });
    expect(made.values).not.toHaveProperty("tolerations");
    expect(made.notes).toEqual([]);
  });

  test("with an affinity for its DaemonSet get a note, unless it only excludes Fargate", () => {
    const affinityTo = (key: string) => ({
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [{ matchExpressions: [{ key, operator: "In", values: ["a"] }] }],
        },
      },
    });
    const notesAbout = (values: object) =>
      ofValues(values).notes.filter((note) => note.includes("ffinity"));
    expect(notesAbout({ linuxAffinity: affinityTo("pool") })).toEqual([
      expect.stringMatching(/^values.yaml: linuxAffinity .*agent.affinity/),
    ]);
    const usual = { daemonsetAffinity: affinityTo("eks.amazonaws.com/compute-type") };
    expect(notesAbout(usual)).toEqual([]);
    expect(notesAbout({ ...queue, ...usual, affinity: affinityTo("pool") })).toEqual([]);
  });

  const usualTag = "aws-node-termination-handler/managed";

  // NTH's chart always renders the newer names, which NTH then prefers: the older ones alone change
  // nothing, unless the newer one is cleared.
  test.each([
    ["its tag by default", {}, usualTag, []],
    ["a tag of its own", { managedTag: "mine" }, "mine", []],
    ["none", { checkTagBeforeDraining: false }, undefined, []],
    ["the older tag is not used", { managedAsgTag: "old" }, usualTag, ["managedAsgTag"]],
    [
      "the older switch is not used",
      { checkASGTagBeforeDraining: false },
      usualTag,
      ["checkASGTagBeforeDraining"],
    ],
    [
      "the older tag if the newer one is empty",
      { managedTag: "", managedAsgTag: "old" },
      "old",
      [],
    ],
    ["both names alike", { managedTag: "mine", managedAsgTag: "mine" }, "mine", []],
    [
      "the older switch if the newer one is empty",
      { checkTagBeforeDraining: "", checkASGTagBeforeDraining: false },
      undefined,
      [],
    ],
  ])("restrict instances by tag: %s", (_, values, wanted, unused) => {
    const made = ofValues({ ...queue, ...values });
    const { controller } = made.values as { controller: { options: Record<string, unknown> } };
    expect(controller.options["aws-managed-tag"]).toBe(wanted);
    const notes = made.notes.filter((note) => note.includes("has no effect"));
    expect(notes).toEqual(unused.map((name) => expect.stringContaining(`values.yaml: ${name} `)));
    // Without a queue NTH checks no tags.
    expect(ofValues(values).notes.join()).not.toContain("has no effect");
  });

  test("without an equivalent get one note each, with the name only", () => {
    const made = ofValues({
      ...{ webhookURL: "https://hooks.example/TOKEN", workers: 20, taintNode: false },
      ...{ awsSecretAccessKey: "TOKEN", podTerminationGracePeriod: 30 },
      // These are the usual values, or have no meaning here.
      ...{ metadataTries: 3, useProviderId: true, ignoreDaemonSets: "" },
    });
    const noted = ["webhookURL", "workers", "taintNode", "awsSecretAccessKey"];
    for (const name of [...noted, "podTerminationGracePeriod"]) {
      const about = made.notes.filter((note) => note.startsWith(`values.yaml: ${name} `));
      expect(about, name).toHaveLength(1);
    }
    // The last note says that the policy applies to any node.
    expect(made.notes).toHaveLength(noted.length + 2);
    expect(JSON.stringify(made)).not.toContain("TOKEN");
  });

  test.each([
    { values: { webhookURL: "https://hooks.slack.com/services/TOKEN" }, hosts: "hooks.slack.com" },
    { values: { webhookURLSecretName: "nth-webhook" }, hosts: undefined },
    { values: { webhookURL: "$SECRET" }, hosts: undefined },
  ])("with a webhook become an action with its URL in a Secret: $values", ({ values, hosts }) => {
    const made = ofValues(values);
    const [action] = (made.policies[0]?.spec.actions ?? []) as Record<string, unknown>[];
    expect(action).toMatchObject({
      at: "AtNotice",
      slack: { secretRef: { name: "lastcall-actions", key: "webhook-url" } },
    });
    expect(action?.causes).not.toContain("Planned");
    const { options } = made.values.controller as { options: Record<string, unknown> };
    expect(options["action-hosts"]).toBe(hosts);
    const asks = made.notes.filter((note) => note.includes("controller.options.action-hosts"));
    expect(asks).toHaveLength(hosts === undefined ? 1 : 0);
    expect(JSON.stringify(made)).not.toContain("TOKEN");
  });

  test("without a queue URL get a note", () => {
    const { notes } = ofValues({ enableSqsTerminationDraining: true });
    expect(notes.join()).toContain("QUEUE_URL is not set");
  });
});

/** The translation of an NTH DaemonSet with this container, in a pod with these other fields. */
function ofContainer(container: object, others: object = {}) {
  const image = "public.ecr.aws/aws-ec2/aws-node-termination-handler:v1.25.6";
  const pod = { ...others, containers: [{ image, ...container }] };
  const objects = [
    { kind: "DaemonSet", metadata: { name: "nth" }, spec: { template: { spec: pod } } },
  ];
  const found = workloadsOf(objects, "aws-node-termination-handler");
  return translateHandler(handlerWorkloadSetup(onlyWorkload(found, "m", "nth"), objects, "m"));
}

describe("NTH's flags", () => {
  const cordons = { spotInterruption: "Cordon", rebalance: "Ignore", maintenance: "Cordon" };

  test.each<[string, object]>([
    ["a switch without a value", { args: ["--cordon-only", "--dry-run"] }],
    ["with a single dash, as Go accepts them", { args: ["-cordon-only", "-dry-run=true"] }],
    ["before an argument that is not its value", { args: ["--cordon-only", "--dry-run", "x"] }],
    [
      "after the program's path",
      { command: ["/node-termination-handler", "--cordon-only=true", "--dry-run"] },
    ],
  ])("are read: %s", (_, container) => {
    const [policy] = ofContainer(container).policies;
    expect(policy?.spec).toMatchObject({ onNotice: cordons, dryRun: true });
  });

  test.each<[string, object, string]>([
    ["a ConfigMap", { envFrom: [{ configMapRef: { name: "c" } }] }, "envFrom: found"],
    [
      "a reference",
      { env: [{ name: "CORDON_ONLY", valueFrom: { configMapKeyRef: { name: "c", key: "k" } } }] },
      "the variable CORDON_ONLY: found nothing",
    ],
    ["a script", { command: ["sh", "-c", "nth --cordon-only"] }, "command: found"],
    ["no value", { args: ["--managed-tag"] }, "the flag --managed-tag: found nothing"],
  ])("are refused if a switch may be hidden in %s", (_, container, found) => {
    const translate = () => ofContainer(container);
    expect(translate).toThrow(expect.objectContaining({ code: "INPUT_INVALID", exitCode: 2 }));
    expect(translate).toThrow(found);
  });
});

describe("The pod of NTH's manifest", () => {
  const queueArgs = { args: ["--enable-sqs-termination-draining"] };
  const own = { key: "infra", operator: "Exists" };
  const affinity = { podAntiAffinity: {} };
  const imagePullSecrets = [{ name: "registry" }];

  test("says where the controller runs in queue mode", () => {
    const { values } = ofContainer(queueArgs, { tolerations: [own], affinity, imagePullSecrets });
    expect(values).toMatchObject({ tolerations: [own], affinity, imagePullSecrets });
  });

  test("says where the agents run, but by a note if it has an affinity", () => {
    const { values, notes } = ofContainer({}, { tolerations: [own], affinity, imagePullSecrets });
    expect(values).toMatchObject({ agent: { tolerations: [own] }, imagePullSecrets });
    expect(values).not.toHaveProperty("affinity");
    expect(notes).toContainEqual(expect.stringMatching(/^m: affinity .*agent.affinity/));
  });

  test.each([
    ["the controller", queueArgs],
    ["the agents", {}],
  ])("does not make %s tolerate everything, which is NTH's default", (_, container) => {
    const { values } = ofContainer(container, { tolerations: [{ operator: "Exists" }] });
    expect(values).not.toHaveProperty("tolerations");
    expect(values.agent).not.toHaveProperty("tolerations");
  });
});

describe("The tag in NTH's manifest", () => {
  const usualTag = "aws-node-termination-handler/managed";
  // In this order: the switch and the tag by their older and by their newer names.
  test.each([
    ["the newer switch decides", ["false", undefined, "true", undefined], usualTag],
    ["the newer switch decides against it", ["true", "old", "false", "new"], undefined],
    ["the newer tag counts", ["true", "old", "true", "new"], "new"],
    ["the older switch decides alone", ["false", undefined, undefined, undefined], undefined],
    ["the older tag counts alone", [undefined, "old", undefined, undefined], "old"],
    ["an empty newer tag is none", [undefined, "old", undefined, ""], "old"],
  ])("restricts instances: %s", (_, texts, wanted) => {
    const names = ["CHECK_ASG_TAG_BEFORE_DRAINING", "MANAGED_ASG_TAG"];
    const all = [...names, "CHECK_TAG_BEFORE_DRAINING", "MANAGED_TAG"];
    const env = all.flatMap((name, at) =>
      texts[at] === undefined ? [] : { name, value: texts[at] },
    );
    const { values } = ofContainer({ args: ["--enable-sqs-termination-draining"], env });
    const { options } = values.controller as { options: Record<string, unknown> };
    expect(options["aws-managed-tag"]).toBe(wanted);
  });
});

test("NTH's manifest sets variables and flags, and the service account's role", () => {
  const hidden = { secretKeyRef: { name: "s", key: "webhookurl" } };
  const container = {
    image: "public.ecr.aws/aws-ec2/aws-node-termination-handler:v1.25.6",
    args: ["--enable-sqs-termination-draining=true", "--brand-new"],
    env: [
      { name: "QUEUE_URL", value: "https://sqs/q" },
      { name: "NODE_NAME", valueFrom: { fieldRef: { fieldPath: "spec.nodeName" } } },
      { name: "WEBHOOK_URL", valueFrom: hidden },
    ],
  };
  const pod = {
    serviceAccountName: "nth",
    nodeSelector: { "kubernetes.io/os": "linux" },
    containers: [container],
  };
  const annotations = { "eks.amazonaws.com/role-arn": "arn", other: "x" };
  const objects = [
    { kind: "Deployment", metadata: { name: "nth" }, spec: { template: { spec: pod } } },
    { kind: "ServiceAccount", metadata: { name: "nth", annotations } },
  ];
  const found = workloadsOf(objects, "aws-node-termination-handler");
  const made = translateHandler(
    handlerWorkloadSetup(onlyWorkload(found, "m", "nth"), objects, "m"),
  );
  expect(made.values).toMatchObject({
    controller: { options: { "sqs-queue-url": "https://sqs/q" } },
    serviceAccount: { name: "nth", annotations: { "eks.amazonaws.com/role-arn": "arn" } },
    agent: { enabled: false },
  });
  expect(made.notes).toEqual([
    "m: the flag --brand-new is not a setting of NTH 1.25 and is omitted",
    expect.stringMatching(
      /^m: the variable WEBHOOK_URL becomes the action webhook, .*create it in .* with kubectl create secret/,
    ),
    "m: the variable WEBHOOK_URL: add the webhook's host to controller.options.action-hosts",
    expect.stringContaining("NTH's role lacks permissions"),
    expect.stringContaining("NTH acts on any node"),
  ]);
});
