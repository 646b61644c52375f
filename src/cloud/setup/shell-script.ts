import { LastcallError } from "../../errors.ts";

/** The ServiceAccount that gets the permissions, and how to reach its cluster. */
export interface AccountChoice {
  readonly namespace: string;
  readonly serviceAccount: string;
  readonly kubeconfig?: string | undefined;
  readonly context?: string | undefined;
}

/** The required format of a value, and its description for errors. */
export interface Form {
  readonly flag: string;
  readonly pattern: RegExp;
  readonly wanted: string;
}

const label = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

export const accountForms = {
  namespace: { flag: "--namespace", pattern: label, wanted: "the name of a namespace" },
  serviceAccount: {
    flag: "--service-account",
    pattern: /^[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$/,
    wanted: "the name of a Kubernetes ServiceAccount",
  },
  // A line break would also break the line in the script, which a person reads.
  kubeconfig: {
    flag: "--kubeconfig",
    pattern: /^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+$/u,
    wanted: "printable text",
  },
  context: {
    flag: "--context",
    pattern: /^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+$/u,
    wanted: "printable text",
  },
} as const satisfies Record<string, Form>;

/** Throws USAGE for the first value with an invalid format. Skips undefined values. */
export function checkForms<Name extends string>(
  values: { readonly [name in NoInfer<Name>]?: string | undefined },
  forms: Readonly<Record<Name, Form>>,
): void {
  for (const [name, { flag, pattern, wanted }] of Object.entries<Form>(forms)) {
    const value = values[name as Name];
    if (value === undefined || pattern.test(value)) continue;
    const found = `found ${JSON.stringify(value.slice(0, 60))}`;
    throw new LastcallError("USAGE", `Cannot use ${flag}: ${found}, expected ${wanted}`);
  }
}

/** Quotes a value as one word of the shell, whatever it contains. */
export function shellQuoted(value: string): string {
  return `'${value.replaceAll("'", "'\\''")}'`;
}

/** One assignment per line. Omits variables whose value is undefined. */
export function assignments(variables: Readonly<Record<string, string | undefined>>): string {
  return Object.entries(variables)
    .flatMap(([name, value]) => (value === undefined ? [] : `${name}=${shellQuoted(value)}`))
    .join("\n");
}

/** Ends the script if a command that it needs is missing. */
export function toolChecks(tools: readonly string[]): string {
  return tools
    .map(
      (tool) =>
        `command -v ${tool} >/dev/null || { echo "Cannot continue: ${tool} is not on the PATH" >&2; exit 1; }`,
    )
    .join("\n");
}

/**
 * Defines `kubectl` as a bash array with the chosen cluster and namespace, and `typed`, which
 * prints a command as one would type it.
 */
export function kubectlArray({ kubeconfig, context }: AccountChoice): string {
  const flags = [
    ...(kubeconfig === undefined ? [] : ["--kubeconfig", shellQuoted(kubeconfig)]),
    ...(context === undefined ? [] : ["--context", shellQuoted(context)]),
    '--namespace "$namespace"',
  ];
  return `kubectl=(kubectl ${flags.join(" ")})
typed() {
  printf '%q ' "$@"
  echo
}`;
}

/** The header line that says what made the script, and what a second run does. */
export function madeBy(cloud: string, script: "Setup" | "Undo"): string {
  const twice = {
    Setup: "It can be run again: existing objects are updated.",
    Undo: "It can be run again: what is already gone is skipped.",
  };
  return `# Printed by \`lastcall setup ${cloud}${script === "Undo" ? " --undo" : ""}\`. ${twice[script]}`;
}

/** Defines `keep`, which says what an undo does not remove; so does then the script's end. */
export const keeping = `rest=""
keep() {
  echo "Kept: $1"
  rest=", except for what is kept"
}`;

/** The end of an undo whose other steps went on after kubectl failed. */
export function undoEnd(done: string): string {
  return `if [[ -n "$lost" ]]; then
  unfinished="$lost"
  exit 1
fi
${done}`;
}

/** How the command line tool of a cloud reports that a resource does not exist. */
export interface Absence {
  /** The tool, and what is added to each call. */
  readonly tool: string;
  readonly flags: string;
  /** A pattern of bash. */
  readonly exitCode: string;
  /** A bash regular expression for the message. */
  readonly message: string;
}

/**
 * Defines `look`. Only the tool's own "not found", by exit code and message, counts as absence: a
 * missing permission, an expired login or a timeout does not tell whether the resource exists.
 */
export function lookFunction({ tool, flags, exitCode, message }: Absence): string {
  return `# Prints the response of ${tool}, or "missing" if it says that there is no such resource. Any other error ends the script.
look() {
  local answer attempt status
  for attempt in 1 2 3; do
    if answer="$(${tool} "$@"${flags} 2>/dev/null)"; then
      echo "$answer"
      return
    fi
    # Repeat the call to capture its error. If it succeeds now, start over.
    status=0
    answer="$(${tool} "$@"${flags} 2>&1 >/dev/null)" || status=$?
    if [[ "$status" != 0 ]]; then break; fi
  done
  if [[ "$status" == ${exitCode} && "$answer" =~ ${message} ]]; then
    echo missing
    return
  fi
  echo "Cannot tell what exists: ${tool} $1 $2 $3 failed: $answer" >&2
  return 1
}`;
}

/** Says what is left if the script ends early; `unfinished` is updated by its steps. */
export function endReport(unfinished: string): string {
  return `lost=""
${unfinishedNow(unfinished)}
trap 'if [[ $? != 0 ]]; then echo "Not finished: $unfinished" >&2; fi' EXIT`;
}

/** From here on, what is left if the script ends early. */
export function unfinishedNow(unfinished: string): string {
  return `unfinished="${unfinished}"`;
}

export const nothingChanged = "nothing was changed";
/** For a setup that ends after its first change. */
export const partlyCreated =
  "what was created so far is kept; run this again to complete it, or the script of --undo to remove it";
/** For an undo that ends after its first change. */
export function partlyRemoved(rest: string): string {
  return `still there, unless it never existed: ${rest}; run this again to remove it`;
}

/** The text of a block, whose first line is indented already. */
export function indented(text: string): string {
  return text.replaceAll("\n", "\n  ");
}
