import { describe, expect, test } from "vitest";
import { parsePolicyObject } from "../../src/config/policy/parse-policy-object.ts";
import { cronProblem } from "../../src/core/limits/windows.ts";
import { translateKiller } from "../../src/migrate/killer.ts";
import { killerValuesSetup, killerWorkloadSetup } from "../../src/migrate/killer-setup.ts";
import { onlyWorkload, workloadsOf } from "../../src/migrate/workload.ts";

function ofValues(values: unknown) {
  return translateKiller(killerValuesSetup(values, "values.yaml"));
}

const image = "estafette/estafette-gke-preemptible-killer:1.3.1";

function ofContainer(container: object, pod: object = {}, others: readonly object[] = []) {
  const deployment = {
    kind: "Deployment",
    metadata: { name: "preemptible-killer", namespace: "estafette" },
    spec: { template: { spec: { ...pod, containers: [{ image, ...container }] } } },
  };
  const objects = [deployment, ...others] as readonly Readonly<Record<string, unknown>>[];
  const found = workloadsOf(objects, "estafette-gke-preemptible-killer");
  const setup = killerWorkloadSetup(onlyWorkload(found, "m.yaml", image), objects, "m.yaml");
  return translateKiller(setup);
}

/** The spec of the only policy, which is valid. */
function specOf({ policies }: ReturnType<typeof ofValues>) {
  expect(policies).toHaveLength(1);
  const [policy] = policies;
  const read = parsePolicyObject(policy, { cronProblem, unknownFields: "Refuse" });
  expect(read).toHaveProperty("policy");
  return policy?.spec as Readonly<Record<string, unknown>>;
}

const preemptible = { key: "cloud.google.com/gke-preemptible", operator: "In", values: ["true"] };

describe("the killer's settings", () => {
  test("by default are the killer's own: 12 to 24 hours, spread out, 300 s for a drain", () => {
    expect(specOf(ofValues({}))).toEqual({
      nodeSelector: { nodeSelectorTerms: [{ matchExpressions: [preemptible] }] },
      lifetime: { min: "12h", max: "24h", reserve: "1800s" },
      spacing: { mode: "Even" },
      drain: { timeout: "300s", onTimeout: "Proceed" },
    });
  });

  test.each([
    ["09:00 - 12:00", ["09:00 12:00"]],
    ["9:00-12:00,13:00-18:00", ["09:00 12:00", "13:00 18:00"]],
    ["22:00 - 06:00", ["22:00 06:00"]],
    ["22:00-00:00", ["22:00 00:00"]],
    ["00:00 - 12:00, 12:00 - 00:00", ["00:00 12:00", "12:00 00:00"]],
  ])("with the hours %s become windows in UTC", (hours, wanted) => {
    const { windows } = specOf(ofValues({ extraEnv: { WHITELIST_HOURS: hours } }));
    const expected = wanted.map((span, at) => {
      const [start, end] = span.split(" ");
      return { name: `whitelist-${at + 1}`, type: "Allow", timeZone: "UTC", start, end };
    });
    expect(windows).toEqual(expected);
  });

  test("with blacklisted hours become Deny windows", () => {
    const { windows } = specOf(ofValues({ extraEnv: { BLACKLIST_HOURS: "09:00 - 17:00" } }));
    expect(windows).toMatchObject([{ type: "Deny", start: "09:00", end: "17:00" }]);
  });

  test("with filters become terms of the selector", () => {
    const FILTERS = "example.com/pool: a, b; zone:x";
    const { nodeSelector } = specOf(ofValues({ extraEnv: { FILTERS } }));
    const expressions = [
      preemptible,
      { key: "example.com/pool", operator: "In", values: ["a", "b"] },
      { key: "zone", operator: "In", values: ["x"] },
    ];
    expect(nodeSelector).toEqual({ nodeSelectorTerms: [{ matchExpressions: expressions }] });
  });

  test("with a long drain timeout get a longer reserve", () => {
    expect(specOf(ofValues({ drainTimeout: 3600 }))).toMatchObject({
      lifetime: { reserve: "4500s" },
      drain: { timeout: "3600s" },
    });
  });

  test.each<[string, object, string]>([
    ["hours without minutes", { WHITELIST_HOURS: "9-17" }, "extraEnv.WHITELIST_HOURS"],
    ["the hour 24", { WHITELIST_HOURS: "22:00-24:00" }, "extraEnv.WHITELIST_HOURS"],
    ["minutes above 59", { BLACKLIST_HOURS: "09:60-10:00" }, "extraEnv.BLACKLIST_HOURS"],
    [
      "hours that start and end at the same time",
      { BLACKLIST_HOURS: "09:00-09:00" },
      "extraEnv.BLACKLIST_HOURS",
    ],
    ["an extra comma", { WHITELIST_HOURS: "09:00-12:00," }, "extraEnv.WHITELIST_HOURS"],
    ["a filter that is a selector", { FILTERS: "pool=web" }, "extraEnv.FILTERS"],
    ["a filter without a value", { FILTERS: "pool:" }, "extraEnv.FILTERS"],
    ["a filter with two colons", { FILTERS: "pool:a:b" }, "extraEnv.FILTERS"],
    ["a timeout with a unit", { DRAIN_TIMEOUT: "5m" }, "extraEnv.DRAIN_TIMEOUT"],
    ["no timeout", { DRAIN_TIMEOUT: 0 }, "extraEnv.DRAIN_TIMEOUT"],
    ["a negative timeout", { DRAIN_TIMEOUT: -1 }, "extraEnv.DRAIN_TIMEOUT"],
    ["a timeout of a day", { DRAIN_TIMEOUT: 86400 }, "extraEnv.DRAIN_TIMEOUT"],
    ["a timeout in a list", { DRAIN_TIMEOUT: [300] }, 'extraEnv.DRAIN_TIMEOUT: found "[300]"'],
    ["hours as a map", { WHITELIST_HOURS: { a: "b" } }, "extraEnv.WHITELIST_HOURS"],
  ])("are refused with %s", (_, extraEnv, place) => {
    const translate = () => ofValues({ extraEnv });
    expect(translate).toThrow(`Cannot translate values.yaml: ${place}`);
    expect(translate).toThrow(expect.objectContaining({ code: "INPUT_INVALID", exitCode: 2 }));
  });

  test("are refused with bad hours in a flag, or with a limit from a reference", () => {
    const extraArgs = ["--blacklist-hours", "noon"];
    expect(() => ofValues({ extraArgs })).toThrow("the flag --blacklist-hours: found");
    const valueFrom = { configMapKeyRef: { name: "c", key: "k" } };
    const hidden = () => ofContainer({ env: [{ name: "WHITELIST_HOURS", valueFrom }] });
    expect(hidden).toThrow("the variable WHITELIST_HOURS");
    const listed = () => ofValues({ extraEnv: [{ name: "FILTERS", valueFrom }] });
    expect(listed).toThrow("values.yaml: extraEnv.FILTERS: found nothing, expected its value");
    for (const extraEnv of ["WHITELIST_HOURS=1", ["FILTERS=a:b"]]) {
      expect(() => ofValues({ extraEnv })).toThrow("values.yaml: extraEnv: found");
    }
  });

  test("are resolved from variables that a flag or another variable refers to", () => {
    const env = [
      { name: "HOURS", value: "01:00-02:00" },
      { name: "BLACKLIST_HOURS", value: "$(HOURS)" },
      { name: "SECONDS", value: 90 },
    ];
    const args = ["--drain-timeout=$(SECONDS)", "--whitelist-hours", "$(HOURS)"];
    const spec = specOf(ofContainer({ env, args }));
    expect(spec).toMatchObject({
      windows: [
        { type: "Allow", start: "01:00" },
        { type: "Deny", start: "01:00" },
      ],
      drain: { timeout: "90s" },
    });
    // Kubernetes leaves unknown references as they are, and a doubled dollar.
    for (const odd of ["$(NONE)", "$$(HOURS)"]) {
      const translate = () => ofContainer({ env, args: [`--whitelist-hours=${odd}`] });
      expect(translate).toThrow(`found "${odd.replace("$$", "$")}", expected hours`);
    }
  });

  test.each<[string, object, string]>([
    ["arguments that are not a list", { args: "-w 01:00-02:00" }, 'args: found "-w 01:00-02:00"'],
    ["variables that are not a list", { env: { FILTERS: "a:b" } }, "env: found"],
    [
      "variables from a ConfigMap",
      { envFrom: [{ configMapRef: { name: "c" } }, { secretRef: { name: "s" } }] },
      'envFrom: found "configMapRef c, secretRef s", expected its variables under env',
    ],
    [
      "a shell script",
      { command: ["/bin/sh", "-c", "exec /killer --blacklist-hours=01:00-02:00"] },
      "command: found",
    ],
    ["a flag without a value", { args: ["--blacklist-hours"] }, "--blacklist-hours: found nothing"],
    ["a script in the arguments", { args: ["bash", "-c", "/killer -w 1"] }, "command: found"],
  ])("are refused if a limit may be hidden in %s", (_, container, found) => {
    const translate = () => ofContainer(container);
    expect(translate).toThrow(expect.objectContaining({ code: "INPUT_INVALID", exitCode: 2 }));
    expect(translate).toThrow(found);
  });

  test("take precedence as in the killer: flags over variables, the last variable wins", () => {
    const values = {
      drainTimeout: 100,
      extraEnv: { DRAIN_TIMEOUT: 200, WHITELIST_HOURS: "01:00-02:00" },
      extraArgs: ["-w", "03:00-04:00", "-i10"],
    };
    expect(specOf(ofValues(values))).toMatchObject({
      drain: { timeout: "200s" },
      windows: [{ start: "03:00", end: "04:00" }],
    });
  });

  test("without an equivalent get one note each, and the rest is translated", () => {
    const made = ofValues({
      interval: 300,
      extraArgs: ["--metrics-path=/m", "--new-flag", "x", "--other"],
      extraEnv: { FILTERS: "a: b, c", BLACKLIST_HOURS: "00:00-12:00,12:00-00:00" },
      sidecar: { enabled: true },
      resources: { limits: { memory: "50Mi" } },
    });
    specOf(made);
    const wanted = [
      "values.yaml: interval has no equivalent",
      "the flag --metrics-path has no equivalent",
      "the flag --new-flag is not a setting of the killer",
      "the flag --other is not a setting of the killer",
      "extraEnv.FILTERS has several values",
      "extraEnv.BLACKLIST_HOURS leaves no hour",
      "sidecar is not a value",
      "resources fit a program of another size",
    ];
    for (const said of wanted) {
      expect(
        made.notes.filter((note) => note.includes(said)),
        said,
      ).toHaveLength(1);
    }
    expect(made.notes).toHaveLength(wanted.length);
  });

  test("that name Lastcall's images already keep them, without a note", () => {
    const image = { repository: "registry.example.com/lastcall/lastcall" };
    const agent = { image: { repository: "registry.example.com/lastcall/lastcall-agent" } };
    const made = ofValues({ image, agent });
    expect(made.notes).toEqual([]);
    expect(made.values).toEqual({ image, agent });
    const killers = { repository: "estafette/estafette-gke-preemptible-killer" };
    expect(ofValues({ image: killers, agent }).values).toEqual({});
    expect(ofValues({ image: killers, agent }).notes).toHaveLength(2);
  });

  test("that are empty get no note", () => {
    const made = ofValues({
      ...{ extraArgs: [], extraEnv: {}, nodeSelector: {}, nameOverride: "", image: { tag: null } },
      secret: {
        workloadIdentityServiceAccount: "",
        googleServiceAccountKeyfileJson: '{"type": "service_account"}',
      },
    });
    expect(made.notes).toEqual([]);
    expect(made.values).toEqual({});
  });

  test("never include a key file in the result", () => {
    const key = '{"type": "service_account", "private_key": "TOP-SECRET"}';
    const made = ofValues({ secret: { googleServiceAccountKeyfileJson: key } });
    expect(JSON.stringify(made)).not.toContain("TOP-SECRET");
    expect(made.notes.join()).toContain("--set-file secret.googleServiceAccountKeyfileJson");
  });

  test("become chart values", () => {
    const made = ofValues({
      replicaCount: 2,
      logFormat: "stackdriver",
      serviceAccount: { create: true, name: "killer" },
      secret: { workloadIdentityServiceAccount: "k@p.iam.gserviceaccount.com" },
      nodeSelector: { pool: "default" },
      extraPodLabels: { team: "infra" },
      extraEnv: { ESTAFETTE_LOG_LEVEL: "Trace", HTTPS_PROXY: "http://proxy" },
    });
    expect(made.values).toEqual({
      controller: { replicas: 2, options: { "log-format": "json", "log-level": "debug" } },
      serviceAccount: { create: true, name: "killer" },
      secret: { workloadIdentityServiceAccount: "k@p.iam.gserviceaccount.com" },
      nodeSelector: { pool: "default" },
      podLabels: { team: "infra" },
      extraEnv: { HTTPS_PROXY: "http://proxy" },
    });
    expect(made.notes).toEqual([
      "values.yaml: extraEnv.HTTPS_PROXY is not a setting of the killer 1.3.1: the controller gets it unchanged",
    ]);
  });

  test.each([["2"], [2]])("set the controller's replicas: %j", (replicaCount) => {
    expect(ofValues({ replicaCount }).values).toEqual({ controller: { replicas: 2 } });
  });
});

describe("the killer's manifest", () => {
  test("sets the settings, service account, key and node selector", () => {
    const made = ofContainer(
      {
        command: ["/killer", "--drain-timeout=600"],
        env: [
          { name: "DRAIN_TIMEOUT", value: "300" },
          { name: "GOOGLE_APPLICATION_CREDENTIALS", value: "/etc/keys/sub/key.json" },
        ],
        volumeMounts: [{ name: "keys", mountPath: "/etc/keys" }],
      },
      {
        serviceAccountName: "killer",
        nodeSelector: { pool: "default" },
        volumes: [{ name: "keys", secret: { secretName: "killer-secrets" } }],
      },
    );
    expect(specOf(made)).toMatchObject({ drain: { timeout: "600s" } });
    expect(made.values).toEqual({
      serviceAccount: { name: "killer" },
      secret: { googleServiceAccountSecret: { name: "killer-secrets", key: "sub/key.json" } },
      nodeSelector: { pool: "default" },
    });
    expect(made.notes).toEqual([]);
  });

  test("sets the Google identity of its service account", () => {
    const annotations = { "iam.gke.io/gcp-service-account": "k@p.iam" };
    const account = { kind: "ServiceAccount", metadata: { name: "killer", annotations } };
    const made = ofContainer({}, { serviceAccountName: "killer" }, [account]);
    expect(made.values.secret).toEqual({ workloadIdentityServiceAccount: "k@p.iam" });
  });

  test.each([
    ["no killer in it", [["a", "nginx"]], "found none"],
    [
      "two killers",
      [
        ["a", image],
        ["b", image],
      ],
      "found 2 (default/a, default/b)",
    ],
  ])("is refused with %s", (_, images, said) => {
    const items = images.map(([name, one]) => ({
      kind: "Deployment",
      metadata: { name },
      spec: { template: { spec: { containers: [{ image: one }] } } },
    }));
    const found = workloadsOf([{ kind: "List", items }], "estafette-gke-preemptible-killer");
    expect(() => onlyWorkload(found, "m.yaml", "killer")).toThrow(said);
  });
});
