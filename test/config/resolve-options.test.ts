import { describe, expect, it } from "vitest";
import { commands, fieldNameOf, variableOf } from "../../src/config/options/option.ts";
import { options, optionsFor } from "../../src/config/options/options.ts";
import { readOptionsFile } from "../../src/config/options/read-options-file.ts";
import { resolveOptions, spellSwitches } from "../../src/config/options/resolve-options.ts";
import { instant, millis } from "../../src/core/time/time.ts";
import { LastcallError } from "../../src/errors.ts";

const nothing = { flags: {}, env: {} };

function file(text: string) {
  return readOptionsFile({ file: "lastcall.yaml", text });
}

describe("the list of options", () => {
  it.each(commands)("has no flag of %s twice", (command) => {
    const names = optionsFor(command).map(({ name }) => name);
    const letters = optionsFor(command).flatMap(({ short }) => short ?? []);
    expect(new Set(names).size).toBe(names.length);
    expect(new Set(letters).size).toBe(letters.length);
  });

  it.each(commands)("tells of --dry-run of %s only what it does there", (command) => {
    const { help } = optionsFor(command).find(({ name }) => name === "dry-run") ?? { help: "" };
    expect(help.includes("Events")).toBe(command === "run");
  });

  it.each(commands)("has valid defaults for %s", (command) => {
    const env = command === "agent" ? { LASTCALL_NODE_NAME: "n1" } : {};
    expect(() => resolveOptions(command, { flags: {}, env })).not.toThrow();
  });

  // A Service named lastcall, or lastcall-something, puts such variables into every pod beside it.
  it("avoids the variables that Kubernetes creates for Services", () => {
    const taken = /(^|_)(PORT|SERVICE_HOST|SERVICE_PORT|PORT_\d+_TCP(_\w+)?)$/;
    const clashes = options.map(({ name }) => variableOf(name)).filter((name) => taken.test(name));
    expect(clashes).toEqual([]);
  });

  it("has no option named like a command, which is a section of the config file", () => {
    expect(options.filter(({ name }) => commands.includes(name as never))).toEqual([]);
  });

  it.each(commands)("has what options of %s need or exclude", (command) => {
    const known = optionsFor(command).map(({ name }) => name);
    for (const { name, needs = name, excludes = [name] } of optionsFor(command)) {
      expect(known).toContain(needs.split("=")[0]);
      expect({ name, has: excludes.some((other) => known.includes(other)) }).toMatchObject({
        has: true,
      });
    }
  });

  it("has the flags of run and agent that scripts rely on", () => {
    const { healthAddress, metricsAddress, leaderElect, dryRun } = resolveOptions("run", nothing);
    expect({ healthAddress, metricsAddress, leaderElect, dryRun }).toEqual({
      healthAddress: ":8080",
      metricsAddress: ":9101",
      leaderElect: true,
      dryRun: false,
    });
    const agent = resolveOptions("agent", { flags: { nodeName: "n1" }, env: {} });
    expect(agent).toMatchObject({ nodeName: "n1", cloud: "auto", metadataUrl: undefined });
  });

  it.each([
    ["leader-elect", "leaderElect", "LASTCALL_LEADER_ELECT"],
    ["from", "from", "LASTCALL_FROM"],
  ])("maps %s to %s and %s", (name, field, variable) => {
    expect([fieldNameOf(name), variableOf(name)]).toEqual([field, variable]);
  });
});

describe("the value of an option", () => {
  const flags = { nodes: "1" };
  const env = { LASTCALL_NODES: "2" };

  it.each([
    ["a flag takes precedence over everything", { flags, env, file: file("nodes: 3") }, 1],
    [
      "the environment takes precedence over the file",
      { flags: {}, env, file: file("nodes: 3") },
      2,
    ],
    [
      "the file takes precedence over the default",
      { flags: {}, env: {}, file: file("nodes: 3") },
      3,
    ],
    [
      "a section takes precedence over the top of the file",
      { ...nothing, file: file("nodes: 3\ndemo: {nodes: 4}") },
      4,
    ],
    [
      "another command's section does not apply",
      { ...nothing, file: file("audit: {fail-on: never}") },
      18,
    ],
    ["an empty variable counts as not set", { flags: {}, env: { LASTCALL_NODES: "" } }, 18],
    ["null in the file counts as not set", { ...nothing, file: file("nodes:") }, 18],
    ["the default applies otherwise", nothing, 18],
  ])("%s", (_, sources, nodes) => {
    expect(resolveOptions("demo", sources).nodes).toBe(nodes);
  });

  it("has the type of its option", () => {
    const drainPlan = resolveOptions("drain-plan", {
      flags: { notice: "2m", filename: ["a.yaml", "b.yaml"] },
      env: { LASTCALL_AT: "2026-11-20T00:00:00Z", LASTCALL_FROM: "nodes.json, pods.json" },
    });
    expect(drainPlan.notice).toBe(millis(120_000));
    expect(drainPlan.at).toEqual({ kind: "At", at: instant(Date.UTC(2026, 10, 20)) });
    expect(drainPlan.filename).toEqual(["a.yaml", "b.yaml"]);
    expect(drainPlan.from).toEqual(["nodes.json", "pods.json"]);
    expect(drainPlan.context).toBeUndefined();
  });

  it.each([
    ["true", true],
    ["TRUE", true],
    ["1", true],
    ["false", false],
    ["0", false],
  ])("of a switch may be written as %s", (text, value) => {
    const env = { LASTCALL_LEADER_ELECT: text };
    expect(resolveOptions("run", { flags: {}, env }).leaderElect).toBe(value);
  });

  it("in the file may be a list or a boolean", () => {
    const text = "platform: [gke, aks]\nquiet: true\n";
    const { platform, quiet } = resolveOptions("audit", { ...nothing, file: file(text) });
    expect({ platform, quiet }).toEqual({ platform: ["gke", "aks"], quiet: true });
  });
});

describe("a wrong option value is refused with one sentence", () => {
  const run = (flags: Record<string, string>) => resolveOptions("run", { flags, env: {} });
  const demo = (flags: Record<string, string>) => resolveOptions("demo", { flags, env: {} });
  it.each([
    [
      () => run({ healthAddress: "8080" }),
      '--health-address: found "8080", expected an address such as :8080',
    ],
    [
      () => run({ healthAddress: ":99999" }),
      '--health-address: found ":99999", expected an address such as :8080',
    ],
    [
      () => run({ gcpEndpoint: "x" }),
      '--gcp-endpoint: found "x", expected an address such as http://host:80',
    ],
    [
      () => run({ logLevel: "loud" }),
      '--log-level: found "loud", expected debug, info, warn or error',
    ],
    [() => run({ context: "" }), "--context: found nothing, expected a value for NAME"],
    [() => run({ dryRun: "yes" }), '--dry-run: found "yes", expected true or false'],
    [() => demo({ nodes: "0" }), '--nodes: found "0", expected a whole number from 1 to 5000'],
    [() => demo({ nodes: "1e3" }), '--nodes: found "1e3", expected a whole number from 1 to 5000'],
    [
      () => demo({ seed: "1.5" }),
      '--seed: found "1.5", expected a whole number from 0 to 4294967295',
    ],
    [
      () => resolveOptions("drain-plan", { flags: { notice: "120" }, env: {} }),
      '--notice: found "120", expected a duration such as 90s or 12h30m',
    ],
    [
      () => run({ gcpPreemptionPoll: "999ms" }),
      '--gcp-preemption-poll: found "999ms", expected a duration from 1s to 1m',
    ],
    [
      () => run({ gcpPreemptionPoll: "61s" }),
      '--gcp-preemption-poll: found "61s", expected a duration from 1s to 1m',
    ],
    [
      () => run({ ec2StatusPoll: "11m" }),
      '--ec2-status-poll: found "11m", expected a duration from 1s to 10m',
    ],
    [
      () => run({ sqsAbandonLaunchAfter: "0s" }),
      '--sqs-abandon-launch-after: found "0s", expected a duration of at least 1m',
    ],
    [
      () => resolveOptions("setup", { flags: { gcpPreemptionPoll: "0s" }, env: {} }),
      '--gcp-preemption-poll: found "0s", expected a duration from 1s to 1m',
    ],
    [
      () => resolveOptions("plan", { flags: { at: "tomorrow" }, env: {} }),
      '--at: found "tomorrow", expected a time such as 22:00, a duration from now such as 2h, or an RFC 3339 instant such as 2026-12-01T00:00:00Z',
    ],
    [
      () => resolveOptions("run", { flags: {}, env: { LASTCALL_LOG_FORMAT: "xml" } }),
      'LASTCALL_LOG_FORMAT: found "xml", expected json or text',
    ],
  ])("%#", (resolve, sentence) => {
    expect(resolve).toThrow(new LastcallError("USAGE", `Cannot read ${sentence}`));
  });

  it("if it is required but missing", () => {
    expect(() => resolveOptions("agent", nothing)).toThrow(
      new LastcallError(
        "USAGE",
        "Cannot run lastcall agent: --node-name is required, set it or LASTCALL_NODE_NAME",
      ),
    );
  });

  it.each([
    ["nodes: many", 'lastcall.yaml:1: nodes: found "many", expected a whole number from 1 to 5000'],
    ["# two\ndemo:\n  nodes: [1, 2]", "lastcall.yaml:3: demo.nodes: found 2 values, expected one"],
    [
      "nodes: {a: 1}",
      "lastcall.yaml:1: nodes: found an object, expected a value or a list of values",
    ],
    ["log-levl: debug", "lastcall.yaml:1: log-levl: found an unknown option, expected log-level"],
    [
      "run: {zzz: 1}",
      "lastcall.yaml:1: run.zzz: found an unknown option, expected the name of an option",
    ],
    ["run: fast", 'lastcall.yaml:1: run: found "fast", expected options and their values'],
    ["- nodes", "lastcall.yaml:1: found a list, expected options and their values"],
    [
      "quiet: true\nquiet: false",
      "lastcall.yaml:2: quiet: found the field a second time, expected it once (line 1 already has it)",
    ],
  ])("in the config file: %j", (text, sentence) => {
    const resolve = () => resolveOptions("demo", { ...nothing, file: file(text) });
    expect(resolve).toThrow(new LastcallError("CONFIG_INVALID", `Cannot read ${sentence}`));
  });

  it("but an empty config file is valid", () => {
    expect(resolveOptions("demo", { ...nothing, file: file("# nothing\n") }).nodes).toBe(18);
  });
});

describe("a flag without an effect is refused", () => {
  it.each([
    [
      "demo",
      { hours: "3" },
      "--hours: it has no effect without --headless, add that or remove --hours",
    ],
    [
      "demo",
      { output: "json" },
      "--output: it has no effect without --headless, add that or remove --output",
    ],
    [
      "demo",
      { speed: "3", headless: true },
      "--speed: it has no effect together with --headless, remove one of the two",
    ],
    [
      "demo",
      { for: "1m", headless: true },
      "--for: it has no effect together with --headless, remove one of the two",
    ],
    [
      "demo",
      { address: ":0", headless: true },
      "--address: it has no effect together with --headless, remove one of the two",
    ],
    [
      "board",
      { address: ":0", tui: true },
      "--address: it has no effect together with --tui, remove one of the two",
    ],
    [
      "depart",
      { actionHosts: "x" },
      "--action-hosts: it has no effect without --only-actions, add that or remove --action-hosts",
    ],
    [
      "audit",
      { kubeletInsecureTls: true, askKubelets: "proxy" },
      "--kubelet-insecure-tls: it has no effect without --ask-kubelets=direct, add that or remove --kubelet-insecure-tls",
    ],
    [
      "audit",
      { askKubelets: "direct", filename: ["a.yaml"] },
      "--ask-kubelets: it has no effect together with --filename, remove one of the two",
    ],
    [
      "audit",
      { askKubelets: "direct", from: ["a.json"] },
      "--ask-kubelets: it has no effect together with --from, remove one of the two",
    ],
  ] as const)("%s %j", (command, flags, sentence) => {
    expect(() => resolveOptions(command, { flags, env: {} })).toThrow(
      new LastcallError("USAGE", `Cannot use ${sentence}`),
    );
  });

  it.each([
    ["a variable", { env: { LASTCALL_POLICY: "spot" } }, "LASTCALL_POLICY"],
    ["the config file", { env: {}, file: file("policy: [spot]") }, "lastcall.yaml:1: policy"],
  ])("and names %s if the other is from there", (_, sources, place) => {
    const sentence = `it has no effect together with ${place}, remove one of the two`;
    expect(() => resolveOptions("freeze", { flags: { all: true }, ...sources })).toThrow(
      new LastcallError("USAGE", `Cannot use --all: ${sentence}`),
    );
  });

  it.each([
    ["if the other is a variable", { flags: { hours: "3" }, env: { LASTCALL_HEADLESS: "1" } }],
    ["if it is a variable itself", { flags: {}, env: { LASTCALL_HOURS: "3" } }],
    ["if it is in the config file", { flags: {}, env: {}, file: file("hours: 3") }],
  ])("but not %s", (_where, sources) => {
    expect(resolveOptions("demo", sources).hours).toBe(3);
  });

  it("but not a switch that is off", () => {
    const flags = { kubeletInsecureTls: false };
    expect(resolveOptions("audit", { flags, env: {} }).kubeletInsecureTls).toBe(false);
  });
});

describe("standard input", () => {
  it.each([
    [{ filename: ["-"], from: ["-"] }, "--filename - and --from - both read it, expected one"],
    [{ filename: ["-", "-"] }, "--filename - and --filename - both read it, expected one"],
  ])("is refused if it is named twice: %j", (flags, sentence) => {
    expect(() => resolveOptions("plan", { flags, env: {} })).toThrow(
      new LastcallError("USAGE", `Cannot read standard input twice: ${sentence}`),
    );
  });

  it("is read once along with files", () => {
    const flags = { filename: ["policy.yaml"], from: ["-", "more.json"] };
    expect(resolveOptions("plan", { flags, env: {} }).from).toEqual(["-", "more.json"]);
  });
});

describe("a switch on the command line", () => {
  it.each([
    [["--leader-elect=false"], ["--no-leader-elect"]],
    [
      ["--leader-elect=true", "--dry-run=1"],
      ["--leader-elect", "--dry-run"],
    ],
    [
      ["--no-leader-elect", "--dry-run"],
      ["--no-leader-elect", "--dry-run"],
    ],
    [["--filename=maybe"], ["--filename=maybe"]],
    [["--context=true"], ["--context=true"]],
    [
      ["--", "--dry-run=false"],
      ["--", "--dry-run=false"],
    ],
    // The same forms that kubectl accepts.
    [
      ["-n=lastcall", "-f=a=b"],
      ["-nlastcall", "-fa=b"],
    ],
    [["-f="], ["-f="]],
    [["-z=1"], ["-z=1"]],
  ])("%j becomes %j", (args, spelled) => {
    expect(spellSwitches("run", args)).toEqual(spelled);
  });

  it.each(["maybe", ""])("refuses the value %j", (value) => {
    expect(() => spellSwitches("run", [`--dry-run=${value}`])).toThrow(
      `Cannot read --dry-run: found "${value}", expected true or false`,
    );
  });
});
