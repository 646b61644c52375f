import type { AuditedFleet } from "../fleet.ts";
import type { Container } from "../objects/pod-template.ts";
import { type Remark, type Rule, spotWorkloads } from "../rule.ts";

export const execSigtermLost: Rule = {
  id: "exec-sigterm-lost",
  severity: "warning",
  title: "a shell stands between SIGTERM and the process",
  why: "In a container whose first process is a shell that runs a script, SIGTERM reaches the shell and goes no further: the server never hears it, works on until the grace is over and is killed. A script without exec and without a trap is flagged. Which shell it is matters: dash, the sh of Debian and Ubuntu, stays in front of whatever it runs, while bash and the ash of Alpine replace themselves with the last command of a plain list. So several commands are a warning under sh and information under the others, and a single command is information under sh. Pods that run to their end, and containers whose preStop hook does more than wait, are skipped. What an image's own entry point does cannot be seen.",
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

const shell = /^(?:.*\/)?(sh|dash|bash|ash|zsh|ksh)$/;
const option = /^-[a-z]*c[a-z]*$/;
const severalCommands = /[;|&\n]/;

/** `exec` and `trap` where a command may stand, and not the `exec` that only opens files. */
const handsOn =
  /(?:^|[;&|(){]|\b(?:then|do|else)\s)[ \t]*(?:\w+=\S*\s+)*(?:exec\s+(?!\d*[<>])[^\s;&|]|trap\s)/m;

/** What even a shell that replaces itself where it can stays in front of. */
const neverReplaced = /[|&]|\b(?:if|for|while|until|case)\b/;

/** Redirections such as `2>&1` and continued lines look like several commands, and are none. */
const lookalikes = /\d*[<>]&\d*-?|&>|\\\n/g;

function checkExecSigtermLost(fleet: AuditedFleet): readonly Remark[] {
  return spotWorkloads(fleet)
    .filter((workload) => workload.template.restartPolicy === "Always")
    .flatMap((workload) =>
      workload.template.containers.flatMap((container): readonly Remark[] => {
        const severity = judge(container);
        if (severity === undefined) return [];
        const does = severity === "warning" ? "does" : "may";
        const message = `The shell of container ${container.name} ${does} not pass SIGTERM on to what it starts`;
        return [
          {
            severity,
            about: workload,
            message,
            fix: "Start the last command of the script with exec",
          },
        ];
      }),
    );
}

/** Tried with dash 0.5.12, bash 5.2 and the ash of busybox 1.35. */
function judge({ command, args, preStopActs }: Container): "warning" | "info" | undefined {
  const [program = "", ...rest] = withoutEnv([...command, ...args]);
  const name = shell.exec(program)?.[1];
  const at = rest.findIndex((word) => option.test(word));
  const script = at < 0 ? undefined : rest[at + 1];
  if (name === undefined || script === undefined || preStopActs) return undefined;
  const bare = bareScript(script);
  if (handsOn.test(bare)) return undefined;
  const stays = name === "sh" || name === "dash";
  if (!severalCommands.test(bare)) return stays ? "info" : undefined;
  return stays || neverReplaced.test(bare.replaceAll("&&", ";")) ? "warning" : "info";
}

/** `env A=1 sh -c …` becomes the shell itself. */
function withoutEnv(words: readonly string[]): readonly string[] {
  const [program = "", ...rest] = words;
  if (!/^(?:.*\/)?env$/.test(program)) return words;
  return rest.slice(rest.findIndex((word) => !/^-|^\w+=/.test(word)));
}

/** Without comments, and without what only looks like a second command. */
function bareScript(script: string): string {
  return script
    .replace(/^\s*#.*$/gm, "")
    .replace(lookalikes, " ")
    .replace(/[\s;]+$/, "")
    .trim();
}
