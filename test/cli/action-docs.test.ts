/** Parses and runs the examples in docs/actions.md and docs/cloud/aws.md. */
import { readFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { parse } from "yaml";
import { isNamed, parseActionHosts } from "../../src/actions/action-hosts.ts";
import { parseEventFields, readInvocation } from "../../src/cli/lambda/read-invocation.ts";
import { handler } from "../../src/cli/lambda-main.ts";
import { options } from "../../src/config/options/options.ts";
import { parsePolicyObject } from "../../src/config/policy/parse-policy-object.ts";
import { actionKinds } from "../../src/core/policy/action.ts";
import { instant } from "../../src/core/time/time.ts";
import { useAwsEnvironment } from "../support/aws-environment.ts";
import { LoadBalancerServer } from "../support/load-balancer-server.ts";
import { NetworkServer } from "../support/network-server.ts";
import { SnsServer } from "../support/sns-server.ts";
import { stopTimers } from "../support/stopped-timers.ts";

const pages = ["docs/actions.md", "docs/cloud/aws.md"] as const;
const [actionsPage, awsPage] = pages.map((page) => readFileSync(page, "utf8")) as [string, string];
useAwsEnvironment();

function fences(page: string, language: string): readonly string[] {
  const form = new RegExp(`^ *\`\`\`${language}\\n([\\s\\S]*?)^ *\`\`\`$`, "gm");
  return [...page.matchAll(form)].map(([, text = ""]) => text);
}

/** The text between backticks, which may span lines. */
function quoted(page: string, form: RegExp): readonly string[] {
  const texts = [...page.matchAll(/(?<!`)`([^`]+)`(?!`)/g)].map(([, text = ""]) =>
    text.replaceAll(/\s+/g, " "),
  );
  return texts.filter((text) => form.test(text));
}

function policyOf(spec: object) {
  const metadata = { name: "spot" };
  return parsePolicyObject(
    { apiVersion: "lastcall.dev/v1alpha1", kind: "DeparturePolicy", metadata, spec },
    { unknownFields: "Refuse", cronProblem: () => undefined },
  );
}

describe("the pages about actions", () => {
  it("have policies that parse", () => {
    const specs = fences(actionsPage, "yaml").map((text) => (parse(text) as { spec: object }).spec);
    expect(specs.length).toBeGreaterThan(0);
    for (const spec of specs) expect(policyOf(spec)).toHaveProperty("policy");
    const steps = quoted(awsPage, /^onNotice: \{/);
    expect(steps).toHaveLength(1);
    for (const step of steps) expect(policyOf(parse(step) as object)).toHaveProperty("policy");
    const actions = quoted(awsPage, /^\{name: /);
    expect(actions).toHaveLength(1);
    const written = actions.map((action) => parse(action) as object);
    expect(policyOf({ actions: written })).toHaveProperty("policy");
  });

  it("call only hosts that their --action-hosts allows", () => {
    const hosts = /--action-hosts=(\S+)/.exec(actionsPage)?.[1] ?? "";
    const urls = fences(actionsPage, "yaml")
      .join()
      .matchAll(/https?:\/\/([\w.-]+):?(\d*)/g);
    const asked = [...urls].map(([, host = "", port]) => ({ host, port: Number(port || 443) }));
    expect(asked).toEqual([{ host: "alertmanager.monitoring", port: 9093 }]);
    const rules = parseActionHosts(hosts);
    for (const one of [...asked, { host: "slack.com", port: 443 }]) {
      expect(isNamed(rules, one)).toBe(true);
    }
  });

  it("name every action type and no other", () => {
    const table = actionsPage.slice(actionsPage.indexOf("## Each action"));
    const rows = [...table.matchAll(/^\| `(\w+)` \|/gm)].map(([, kind]) => kind);
    expect(rows.toSorted()).toEqual([...actionKinds].toSorted());
    const start = awsPage.indexOf("| what yours does |");
    const replaced = awsPage.slice(start, awsPage.indexOf("\n\n", start));
    const cells = quoted(replaced, /^[a-z]+[A-Za-z]*(: \{.*\})?$/);
    const kinds = cells.map((cell) => /^\w+/.exec(cell)?.[0]);
    expect(kinds.length).toBeGreaterThan(10);
    for (const kind of kinds) expect(actionKinds).toContain(kind);
  });

  it.each(pages)("name only options that exist: %s", (page) => {
    const text = readFileSync(page, "utf8");
    const lines = [...quoted(text, /^lastcall /), ...fences(text, "(?:sh|bash)")];
    const commands = lines.flatMap((line) => line.match(/^lastcall .*$/gm) ?? []);
    const named = commands.flatMap((line) => [...line.matchAll(/--([a-z0-9-]+)/g)]);
    expect(named.length).toBeGreaterThan(0);
    const known = new Set<string>(options.flatMap(({ name }) => [name, `no-${name}`]));
    for (const [, option = ""] of named) expect(known).toContain(option);
  });
});

describe("the migration from your own Lambda function", () => {
  beforeEach(() => {
    vi.spyOn(console, "error").mockImplementation(() => {});
  });
  afterEach(() => {
    vi.useRealTimers();
    vi.restoreAllMocks();
  });

  const mappings = quoted(awsPage, /^(instanceId=|\{"instanceId": "[a-z_]+\.)/);
  const listed = fences(awsPage, "json").find((text) => text.trim().startsWith("[")) ?? "";

  /** An invocation with the instance ID at the path that a mapping reads. */
  function foreign(mapping: string, instanceId: string): object {
    const path = /instanceId"?[=:] ?"?([\w.]+)/.exec(mapping)?.[1] ?? "";
    const [outer = "", inner = ""] = path.split(".");
    return { [outer]: { [inner]: instanceId }, host: "n7", version: 3 };
  }

  it("has three example mappings of event fields", () => {
    expect(mappings).toHaveLength(3);
  });

  it.each(mappings)("reads an old DaemonSet's invocation with the mapping %s", (mapping) => {
    const instanceId = "i-0123456789abcdef0";
    const how = { at: instant(Date.now()), fields: parseEventFields(mapping) };
    const { machines, dropped } = readInvocation(foreign(mapping, instanceId), how);
    expect(machines).toMatchObject([{ instanceId, node: "n7", cause: "SpotInterruption" }]);
    expect(dropped).toEqual([]);
  });

  it("runs the actions on the invocation of an old DaemonSet", async () => {
    const [mapping = ""] = mappings;
    const servers = [new LoadBalancerServer(), new NetworkServer(), new SnsServer()] as const;
    const [balancers, ec2, sns] = servers;
    await Promise.all(servers.map((server) => server.start()));
    process.env.AWS_ENDPOINT_URL_ELASTIC_LOAD_BALANCING_V2 = balancers.url;
    process.env.AWS_ENDPOINT_URL_ELASTIC_LOAD_BALANCING = balancers.url;
    process.env.AWS_ENDPOINT_URL_EC2 = ec2.url;
    process.env.AWS_ENDPOINT_URL_SNS = sns.url;
    process.env.LASTCALL_ACTIONS = listed;
    process.env.LASTCALL_EVENT_FIELDS = mapping;
    vi.resetModules();
    const { handler: cold } = await import("../../src/cli/lambda-main.ts");
    const instance = ec2.addInstance(1);
    ec2.addInterface(instance);
    for (const id of ["sg-0abc", "sg-nodes"]) ec2.securityGroups.set(id, "vpc-a");
    balancers.addGroup("web", { targets: [{ id: instance.id, port: 80 }] });
    sns.topics.add("arn:aws:sns:eu-west-1:123456789012:lastcall");
    const timers = stopTimers();
    const answer = cold(foreign(mapping, instance.id));
    const { actions, summary } = await timers.passUntil(answer);
    expect(actions?.map(({ name, state }) => `${name} ${state}`)).toEqual([
      ...["targets Done", "quarantine Done", "announce Done"],
    ]);
    expect(summary).toContain("n7 leaves: SpotInterruption");
    expect(balancers.groups.flatMap((group) => balancers.serving(group))).toEqual([]);
    expect(ec2.interfaces.map(({ groups }) => groups)).toEqual([["sg-0abc"]]);
    expect(sns.published[0]?.message).toContain("n7 leaves");
    delete process.env.LASTCALL_EVENT_FIELDS;
    await Promise.all(servers.map((server) => server.stop()));
  });

  it("handles the invocation that the page shows for other callers", async () => {
    process.env.LASTCALL_ACTIONS = "[]";
    const [invocation = ""] = quoted(awsPage, /^\{"instanceId": "i-/);
    const { instanceId, summary } = await handler(JSON.parse(invocation));
    expect(instanceId).toBe("i-0123456789abcdef0");
    expect(summary).toMatch(
      /^n1 leaves: SpotInterruption, instance i-[0-9a-f]+, deadline 2026-11-24T12:02:00/,
    );
  });
});
