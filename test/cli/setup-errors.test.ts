import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { makeFakeAws } from "../support/fake-aws.ts";
import { makeFakeAz } from "../support/fake-az.ts";
import { makeFakeGcloud } from "../support/fake-gcloud.ts";
import type { FakeTools, ToolError } from "../support/fake-tools.ts";
import { runSetupOn } from "../support/run-setup.ts";

/**
 * An error of a cloud's tool does not tell whether a resource exists. Only "not found" does, which
 * the tests of each script cover: with it, the first run creates everything.
 */

interface Cloud {
  readonly make: () => FakeTools;
  readonly options: Readonly<Record<string, unknown>> & { readonly cloud: string };
  /** What exists before the set-up, with its content. */
  readonly standing: Readonly<Record<string, string>>;
  readonly errors: Readonly<Record<string, ToolError>>;
  /** The calls that read before anything is changed. */
  readonly reads: Readonly<Record<"setup" | "undo", readonly string[]>>;
}

const awsError = (code: string, words: string) => ({
  exitCode: 254,
  message: `An error occurred (${code}) when calling the operation: ${words}`,
});

const ofAws = [
  ...["iam|list-role-tags", "sqs|get-queue-url", "sqs|list-queue-tags"],
  ...["eks|list-pod-identity-associations", "eks|describe-pod-identity-association"],
];
const ofRules = ["events|describe-rule", "events|list-tags-for-resource"];
const roles = "iam|roles|describe";
const accounts = "iam|service-accounts|describe";

const clouds: readonly Cloud[] = [
  {
    make: makeFakeAws,
    options: {
      ...{ cloud: "aws", account: "123456789012", region: "eu-west-1", cluster: "main" },
      ...{ serviceAccount: "lastcall", role: "lastcall", release: "Recreate", queue: "q" },
      ...{ identity: "PodIdentity", sqsCompleteHooks: true },
    },
    standing: { cluster: "https://issuer.example", addon: "", "service-account": "" },
    errors: {
      "a missing permission": awsError(
        "AccessDenied",
        "User: arn:aws:iam::123456789012:user/me is not authorized to perform this on resource: role NoSuchEntity",
      ),
      "an expired login": awsError("ExpiredToken", "The security token is expired"),
      "no connection": {
        exitCode: 255,
        message: 'Could not connect to the endpoint URL: "https://iam.amazonaws.com/"',
      },
      "no credentials": {
        exitCode: 253,
        message:
          "Unable to locate credentials. You can configure credentials by running aws login.",
      },
    },
    reads: {
      setup: [...["sts|get-caller-identity", ...ofAws, ...ofRules]],
      undo: ["sts|get-caller-identity", ...ofAws, ...ofRules],
    },
  },
  {
    make: makeFakeGcloud,
    options: {
      ...{ cloud: "gcp", project: "my-project-1", serviceAccount: "lastcall", role: "lastcall" },
      ...{ release: "Recreate", googleServiceAccount: "lastcall-shop" },
      ...{ cluster: "main", location: "europe-west1" },
    },
    standing: { "service-account": "", "workload-pool": "", clusters: "europe-west1/main" },
    errors: {
      "a missing permission": {
        exitCode: 1,
        message:
          "ERROR: (gcloud.iam.service-accounts.describe) PERMISSION_DENIED: Permission 'iam.serviceAccounts.get' denied on resource (or it may not exist).",
      },
      "an expired login": {
        exitCode: 1,
        message:
          "ERROR: (gcloud.iam.roles.describe) There was a problem refreshing your current auth tokens: Reauthentication failed. cannot prompt during non-interactive execution.",
      },
      "no connection": {
        exitCode: 1,
        message:
          "ERROR: gcloud crashed (ConnectionError): HTTPSConnectionPool(host='iam.googleapis.com', port=443): Max retries exceeded",
      },
      "an outage": {
        exitCode: 1,
        message: "ERROR: (gcloud.iam.roles.describe) HTTPError 503: The service is unavailable.",
      },
    },
    reads: {
      setup: ["container|clusters|describe", roles, accounts],
      undo: [
        ...["container|clusters|list", roles, accounts],
        ...["iam|service-accounts|get-iam-policy", "projects|get-iam-policy"],
      ],
    },
  },
  {
    make: makeFakeAz,
    options: {
      ...{ cloud: "azure", subscription: "1b2e6f80-0000-4000-8000-000000000000" },
      ...{ resourceGroup: "shop", cluster: "main", serviceAccount: "lastcall" },
      ...{ managedIdentity: "lastcall", role: "lastcall" },
    },
    standing: { "service-account": "", webhook: "", cluster: "https://issuer.example/" },
    errors: {
      "a missing permission": {
        exitCode: 1,
        message:
          "ERROR: (AuthorizationFailed) The client 'me' does not have authorization to perform the action over the scope or the scope is invalid.",
      },
      "an expired login": {
        exitCode: 1,
        message: "ERROR: AADSTS700082: The refresh token has expired due to inactivity.",
      },
      "no connection": { exitCode: 1, message: "ERROR: Connection error. Max retries exceeded" },
      "a subscription that the login cannot see": {
        exitCode: 3,
        message: "ERROR: (SubscriptionNotFound) The subscription 'x' could not be found.",
      },
    },
    reads: {
      setup: ["aks|show", "identity|show", "role|definition|list"],
      undo: ["aks|show", "identity|show", "role|definition|list"],
    },
  },
];

const [aws, google] = clouds as readonly [Cloud, Cloud];
const { googleServiceAccount: _, ...direct } = google.options;
const { cluster: __, location: ___, ...anywhere } = google.options;

/** What the other kinds of an identity read besides. */
const others: readonly Cloud[] = [
  {
    ...{ ...aws, options: { ...aws.options, identity: "IRSA" } },
    standing: { ...aws.standing, provider: "" },
    reads: {
      setup: ["eks|describe-cluster", "iam|get-open-id-connect-provider"],
      undo: ["eks|describe-cluster"],
    },
  },
  {
    ...{ ...google, options: direct },
    reads: { setup: ["projects|describe"], undo: ["projects|describe", "projects|get-iam"] },
  },
  {
    ...{ ...google, options: { ...anywhere, keyFile: true } },
    reads: { setup: ["service-accounts|keys|list", "get|secret"], undo: ["keys|list"] },
  },
];

const all = [...clouds, ...others];

describe.each(all)("lastcall setup $options.cloud", ({ make, options, ...cloud }) => {
  let tools: FakeTools;
  const setup = (more: object) => runSetupOn(tools, { ...options, ...more });

  beforeAll(async () => {
    tools = make();
    for (const [what, content] of Object.entries(cloud.standing)) tools.put(what, content);
    // So that every call has something to read.
    expect(await setup({})).toMatchObject({ code: 0, err: "" });
  });
  afterEach(() => tools.mend());
  afterAll(() => tools.remove());

  const errors = Object.entries(cloud.errors);
  // Each call with a missing permission, and with one of the other errors in turn.
  const rows = (["setup", "undo"] as const).flatMap((script) =>
    cloud.reads[script].flatMap((call, place) =>
      [errors[0], errors[1 + (place % (errors.length - 1))]].map((found) => {
        const [error, how] = found as [string, ToolError];
        return { script, call, error, how };
      }),
    ),
  );

  it.each(rows)("($script) does not take $error of $call for absence", async (row) => {
    const before = tools.standing();
    tools.break(row.call, row.how);
    const { code, out, err } = await setup({ undo: row.script === "undo" });
    expect(code).toMatchObject({ code: "SCRIPT_FAILED", exitCode: 1 });
    expect(err).toContain(row.how.message);
    expect(err).toContain("Not finished: nothing was changed\n");
    expect(out).not.toContain("Done");
    expect(tools.standing()).toEqual(before);
  });
});

describe("an undo that fails on its way", () => {
  const failing = { exitCode: 254, message: "An error occurred (AccessDenied) when calling it" };

  it.each([
    [0, "iam|get-role-policy", ["role", "policy"], "the role lastcall"],
    [0, "iam|delete-role|", ["role"], "the role lastcall"],
    [0, "sqs|delete-queue", ["role", "queue", "association"], "a rule or the queue q, the link"],
    [1, "projects|remove-iam-policy-binding", ["role", "account", "grant"], "the grant of lastc"],
    [1, "iam|roles|delete", ["role"], "the role lastcall"],
    [2, "role|assignment|list", ["identity", "role-lastcall-cluster"], "the roles lastcall-…"],
    [2, "identity|delete", ["identity"], "the identity lastcall"],
  ] as const)(
    "(%i) at %s says what is still there, and removes it when run again",
    async (index, call, left, words) => {
      const { make, options, standing } = clouds[index] as Cloud;
      const tools = make();
      for (const [what, content] of Object.entries(standing)) tools.put(what, content);
      try {
        await runSetupOn(tools, options);
        tools.break(call, failing);
        const { code, out, err } = await runSetupOn(tools, { ...options, undo: true });
        expect(code).toMatchObject({ code: "SCRIPT_FAILED" });
        expect(err).toContain(`Not finished: still there, unless it never existed: ${words}`);
        expect(out).not.toContain("Done");
        expect(Object.keys(tools.standing())).toEqual(expect.arrayContaining([...left]));
        tools.mend();
        expect((await runSetupOn(tools, { ...options, undo: true })).code).toBe(0);
        const rest = Object.keys(tools.standing()).filter((one) => !(one in standing));
        expect(rest).toEqual(index === 1 ? ["role", "role-deleted"] : []);
      } finally {
        tools.remove();
      }
    },
  );
});
