import type { Fleet } from "../fleet.ts";
import type { Container } from "../pod-template.ts";
import { type Remark, type Rule, spotWorkloads } from "../rule.ts";

export const execSigtermLost: Rule = {
  id: "exec-sigterm-lost",
  severity: "warning",
  title: "a shell stands between SIGTERM and the process",
  why: "In a container whose first process is a shell that runs a script, SIGTERM reaches the shell and goes no further: the server never hears it, works on until the grace is over and is killed. Only a script of several commands without exec and without a trap is flagged; for a single command most shells replace themselves. What an image's own entry point does cannot be seen.",
  fix: "Start the last command of the script with exec, or trap SIGTERM and pass it on, or run an init such as tini.",
  whenNotToUse:
    "The process has nothing to finish, or shareProcessNamespace and an init take care of signals.",
  bad: {
    yaml: `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    spec:
      containers:
      - name: web
        image: web
        command: [sh, -c, "./migrate && ./server --port 8080"]
`,
  },
  good: {
    yaml: `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    spec:
      containers:
      - name: web
        image: web
        command: [sh, -c, "./migrate && exec ./server --port 8080"]
`,
  },
  check: checkExecSigtermLost,
};

const shell = /^(?:.*\/)?(?:ba|da|a|z|k)?sh$/;
const option = /^-[a-z]*c[a-z]*$/;
const severalCommands = /[;|&\n]/;

/** Redirections such as `2>&1` and continued lines look like several commands, and are none. */
const lookalikes = /\d*[<>]&\d*-?|&>|\\\n/g;

function checkExecSigtermLost(fleet: Fleet): readonly Remark[] {
  return spotWorkloads(fleet)
    .filter((workload) => workload.kind !== "Job" && workload.kind !== "CronJob")
    .flatMap((workload) =>
      workload.template.containers.filter(losesSigterm).map((container) => ({
        severity: "warning",
        about: workload,
        message: `The shell of container ${container.name} does not pass SIGTERM on to what it starts`,
        fix: "Start the last command of the script with exec",
      })),
    );
}

function losesSigterm({ command, args }: Container): boolean {
  const line = [...command, ...args];
  if (!shell.test(line[0] ?? "")) return false;
  const at = line.findIndex((word) => option.test(word));
  const script = at < 0 ? undefined : line[at + 1]?.trim();
  if (script === undefined || /\b(exec|trap)\s/.test(script)) return false;
  return severalCommands.test(script.replace(lookalikes, " "));
}
