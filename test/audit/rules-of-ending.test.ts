import { describe, expect, it } from "vitest";
import { sleepSecondsOf } from "../../src/audit/objects/sleep-seconds.ts";
import { remarks, withContainer } from "./support/rule-remarks.ts";

describe("the duration of a preStop hook", () => {
  it.each([
    { command: ["sleep", "15"], seconds: 15 },
    { command: ["/bin/sleep", "7.5"], seconds: 7.5 },
    { command: ["sh", "-c", "sleep 5 && nginx -s quit; sleep 1m"], seconds: 65 },
    { command: ["/bin/sh", "-c", "/bin/sleep 20"], seconds: 20 },
    { command: ["sh", "-c", "nosleep 9; sleepy 3"], seconds: 0 },
    { command: ["python3", "-c", "import time; time.sleep(20)"], seconds: 20 },
    { command: ["sleep", "infinity"], seconds: Number.POSITIVE_INFINITY },
    { command: ["sh", "-c", "sleep inf; sleep 3"], seconds: Number.POSITIVE_INFINITY },
    { command: ["sh", "-c", "echo going to sleep 60 && sleep 5"], seconds: 5 },
    { command: ["sh", "-c", "printf 'sleep 60'\nsleep 5"], seconds: 5 },
    { command: ["echo", "sleep", "60"], seconds: 0 },
    { command: ["sh", "-c", "timeout 5 sleep 60; sleep 1"], seconds: 6 },
    { command: ["timeout", "-s", "KILL", "1m", "/bin/sleep", "20"], seconds: 20 },
    { command: ["timeout", "--foreground", "5s", "sleep", "infinity"], seconds: 5 },
    { command: ["/wait-shutdown"], seconds: 0 },
    { command: [], seconds: 0 },
    { command: ["python3", "-c", "import time\nif drained():\n  time.sleep(20)"], seconds: 0 },
    { command: ["python3", "-c", "import time; stop(); time.sleep(20)"], seconds: 20 },
    { command: ["timeout", "5", "sh", "-c", "sleep 60"], seconds: 0 },
    { command: ["sh", "-c", "sleep", "60"], seconds: 0 },
    { command: ["env", "A=1", "/bin/bash", "-ec", "sleep 5\nnginx -s quit"], seconds: 5 },
    { command: ["bash", "-ec", "nginx -s quit; sleep 5"], seconds: 5 },
  ])("$command is $seconds s", ({ command, seconds }) => {
    expect(sleepSecondsOf(command)).toBe(seconds);
  });

  it.each([
    // Of a list of commands, what runs if they succeed counts.
    { script: "wget -q localhost/drain && sleep 30", seconds: 30 },
    { script: "set -e\nnginx -s quit\nsleep 20", seconds: 20 },
    { script: "sleep 5; nginx -s quit", seconds: 5 },
    { script: "sleep 5\nnginx -s quit\n", seconds: 5 },
    { script: "nginx -s quit; sleep 5", seconds: 5 },
    { script: "sleep 5 && sleep 3 && nginx -s quit && sleep 60", seconds: 68 },
    { script: "sleep 5 &&\n  sleep 3", seconds: 8 },
    { script: "sleep 5 || true", seconds: 5 },
    { script: "A=1 exec sleep 5", seconds: 5 },
    { script: "set -x\nsleep '5' > /dev/null 2>&1; nginx -s quit", seconds: 5 },
    { script: 'echo "going; sleep 60" > /proc/1/fd/1 && sleep 5', seconds: 5 },
    { script: "echo waiting for connections if any; sleep 5", seconds: 5 },
    { script: "sleep 5 && kill -QUIT $(pidof nginx; sleep 60)", seconds: 5 },
    { script: "echo $(a; sleep 60; b) && sleep 5", seconds: 5 },
    // Comments and quoted text do not.
    { script: "# was: sleep 60\nsleep 5", seconds: 5 },
    { script: "sleep 5 # it's enough; sleep 60\nsleep 1", seconds: 6 },
    { script: "log 'a; sleep 60\nsleep 60'; sleep 5", seconds: 5 },
    { script: "cat <<EOF\nsleep 60\nEOF", seconds: 0 },
    // Neither does what may be skipped.
    { script: "wget -q localhost/drain || sleep 30", seconds: 0 },
    { script: "wget -q localhost/drain ||\n  sleep 30", seconds: 0 },
    { script: "set -e\n[ -f x ]\nsleep 20", seconds: 0 },
    { script: "set -e\nsleep 3\ngrep x y; sleep 20", seconds: 3 },
    { script: "timeout 5 sleep 60 && sleep 30", seconds: 5 },
    { script: '[ "$A" = b ] && sleep 20; nginx -s quit', seconds: 0 },
    { script: "echo b | grep a && sleep 20", seconds: 0 },
    { script: "if [ -f x ]; then sleep 5; else sleep 12; fi", seconds: 0 },
    { script: "if(x); then\n  sleep 5\nfi; sleep 3", seconds: 3 },
    { script: "while pgrep x; do sleep 20; done", seconds: 0 },
    { script: "for i in 1 2; do\n  sleep 20\ndone\nsleep 3", seconds: 3 },
    { script: "case $A in b) sleep 20;; esac; sleep 3", seconds: 3 },
    { script: "case $A in b) if c; then d; fi; sleep 20;; esac", seconds: 0 },
    { script: "wait_long() {\n  sleep 60\n}\nsleep 3", seconds: 3 },
    { script: "a || { sleep 20; }; sleep 3", seconds: 3 },
    { script: "(sleep 20; a) & sleep 3", seconds: 3 },
    { script: "[ -f x ] || exit 0\nsleep 20", seconds: 0 },
    { script: "sleep 3; exec nginx -s quit; sleep 20", seconds: 3 },
    { script: "exec sleep 3 && sleep 20", seconds: 3 },
    { script: "sleep 3; (case $A in a) b; sleep 20;; esac)", seconds: 3 },
    // Nor does the background.
    { script: "nohup sleep 60 & kill 1", seconds: 0 },
    { script: "sleep 60 && nginx -s quit &", seconds: 0 },
    { script: "sleep 60 &\nsleep 5", seconds: 5 },
  ])("of the script $script is $seconds s", ({ script, seconds }) => {
    expect(sleepSecondsOf(["sh", "-c", script])).toBe(seconds);
  });

  it("is found in time for a script of nothing but brackets and quotes", () => {
    const script = `${"(".repeat(50_000)}${"'\"`".repeat(50_001)}sleep 5`;

    expect(sleepSecondsOf(["sh", "-c", script])).toBe(0);
  });
});

describe("a preStop hook", () => {
  const hook = (seconds: number) => `lifecycle: {preStop: {sleep: {seconds: ${seconds}}}}`;

  it.each([
    { grace: 20, sleep: 19, over: 0, why: "one second is left" },
    { grace: 20, sleep: 20, over: 1, why: "nothing is left" },
    { grace: 20, sleep: 25, over: 1, why: "it is longer than the grace" },
  ])("of $sleep s in a grace of $grace s: $why", async ({ grace, sleep, over }) => {
    const yaml = withContainer(hook(sleep), `terminationGracePeriodSeconds: ${grace},`);

    expect(await remarks("prestop-over-grace", yaml)).toHaveLength(over);
  });

  it.each([
    { sleep: 10, platform: "gke", says: [] },
    { sleep: 11, platform: "gke", says: ["warning … leaves 4 s"] },
    { sleep: 15, platform: "gke", says: ["error … leaves 0 s"] },
    { sleep: 29, platform: "gke", says: ["error … leaves 0 s"] },
    { sleep: 30, platform: "gke", says: [] },
    { sleep: 15, platform: "eks-al2023", says: [] },
    { sleep: 15, platform: "aks", says: [] },
  ])("of $sleep s in the default grace on $platform: $says", async ({ sleep, platform, says }) => {
    const found = await remarks("prestop-eats-budget", withContainer(hook(sleep)), platform);

    expect(found.map((one) => one.replace(/ .*(leaves \d+ s).*/, " … $1"))).toEqual(says);
  });

  it("without an end uses up any grace", async () => {
    const yaml = withContainer("lifecycle: {preStop: {exec: {command: [sleep, infinity]}}}");

    expect(await remarks("prestop-over-grace", yaml)).toEqual([
      "error The preStop hook never ends and takes all of a grace of 30 s, so nothing is left for SIGTERM",
    ]);
  });

  it("counts in a sidecar, but not in an ordinary init container", async () => {
    const init = (policy: string) =>
      withContainer("ports: []", `initContainers: [{name: i, ${policy} ${hook(40)}}],`);

    expect(await remarks("prestop-over-grace", init("restartPolicy: Always,"))).toHaveLength(1);
    expect(await remarks("prestop-over-grace", init(""))).toHaveLength(0);
  });
});

describe("a shell as the main process", () => {
  it.each([
    { command: '[sh, -c, "a && b"]', says: "warning" },
    { command: '[/bin/bash, -ec, "a\\nb"]', says: "info" },
    { command: '[bash, -c, "a; b | tee log"]', says: "warning" },
    { command: '[bash, -c, "while true; do a; done"]', says: "warning" },
    { command: '[/bin/ash, -c, "a && b"]', says: "info" },
    { command: '[sh, -c], args: ["a; b"]', says: "warning" },
    { command: '[sh, -c, "server --port 80 > /dev/stdout 2>&1"]', says: "info" },
    { command: '[sh, -c, "server --port 80 \\\\\\n --verbose"]', says: "info" },
    { command: '[sh, -c, "# starts it\\nserver;\\n"]', says: "info" },
    { command: "[bash, -c, server --port 80]", says: undefined },
    { command: '[env, A=1, sh, -c, "a && b"]', says: "warning" },
    { command: '[/usr/bin/env, -i, A=1, sh, -c, "a && b"]', says: "warning" },
    { command: '[env, A=1, sh, -c, "exec b"]', says: undefined },
    { command: "[env, A=1, server]", says: undefined },
    { command: '[sh, -c, "# exec would be better\\na\\nb"]', says: "warning" },
    { command: '[sh, -c, "kubectl exec p -- a; b"]', says: "warning" },
    { command: '[sh, -c, "find . -exec a {} +; b"]', says: "warning" },
    { command: '[sh, -c, "exec 2>&1; a; b"]', says: "warning" },
    { command: '[sh, -c, "exec > log 2>&1\\na\\nb"]', says: "warning" },
    { command: '[sh, -c, "exec 2>&1 b"]', says: undefined },
    { command: '[sh, -c, "a && exec b"]', says: undefined },
    { command: '[sh, -c, "a\\n  A=1 exec \\\\\\n b"]', says: undefined },
    { command: '[sh, -c, "if a; then exec b; else exec c; fi"]', says: undefined },
    { command: '[sh, -c, "case $a in b) exec c;; esac; d"]', says: undefined },
    { command: '[sh, -c, "a || { exec b; }; c"]', says: undefined },
    { command: "[sh, -c, \"trap 'kill $p' TERM; b & p=$!; wait\"]", says: undefined },
    { command: "[tini, --, server]", says: undefined },
    { command: '[python, -c, "a; b"]', says: undefined },
  ])("$command: $says", async ({ command, says }) => {
    const found = await remarks("exec-sigterm-lost", withContainer(`command: ${command}`));

    expect(found[0]?.split(" ")[0]).toBe(says);
  });

  const preStop = (action: string) =>
    withContainer(`command: [sh, -c, "a; b"], lifecycle: {preStop: {${action}}}`);

  it.each([
    { action: 'exec: {command: [/bin/sh, -c, "sleep 5 && kill -SIGTERM $(pidof b)"]}', says: 0 },
    { action: "exec: {command: [nginx, -s, quit]}", says: 0 },
    { action: "httpGet: {path: /quit, port: 80}", says: 0 },
    { action: 'exec: {command: [/bin/sh, -c, "sleep 15"]}', says: 1 },
    { action: 'exec: {command: [/bin/sh, -c, "# gives it time\\nsleep 15"]}', says: 1 },
    { action: "sleep: {seconds: 15}", says: 1 },
  ])("with the preStop hook {$action} is flagged: $says", async ({ action, says }) => {
    expect(await remarks("exec-sigterm-lost", preStop(action))).toHaveLength(says);
  });

  it("is not flagged in a pod that runs to completion", async () => {
    const pod =
      '{apiVersion: v1, kind: Pod, metadata: {name: t}, spec: {restartPolicy: Never, containers: [{name: m, command: [sh, -c, "a; b"]}]}}\n';

    expect(await remarks("exec-sigterm-lost", pod)).toEqual([]);
  });
});

describe("a missing readiness probe", () => {
  const service = (ports: string) =>
    `{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {selector: {app: web}, ports: [${ports}]}}\n---\n`;

  it.each([
    { service: service("{port: 80}"), container: "args: []", missing: 1 },
    { service: service("{port: 80, name: http}"), container: "args: []", missing: 1 },
    {
      service: service("{port: 9402, name: tcp-prometheus-servicemonitor}"),
      container: "args: []",
      missing: 0,
    },
    {
      service: service("{port: 80}, {port: 9090, name: http-metrics}"),
      container: "args: []",
      missing: 1,
    },
    { service: service("{port: 9090, targetPort: metrics}"), container: "args: []", missing: 0 },
    { service: "", container: "ports: [{containerPort: 8080}]", missing: 1 },
    { service: "", container: "ports: [{containerPort: 8080, name: metrics}]", missing: 0 },
    { service: "", container: "ports: [{containerPort: 1, name: http-healthz}]", missing: 0 },
    { service: "", container: "ports: [{containerPort: 1, name: http}]", missing: 1 },
    { service: "", container: "args: []", missing: 0 },
    // These pods have a Service in the input, but it gets no user requests.
    {
      service: service("{port: 8000, name: metrics-port}"),
      container: "ports: [{containerPort: 9443, name: https}]",
      missing: 0,
    },
  ])(
    "behind $service with $container is flagged: $missing",
    async ({ service, container, missing }) => {
      expect(await remarks("readiness-missing", service + withContainer(container))).toHaveLength(
        missing,
      );
    },
  );
});
