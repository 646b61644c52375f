import type { LabelRequirement, LabelSelector, Toleration } from "../../core/cluster/pod.ts";
import {
  type Fields,
  fieldsOf,
  isFields,
  listOf,
  nameOf,
  textListOf,
  textMapOf,
  textOf,
  valueAt,
  wholeNumberOf,
} from "../../core/json/json-field.ts";

/** The pods of a workload, with only the fields that some rule reads. */
export interface PodTemplate {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly containers: readonly Container[];
  readonly volumes: readonly Volume[];
  readonly nodeSelector: Readonly<Record<string, string>>;
  /** Required node affinity: terms are ORed, the requirements of a term ANDed; absent: none. */
  readonly nodeTerms?: readonly (readonly LabelRequirement[])[] | undefined;
  readonly tolerations: readonly Toleration[];
  readonly spread: readonly SpreadConstraint[];
  readonly apart: readonly AntiAffinityTerm[];
  readonly restartPolicy: string;
  readonly priorityClassName?: string | undefined;
}

/** A container that runs as long as the pod does: a main container, or a sidecar. */
export interface Container {
  readonly name: string;
  readonly sidecar: boolean;
  readonly command: readonly string[];
  readonly args: readonly string[];
  /** Ports that serve requests; those of metrics and health checks are left out. */
  readonly hasPorts: boolean;
  readonly hasReadinessProbe: boolean;
  /** The least number of seconds that the preStop hook takes; 0 if it does not show. */
  readonly preStopSeconds: number;
  /** The preStop hook does more than wait, so it may end the process itself. */
  readonly preStopActs: boolean;
  readonly mounts: readonly Mount[];
}

export interface Mount {
  readonly volume: string;
  readonly path: string;
  readonly readOnly: boolean;
}

export type Volume =
  | { readonly kind: "EmptyDir"; readonly name: string; readonly inMemory: boolean }
  | {
      readonly kind: "HostPath";
      readonly name: string;
      readonly path: string;
      readonly type?: string | undefined;
    }
  | ClaimVolume
  | { readonly kind: "Other"; readonly name: string };

/** A volume that a PersistentVolumeClaim provides. */
export interface ClaimVolume {
  readonly kind: "Claim";
  readonly name: string;
  /** Of a claim that exists by itself; undefined if one is created for each pod. */
  readonly claim?: string | undefined;
  /** As each pod's own claim names it; undefined: the cluster's default class. */
  readonly storageClass?: string | undefined;
}

export interface SpreadConstraint {
  readonly selector: LabelSelector | undefined;
  readonly topologyKey: string;
}

export interface AntiAffinityTerm {
  readonly selector: LabelSelector | undefined;
  /** The term applies to named or selected namespaces, not only to the pod's own. */
  readonly otherNamespaces: boolean;
  readonly topologyKey: string;
}

/** Reads a pod, or the pod template of a workload: `{metadata, spec}`. */
export function readPodTemplate(template: unknown): PodTemplate {
  const metadata = fieldsOf(valueAt(template, ["metadata"]));
  const spec = fieldsOf(valueAt(template, ["spec"]));
  return {
    labels: textMapOf(metadata.labels),
    annotations: textMapOf(metadata.annotations),
    containers: readContainers(spec),
    volumes: listOf(spec.volumes).map(readVolume),
    nodeSelector: textMapOf(spec.nodeSelector),
    nodeTerms: readNodeTerms(spec),
    tolerations: listOf(spec.tolerations).map(readToleration),
    spread: listOf(spec.topologySpreadConstraints).map((item) => ({
      selector: readSelector(fieldsOf(item).labelSelector),
      topologyKey: textOf(fieldsOf(item).topologyKey) ?? "",
    })),
    apart: readAntiAffinity(spec),
    restartPolicy: textOf(spec.restartPolicy) ?? "Always",
    priorityClassName: textOf(spec.priorityClassName),
  };
}

/** Kubernetes reads an empty field like one that is not set, and an empty operator as Equal. */
function readToleration(item: unknown): Toleration {
  const { key, operator, value, effect } = fieldsOf(item);
  return {
    key: textOf(key) || undefined,
    operator: operator === "Exists" ? "Exists" : "Equal",
    value: textOf(value),
    effect: (textOf(effect) || undefined) as Toleration["effect"],
  };
}

/** Init containers run before; only those that always restart live on, as sidecars. */
function readContainers(spec: unknown): readonly Container[] {
  const mains = listOf(valueAt(spec, ["containers"])).map((item) => readContainer(item, "Main"));
  const sidecars = listOf(valueAt(spec, ["initContainers"]))
    .filter((item) => fieldsOf(item).restartPolicy === "Always")
    .map((item) => readContainer(item, "Sidecar"));
  return [...mains, ...sidecars];
}

function readContainer(value: unknown, role: "Main" | "Sidecar"): Container {
  const fields = fieldsOf(value);
  return {
    name: nameOf(fields.name) ?? "",
    sidecar: role === "Sidecar",
    command: textListOf(fields.command),
    args: textListOf(fields.args),
    hasPorts: listOf(fields.ports).some((port) => !isStatusPort(fieldsOf(port))),
    hasReadinessProbe: isFields(fields.readinessProbe),
    preStopSeconds: preStopSeconds(fields),
    preStopActs: preStopActs(fields),
    mounts: listOf(fields.volumeMounts).map(readMount),
  };
}

const statusPort = /metrics|prometheus|health|^(?:prom|ready|readiness|liveness|probes?)$/i;

/**
 * A port for metrics or health checks, by its name: of a container's `ports`, or of a Service's.
 */
export function isStatusPort({ name, targetPort }: Fields): boolean {
  return [name, targetPort].some((word) => statusPort.test(textOf(word) ?? ""));
}

function readMount(value: unknown): Mount {
  const fields = fieldsOf(value);
  return {
    volume: nameOf(fields.name) ?? "",
    path: textOf(fields.mountPath) ?? "",
    readOnly: fields.readOnly === true,
  };
}

/** A volume without a source is an emptyDir. Source: kubernetes core/v1 SetDefaults_Volume. */
function readVolume(value: unknown): Volume {
  const { name: written, ...rest } = fieldsOf(value);
  const name = nameOf(written) ?? "";
  const sources = Object.entries(rest).filter(([, source]) => source !== null);
  const { emptyDir, hostPath } = Object.fromEntries(sources);
  if (emptyDir !== undefined || sources.length === 0) {
    return { kind: "EmptyDir", name, inMemory: fieldsOf(emptyDir).medium === "Memory" };
  }
  const { persistentVolumeClaim, ephemeral } = Object.fromEntries(sources);
  if (isFields(persistentVolumeClaim)) {
    return { kind: "Claim", name, claim: nameOf(persistentVolumeClaim.claimName) ?? "" };
  }
  if (isFields(ephemeral)) return claimFor(name, ephemeral.volumeClaimTemplate);
  if (!isFields(hostPath)) return { kind: "Other", name };
  return { kind: "HostPath", name, path: nameOf(hostPath.path) ?? "", type: textOf(hostPath.type) };
}

/** The volume of a claim that is created for each pod, from its template. */
export function claimFor(name: string, template: unknown): ClaimVolume {
  const storageClass = textOf(valueAt(template, ["spec", "storageClassName"]));
  return { kind: "Claim", name, storageClass };
}

function readNodeTerms(spec: unknown): PodTemplate["nodeTerms"] {
  const required = valueAt(spec, [
    "affinity",
    "nodeAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "nodeSelectorTerms",
  ]);
  if (!Array.isArray(required)) return undefined;
  const terms = required.map(fieldsOf);
  // The DaemonSet controller binds each pod to its node this way; it says nothing about the
  // workload.
  const names = (term: Fields) =>
    listOf(term.matchFields).length > 0 && listOf(term.matchExpressions).length === 0;
  if (terms.some(names)) return undefined;
  return terms.map((term) => readRequirements(term.matchExpressions));
}

function readAntiAffinity(spec: unknown): readonly AntiAffinityTerm[] {
  const rule = fieldsOf(valueAt(spec, ["affinity", "podAntiAffinity"]));
  const required = listOf(rule.requiredDuringSchedulingIgnoredDuringExecution);
  const preferred = listOf(rule.preferredDuringSchedulingIgnoredDuringExecution);
  const terms = [...required, ...preferred.map((item) => fieldsOf(item).podAffinityTerm)];
  return terms.map((item) => {
    const fields = fieldsOf(item);
    return {
      selector: readSelector(fields.labelSelector),
      otherNamespaces: listOf(fields.namespaces).length > 0 || isFields(fields.namespaceSelector),
      topologyKey: textOf(fields.topologyKey) ?? "",
    };
  });
}

/** Reads a label selector; undefined if there is none (which selects nothing). */
export function readSelector(value: unknown): LabelSelector | undefined {
  if (!isFields(value)) return undefined;
  return {
    matchLabels: textMapOf(value.matchLabels),
    matchExpressions: readRequirements(value.matchExpressions),
  };
}

/** Requirements of a label selector or of node affinity. */
export function readRequirements(value: unknown): readonly LabelRequirement[] {
  return listOf(value).map((item) => {
    const fields = fieldsOf(item);
    return {
      key: textOf(fields.key) ?? "",
      operator: (textOf(fields.operator) ?? "In") as LabelRequirement["operator"],
      values: textListOf(fields.values),
    };
  });
}

/** Seconds in each unit that `sleep` takes. */
const unitSeconds: Readonly<Record<string, number>> = { "": 1, s: 1, m: 60, h: 3600, d: 86_400 };

/** `sleep 20`, perhaps behind a `timeout 5`, and Python's, anywhere in a text. */
const sleepCall =
  /(?:^|[\s;&|(/'"])(?:timeout\s+(?:-\S+\s+)*(\d+(?:\.\d+)?)([smhd]?)\s+(?:\S*\/)?)?sleep\s+(inf(?:inity)?|\d+(?:\.\d+)?)([smhd]?)(?![\w.])|time\.sleep\((\d+(?:\.\d+)?)\)/g;

/**
 * The least number of seconds that a container's preStop hook takes, as far as it shows: the
 * built-in `sleep` action, or the sleeps of an exec command. 0 if it shows nothing.
 */
function preStopSeconds(container: unknown): number {
  const hook = fieldsOf(valueAt(container, ["lifecycle", "preStop"]));
  const builtIn = wholeNumberOf(valueAt(hook, ["sleep", "seconds"]));
  if (builtIn !== undefined) return builtIn;
  return sleepSecondsOf(textListOf(valueAt(hook, ["exec", "command"])));
}

/** Whether the hook does anything except sleep: such a hook may well stop the process itself. */
function preStopActs(container: unknown): boolean {
  const hook = fieldsOf(valueAt(container, ["lifecycle", "preStop"]));
  if (isFields(hook.httpGet)) return true;
  const command = textListOf(valueAt(hook, ["exec", "command"]))
    .filter((word) => !/^(?:.*\/)?(?:ba|da|a)?sh$|^-[a-z]+$/.test(word))
    .map((word) => word.replace(opaque, (found) => (found.startsWith("#") ? "" : found)))
    .join(" ");
  return /[a-z]/i.test(command.replace(sleepCall, " "));
}

/** What may stand before the program that a command runs in the foreground. */
const wrapper = /^(?:(?:.*\/)?(?:env|nohup)|\w+=.*)$/;
const scriptOption = /^-[a-z]*c$/;

/**
 * The least number of seconds that a command sleeps if what it runs succeeds: the sleeps added up
 * that run unconditionally, and in the foreground. `sh -c "sleep 5; nginx -s quit; sleep 1m"` is
 * 65, `sh -c "drained || sleep 5"` is 0. Infinite for `sleep infinity`.
 */
export function sleepSecondsOf(command: readonly string[]): number {
  const [program = "", ...rest] = command.slice(command.findIndex((one) => !wrapper.test(one)));
  const at = rest.findIndex((word) => scriptOption.test(word));
  const script = at < 0 ? undefined : rest.slice(at + 1).find((word) => !word.startsWith("-"));
  if (script === undefined) return secondsOfCommand(command.join(" "));
  if (/^(?:.*\/)?python[\d.]*$/.test(program)) return secondsOfPython(script);
  const isShell = /^(?:.*\/)?(?:ba|da|a|k|z)?sh$/.test(program);
  return isShell ? secondsOfScript(script, rest.slice(0, at + 1)) : 0;
}

/** A command that sleeps, and nothing else. */
const sleepCommand =
  /^\s*(?:(?:exec|env|nohup|\w+=\S*)\s+)*(?:(?:\S*\/)?timeout\s+(?:-[ks]\s+[^-\s]\S*\s+|-\S+\s+)*(\d+(?:\.\d+)?)([smhd]?)\s+)?(?:\S*\/)?sleep\s+(inf(?:inity)?|\d+(?:\.\d+)?)([smhd]?)(?=\s|$)[^|<>]*$/;

function secondsOfCommand(command: string): number {
  const call = sleepCommand.exec(command);
  if (call === null) return 0;
  const [, limit, limitUnit, count = "", unit] = call;
  const asked = inSeconds(count, unit);
  return limit === undefined ? asked : Math.min(asked, inSeconds(limit, limitUnit));
}

/** A statement with a block of its own, which may skip what follows, or that ends the program. */
const branchingPython = /^(?:async|class|def|exit|for|if|match|quit|raise|sys\.|try|while|with)\b/;

function secondsOfPython(script: string): number {
  let seconds = 0;
  for (const line of script.split("\n")) {
    if (branchingPython.test(line)) break;
    for (const statement of line.split(";")) {
      seconds += Number(/^\s*time\.sleep\((\d+(?:\.\d+)?)\)\s*$/.exec(statement)?.[1] ?? 0);
    }
  }
  return seconds;
}

/** What a shell does not read as commands: escaped characters, quoted text and comments. */
const opaque = /\\[\s\S]|'[^']*'|"(?:\\[\s\S]|[^"\\])*"|`[^`]*`|(?<=^|[\s;&|()])#[^\n]*/g;

/** Commands whose following ones may be skipped, or never return: from here on, nothing counts. */
const ending = /(?<=^|\s)(?:exit|return|eval|source|exec\s+[^\s<>\d]\S*)(?=\s|$)|^\s*\.\s|<</;

const opening = /(?<=^|\s)(?:if|while|until|for|case|select|\{)(?=\s|$)|\(/g;
const closing = /^\s*(?:fi|done|esac|\})(?=\s|$)/;

/**
 * Not a parser: whatever it might not understand counts as no time. Within a group, a branch or a
 * loop, nothing counts.
 */
function secondsOfScript(script: string, options: readonly string[]): number {
  let seconds = 0;
  let depth = 0;
  let stopsAtErrors = options.some((word) => stopAtErrors.test(`set ${word}`));
  for (const [, list = "", mark] of plainScript(script).matchAll(/((?:&&|[^;&\n])+)(&?)/g)) {
    const opened = list.match(opening)?.length ?? 0;
    const closed = closing.test(list) ? 1 : 0;
    const runs = depth === 0 && opened + closed === 0 && mark === "";
    if (runs) seconds += secondsOfList(list);
    depth += opened - closed;
    stopsAtErrors ||= stopAtErrors.test(list);
    if (ending.test(list) || (stopsAtErrors && list.split(/&&|\|\|/).some(mayFail))) break;
  }
  return seconds;
}

const stopAtErrors = /^\s*set\s(?:.*\s)?(?:-[a-z]*[eu]|errexit|nounset)/;

/** Commands joined by `&&` and `||`: the first one runs, others as long as each succeeds. */
function secondsOfList(list: string): number {
  const [chain = ""] = list.split("||");
  let seconds = 0;
  for (const command of chain.split("&&")) {
    seconds += secondsOfCommand(command);
    if (mayFail(command)) break;
  }
  return seconds;
}

/** A test, a `timeout` that ends what it runs, and an `exec`, from which no shell comes back. */
const failing =
  /^\s*(?:!|\[\[?|(?:\S*\/)?(?:test|[efp]?grep|pidof|timeout|which|false|cmp|diff)|command|type|exec|kill\s+-0)(?=\s|$)/;

/** Whether the command is there to fail at times; others are expected to succeed. */
function mayFail(command: string): boolean {
  return failing.test(command.split("|").at(-1) ?? "");
}

const spoken = /(?<=^|[\s;&|])(?:echo|printf)(?=\s)[^;&|\n<>]*/g;

const group = /\$?\((?:(?!\bcase\b)[^()])*\)/g;

/** The commands of a script alone, each list of them on one line. */
function plainScript(script: string): string {
  let plain = script
    .replace(opaque, asWord)
    .replace(/&>/g, ">")
    .replace(/\d?[<>]&\d?-?|\d?>>?\s*\/(?:dev\/(?:null|std\w+)|proc\/1\/fd\/\d)(?=\s|$)/g, " ")
    .replace(/(&&|\|\|?)\s+/g, "$1 ");
  // Deeper nesting, and patterns of a `case`, are not understood: brackets that are left open a
  // group.
  for (let round = 0; round < 8; round++) plain = plain.replace(group, " _ ");
  return plain.replace(spoken, " : ");
}

function asWord(found: string): string {
  if (found.startsWith("#") || found === "\\\n") return "";
  const inner = found.slice(1, -1);
  return /^['"]/.test(found) && /^[\w./:-]+$/.test(inner) ? inner : "_";
}

function inSeconds(count: string, unit = ""): number {
  return count.startsWith("inf")
    ? Number.POSITIVE_INFINITY
    : Number(count) * (unitSeconds[unit] ?? 1);
}

/** The longest hook of a pod: the hooks of its containers run in parallel. */
export function longestPreStop(pod: {
  readonly containers: readonly { readonly preStopSeconds: number }[];
}): number {
  return Math.max(0, ...pod.containers.map((container) => container.preStopSeconds));
}
