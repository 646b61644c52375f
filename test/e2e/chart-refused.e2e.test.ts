/**
 * What the API server, or the program when its pod starts, would refuse later is refused by the
 * real Helm, with one sentence that names the value: test/golden/policies has such policies.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseAllDocuments, stringify } from "yaml";
import { chart, helm, oldest } from "../support/helm.ts";

const corpus = join(import.meta.dirname, "../golden/policies");

let home: string;
beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), "lastcall-refused-"));
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

interface Policy {
  readonly name: string;
  readonly spec: unknown;
}

/** The policies of a file, as values of the chart, with names that do not repeat. */
function policiesIn(path: string, prefix: string): readonly Policy[] {
  const documents = parseAllDocuments(readFileSync(join(corpus, path), "utf8"));
  return documents.flatMap((one, place) => {
    const found = one.toJS() as { readonly kind?: string; readonly spec?: unknown } | null;
    if (found?.kind !== "DeparturePolicy") return [];
    return [{ name: `${prefix}-${place}`, spec: found.spec ?? {} }];
  });
}

/** The last part of Helm's message, which follows the places in the templates. */
function refusalOf(values: object): string {
  const file = join(home, "values.yaml");
  writeFileSync(file, stringify(values));
  const flags = ["--namespace", "lastcall", "--kube-version", oldest, "--values", file];
  const { stderr, code } = helm(["template", "lastcall", chart, ...flags], { home });
  if (code === 0) return "";
  return stderr.replace(/^.*?(?=policies\[|controller\.|agent\.)/s, "").split("\n")[0] ?? "";
}

const windows = "policies[0].spec.windows[0]";

describe("a policy in the values", () => {
  test.each([
    ["max-below-min", 'lifetime.max: found "1h", expected at least lifetime.min, which is 2h'],
    [
      "reserve-above-max",
      'lifetime.reserve: found "30m", the default, expected less than lifetime.max, which is 20m',
    ],
    [
      "reserve-of-the-whole-max",
      'lifetime.reserve: found "60m", expected less than lifetime.max, which is 1h',
    ],
    [
      "min-above-max-less-reserve",
      'lifetime.min: found "23h45m", expected at most lifetime.max less lifetime.reserve, which are 24h and 30m',
    ],
    ["unknown-zone", 'timeZone: found "Asia/Tokio", expected an IANA time zone such as Asia/Tokyo'],
    ["zone-as-city", 'timeZone: found "Berlin", expected an IANA time zone such as Europe/Berlin'],
    ["zone-in-small-letters", 'timeZone: found "asia/tokyo"'],
    ["start-equals-end", 'end: found "06:00" as start, too, expected another time'],
    ["window-without-end", `${windows}: expected start with end`],
    ["cron-without-duration", `${windows}: found cron without duration`],
    ["cron-six-fields", 'cron: found "0 0 18 * * 5", expected five cron fields'],
    ["window-name-twice", 'windows[1].name: found "nights" a second time'],
    ["budget-of-both", "budgets[0]: expected either nodes or perHour"],
    ["action-of-two-types", "actions[0]: found slack and teams, expected exactly one type"],
    ["action-required-at-end", "actions[0].required: found true, expected it only with AtNotice"],
    ["action-timeout-long", 'actions[0].timeout: found "16m", expected at most 15m'],
    ["action-slack-without-token", "slack: found a channel without secretRef"],
    ["alerts-url-with-api-path", "expected the address of Alertmanager without /api/v2"],
    ["selector-in-without-values", "matchExpressions[0].values: expected at least one value"],
    ["node-field-of-two-names", "matchFields[0].values: expected exactly one node name"],
    ["duration-in-words", 'found "1 day" (24h?), expected a duration such as 90s or 12h30m'],
    ["duration-in-days", 'found "7d" (168h?), expected a duration such as 90s or 12h30m'],
    ["budget-of-150-percent", 'found "150%", expected a count of at least 1 or a percentage'],
    ["action-group-id-odd", "actions[0].replaceSecurityGroups.groupIds[0]: found"],
  ])("is refused: %s", (name, told) => {
    const refusal = refusalOf({ policies: policiesIn(`bad/${name}.yaml`, "bad") });
    expect(refusal).toMatch(/^policies\[0\]\.spec\./);
    expect(refusal).toContain(told);
  });

  test.each([
    ["2 minutes", " (2m?)"],
    ["7d", " (168h?)"],
    ["1 week", " (168h?)"],
    ["90sec", " (90s?)"],
    ["24", ""],
    ["soon", ""],
  ])("has durations, and is told what is meant by %j", (max, meant) => {
    const policies = [{ name: "spot", spec: { lifetime: { max } } }];
    expect(refusalOf({ policies })).toBe(
      `policies[0].spec.lifetime.max: found ${JSON.stringify(max)}${meant}, expected a duration such as 90s or 12h30m, or Platform`,
    );
  });

  test("is refused in words, and never with a pattern", () => {
    const files = readdirSync(join(corpus, "bad")).filter((file) => file.endsWith(".yaml"));
    const refused = files.flatMap((file) => {
      try {
        return policiesIn(`bad/${file}`, "bad").map((one) => [file, one] as const);
      } catch {
        // It is no YAML.
        return [];
      }
    });
    expect(refused.length).toBeGreaterThan(50);
    for (const [file, one] of refused) {
      expect(refusalOf({ policies: [one] }), file).not.toMatch(
        /does not match pattern|error parsing/,
      );
    }
    // A name from outside the corpus, which names its policies itself.
    const spec = { lifetime: { max: "24h" } };
    expect(refusalOf({ policies: [{ name: "Spot", spec }] })).toBe(
      'policies[0].name: found "Spot", expected a name of lower case letters, digits, dashes and dots',
    );
  });

  test("is accepted if it is a good one, whatever it uses", () => {
    const files = readdirSync(join(corpus, "good"));
    // Values without anything after the colon are refused by the chart's schema, or removed.
    const used = files.filter((file) => file !== "nothing-after-the-colon.yaml");
    const policies = used.flatMap((file, place) => policiesIn(`good/${file}`, `p${place}`));
    expect(policies.length).toBeGreaterThan(10);
    expect(refusalOf({ policies })).toBe("");
  });
});

describe("an option in the values", () => {
  test.each([
    [
      { "action-hosts": "hooks.slack.com,http://am:9093" },
      'controller.options.action-hosts: found "http://am:9093", expected host, host:port or *.domain, without a scheme or a path',
    ],
    [{ "aks-cluster": "shop" }, 'aks-cluster: found "shop", expected GROUP/NAME'],
    [{ "aws-managed-tag": "team=a" }, "aws-managed-tag: found it alone, expected sqs-queue-url"],
    [{ "gcp-endpoint": "http://example.com" }, "gcp-endpoint: found"],
    [{ "ec2-status-poll": "11m" }, 'ec2-status-poll: found "11m", expected at most 10m'],
    [{ "metrics-cert-file": "/a" }, "metrics-cert-file: found it without metrics-key-file"],
    [
      { "prefer-no-schedule": "1d" },
      'controller.options.prefer-no-schedule: found "1d" (24h?), expected a duration such as 90s or 12h30m',
    ],
    [
      { "metrics-address": "9101" },
      'controller.options.metrics-address: found "9101", expected an address such as :9101',
    ],
  ])("is refused: %o", (options, told) => {
    expect(refusalOf({ controller: { options } })).toContain(told);
  });

  const files = {
    extraVolumes: [{ name: "files" }],
    extraVolumeMounts: [{ name: "files", mountPath: "/tls" }],
  };

  test("is accepted if what it needs is in a variable", () => {
    const options = { "aws-managed-tag": "team", "metrics-cert-file": "/tls/a" };
    const extraEnv = { LASTCALL_SQS_QUEUE_URL: "https://q", LASTCALL_METRICS_KEY_FILE: "/tls/b" };
    expect(refusalOf({ controller: { options }, extraEnv, ...files })).toBe("");
  });

  test("is accepted if the program accepts it", () => {
    const options = {
      "action-hosts": "hooks.slack.com, am.monitoring:9093,*.example.com,[::1]:80,",
      ...{ "aks-cluster": "my.group_(x)/main-1", "aws-managed-tag": "team=a=b" },
      ...{ "ec2-status-poll": "1m", "sqs-abandon-launch-after": "1h" },
      ...{ "gcp-endpoint": "http://127.0.0.1:80/x", "azure-endpoint": "https://arm.example" },
      ...{ "metrics-cert-file": "/tls/a", "metrics-key-file": "/tls/b" },
    };
    expect(refusalOf({ controller: { options }, ...files })).toBe("");
  });
});
