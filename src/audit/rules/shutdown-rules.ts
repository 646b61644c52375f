/** How much time a pod gets between SIGTERM and SIGKILL, and how it uses that time. */
import { isGraceful } from "../../core/drain-plan/drain-order.ts";
import { type AuditedFleet, canReach, graceOn } from "../fleet.ts";
import { type Container, longestPreStop } from "../objects/pod-template.ts";
import type { Workload } from "../objects/workload.ts";
import type { Platform } from "../platform.ts";
import {
  containerField,
  podField,
  type Remark,
  type Rule,
  type Severity,
  spotWorkloads,
} from "../report.ts";

/** The central rule: the kubelet gives the pod less time than it asks for. */
export const graceCut: Rule = {
  id: "grace-cut",
  severity: "error",
  title: "the pod asks for more seconds than the node gives it at shutdown",
  why: "When a Spot node is interrupted, its kubelet terminates each pod within the budget of the pod's priority group, whatever terminationGracePeriodSeconds says. A longer grace period is neither refused nor reported: the process is killed in the middle of its work. The API server's default of 30 s is information only, because nobody chose it.",
  fix: "Finish within the budget and ask for no more than that, or raise the node's shutdownGracePeriod (GKE Spot pools take 120 s), or keep the workload off Spot nodes.",
  whenNotToUse:
    "The work after SIGTERM may be lost at any time, and the longer grace is meant for rollouts on stable nodes only.",
  bad: {
    yaml: `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    spec:
      terminationGracePeriodSeconds: 60
      containers: [{name: web, image: web}]
`,
  },
  good: {
    yaml: `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    spec:
      terminationGracePeriodSeconds: 15
      containers: [{name: web, image: web}]
`,
  },
  check: checkGraceCut,
};

function checkGraceCut(fleet: AuditedFleet, platforms: readonly Platform[]): readonly Remark[] {
  return spotWorkloads(fleet).flatMap((workload) =>
    platforms
      .filter((platform) => canReach(workload, platform) && graceOn(platform, workload).cut)
      .map((platform) => remarkOn(workload, platform)),
  );
}

function remarkOn(workload: Workload, platform: Platform): Remark {
  const { grantedSeconds } = graceOn(platform, workload);
  const asks = `${workload.wantedGraceSeconds} s${workload.graceSource === "Set" ? "" : " (the default)"}`;
  const fix =
    grantedSeconds > 0
      ? `Finish within ${grantedSeconds} s and set terminationGracePeriodSeconds to at most that, or raise the node's shutdownGracePeriod`
      : "Set shutdownGracePeriod on the nodes, or rely on a drain that runs before the machine shuts down";
  const message = `Asks for ${asks} and gets ${grantedSeconds} s on ${platform.name} at priority ${workload.priority}`;
  return {
    severity: severityOn(workload, platform),
    platform: platform.name,
    about: workload,
    field: podField(workload, "terminationGracePeriodSeconds"),
    message,
    fix,
  };
}

/** A grace period that nobody set, or an unknown budget, must not fail a build. */
function severityOn(workload: Workload, platform: Platform): Severity {
  return workload.graceSource === "Set" && platform.source !== "Unknown" ? "error" : "info";
}

export const prestopOverGrace: Rule = {
  id: "prestop-over-grace",
  severity: "error",
  title: "the preStop hook takes the whole grace",
  why: "The grace runs from the start of the preStop hook, not from SIGTERM. A hook that sleeps as long as the grace, or longer, leaves the process at most two seconds between SIGTERM and SIGKILL, on every node. Of a script, only those sleeps count that run if its commands succeed: none behind a condition, in a loop or in the background.",
  fix: "Make terminationGracePeriodSeconds longer than the hook by what the process needs after SIGTERM, or make the hook shorter.",
  whenNotToUse:
    "The process has nothing to finish, and the hook alone (such as a wait for the load balancer) is what the grace is for.",
  bad: {
    yaml: `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    spec:
      terminationGracePeriodSeconds: 10
      containers:
      - name: web
        image: web
        lifecycle: {preStop: {exec: {command: [sh, -c, "sleep 10 && nginx -s quit"]}}}
`,
  },
  good: {
    yaml: `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    spec:
      terminationGracePeriodSeconds: 15
      containers:
      - name: web
        image: web
        lifecycle: {preStop: {sleep: {seconds: 5}}}
`,
  },
  check: checkPrestopOverGrace,
};

function checkPrestopOverGrace(fleet: AuditedFleet): readonly Remark[] {
  return spotWorkloads(fleet).flatMap((workload) => {
    const hookSeconds = longestPreStop(workload.template);
    const graceSeconds = workload.wantedGraceSeconds;
    if (hookSeconds === 0 || hookSeconds < graceSeconds) return [];
    const ends = Number.isFinite(hookSeconds);
    const takes = ends ? `takes at least ${hookSeconds} s` : "never ends and takes all";
    const message = `The preStop hook ${takes} of a grace of ${graceSeconds} s, so nothing is left for SIGTERM`;
    const fix = ends ? `Ask for more than ${hookSeconds} s, or shorten the hook` : "End the hook";
    return [{ severity: "error", about: workload, field: hookOf(workload), message, fix }];
  });
}

/** The field of the hook that takes longest. */
function hookOf(workload: Workload): Remark["field"] {
  const { containers } = workload.template;
  const longest = longestPreStop(workload.template);
  const found = containers.find(({ preStopSeconds }) => preStopSeconds === longest);
  return found && containerField(workload, found.name, "lifecycle", "preStop");
}

/** With less time than this after the hook, a program can hardly close its connections. */
const enoughSeconds = 5;

export const prestopEatsBudget: Rule = {
  id: "prestop-eats-budget",
  severity: "error",
  title: "the preStop hook fits the requested grace period, but not the one that the node gives",
  why: `The hook runs within the time that the node gives. A sleep of 15 s is harmless with the default grace of 30 s, and on a GKE Spot node, which gives 15 s, it leaves nothing for SIGTERM. Nothing left is an error, fewer than ${enoughSeconds} s a warning.`,
  fix: "Shorten the hook so that it and the process fit into the budget of the node.",
  whenNotToUse: "The process has nothing to finish after SIGTERM.",
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
        lifecycle: {preStop: {sleep: {seconds: 15}}}
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
        lifecycle: {preStop: {sleep: {seconds: 5}}}
`,
  },
  check: checkPrestopEatsBudget,
};

function checkPrestopEatsBudget(
  fleet: AuditedFleet,
  platforms: readonly Platform[],
): readonly Remark[] {
  return spotWorkloads(fleet).flatMap((workload) => {
    const hookSeconds = longestPreStop(workload.template);
    if (hookSeconds === 0 || hookSeconds >= workload.wantedGraceSeconds) return [];
    return platforms.flatMap((platform): readonly Remark[] => {
      const { grantedSeconds, cut } = graceOn(platform, workload);
      const leftSeconds = Math.max(0, grantedSeconds - hookSeconds);
      if (!cut || grantedSeconds === 0 || leftSeconds >= enoughSeconds) return [];
      if (!canReach(workload, platform)) return [];
      const severity = leftSeconds === 0 ? "error" : "warning";
      const message = `The preStop hook takes at least ${hookSeconds} s of the ${grantedSeconds} s that ${platform.name} gives, which leaves ${leftSeconds} s for SIGTERM`;
      const fix = `Shorten the hook to at most ${Math.max(0, grantedSeconds - enoughSeconds)} s`;
      const field = hookOf(workload);
      return [{ severity, platform: platform.name, about: workload, field, message, fix }];
    });
  });
}

export const noGracefulShutdown: Rule = {
  id: "no-graceful-shutdown",
  severity: "warning",
  title: "the nodes have no graceful shutdown at all",
  why: "A kubelet whose shutdownGracePeriod is 0 (the upstream default, and what EKS before kubelet 1.34 and AKS ship) does not terminate pods when the machine shuts down: they vanish with it, without SIGTERM and without preStop, and stay listed as running until the node is removed.",
  fix: "Set shutdownGracePeriod in the node's kubelet configuration where the platform lets you, and in any case drain on the notice, before the machine shuts down.",
  whenNotToUse: "Something drains every node on its notice, and its success is monitored.",
  bad: {
    platforms: ["aks"],
    yaml: `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {template: {spec: {containers: [{name: web, image: web}]}}}
`,
  },
  good: {
    platforms: ["eks-al2023"],
    yaml: `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {template: {spec: {containers: [{name: web, image: web}]}}}
`,
  },
  check: checkNoGracefulShutdown,
};

function checkNoGracefulShutdown(
  fleet: AuditedFleet,
  platforms: readonly Platform[],
): readonly Remark[] {
  const workloads = spotWorkloads(fleet);
  return platforms.flatMap((platform): readonly Remark[] => {
    const [example, ...more] = workloads.filter((workload) => canReach(workload, platform));
    if (isGraceful(platform.groups) || example === undefined) return [];
    const touched = 1 + more.length;
    const known = platform.source === "Unknown" ? "No budget is known on" : "Pods get no time on";
    const message = `${known} ${platform.name}: ${touched} ${touched === 1 ? "workload dies" : "workloads die"} with the machine unless it is drained before`;
    const fix =
      "Set shutdownGracePeriod in the kubelet configuration of these nodes, and drain on the notice";
    const about = undefined;
    return [{ severity: "warning", platform: platform.name, about, example, message, fix }];
  });
}

export const execSigtermLost: Rule = {
  id: "exec-sigterm-lost",
  severity: "warning",
  title: "a shell stands between SIGTERM and the process",
  why: "In a container whose first process is a shell that runs a script, SIGTERM reaches only the shell: the server never receives it, keeps running until the grace period ends, and is killed. A script without exec and without a trap is flagged. The shell matters: dash, the sh of Debian and Ubuntu, stays in front of whatever it runs, while bash and the ash of Alpine replace themselves with the last command of a plain list. So several commands are a warning under sh and information under the others, and a single command is information under sh. Pods that run to completion, and containers whose preStop hook does more than wait, are skipped. What an image's own entry point does cannot be seen.",
  fix: "Start the last command of the script with exec, or trap SIGTERM and pass it on, or run an init such as tini.",
  whenNotToUse:
    "The process has nothing to finish, or shareProcessNamespace and an init handle signals.",
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

const shellName = /^(?:.*\/)?(sh|dash|bash|ash|zsh|ksh)$/;
const scriptOption = /^-[a-z]*c[a-z]*$/;
const severalCommands = /[;|&\n]/;

/** `exec` and `trap` in the position of a command, except an `exec` that only opens files. */
const handsOn =
  /(?:^|[;&|(){]|\b(?:then|do|else)\s)[ \t]*(?:\w+=\S*\s+)*(?:exec\s+(?!\d*[<>])[^\s;&|]|trap\s)/m;

/** Commands that stay children of a shell, even of one that would `exec` its last command. */
const neverReplaced = /[|&]|\b(?:if|for|while|until|case)\b/;

/** Redirections such as `2>&1` and continued lines look like several commands but are not. */
const lookalikes = /\d*[<>]&\d*-?|&>|\\\n/g;

function checkExecSigtermLost(fleet: AuditedFleet): readonly Remark[] {
  return spotWorkloads(fleet)
    .filter((workload) => workload.template.restartPolicy === "Always")
    .flatMap((workload) =>
      workload.template.containers.flatMap((container): readonly Remark[] => {
        const severity = severityOfCommand(container);
        if (severity === undefined) return [];
        const does = severity === "warning" ? "does" : "may";
        const message = `The shell of container ${container.name} ${does} not pass SIGTERM on to what it starts`;
        return [
          {
            severity,
            about: workload,
            field: containerField(workload, container.name, "command"),
            message,
            fix: "Start the last command of the script with exec",
          },
        ];
      }),
    );
}

/** Tested with dash 0.5.12, bash 5.2 and the ash of busybox 1.35. */
function severityOfCommand({
  command,
  args,
  preStopActs,
}: Container): "warning" | "info" | undefined {
  const [program = "", ...rest] = withoutEnv([...command, ...args]);
  const name = shellName.exec(program)?.[1];
  const at = rest.findIndex((word) => scriptOption.test(word));
  const script = at < 0 ? undefined : rest[at + 1];
  if (name === undefined || script === undefined || preStopActs) return undefined;
  const bare = bareScript(script);
  if (handsOn.test(bare)) return undefined;
  const stays = name === "sh" || name === "dash";
  if (!severalCommands.test(bare)) return stays ? "info" : undefined;
  return stays || neverReplaced.test(bare.replaceAll("&&", ";")) ? "warning" : "info";
}

/** `env A=1 sh -c …` turns into the shell itself. */
function withoutEnv(words: readonly string[]): readonly string[] {
  const [program = "", ...rest] = words;
  if (!/^(?:.*\/)?env$/.test(program)) return words;
  return rest.slice(rest.findIndex((word) => !/^-|^\w+=/.test(word)));
}

/** Without comments, and without anything that merely looks like a second command. */
function bareScript(script: string): string {
  return script
    .replace(/^\s*#.*$/gm, "")
    .replace(lookalikes, " ")
    .replace(/[\s;]+$/, "")
    .trim();
}
