import { didYouMean } from "../problem.ts";

const ownPrefix = "LASTCALL_";

/** Kubernetes sets them in every pod of a namespace with a Service named `lastcall-metrics`. */
const serviceVariable =
  /_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$/;

interface KnownVariables {
  /** Of two that are equally near to a misspelt one, the first is meant. */
  readonly named: readonly string[];
  /** Those whose names the user chooses begin like this. */
  readonly beginning?: string;
}

/**
 * One sentence for each variable of ours that does nothing: somebody relies on it. Without its
 * value, which may be secret.
 */
export function unreadVariables(
  env: Readonly<Record<string, string | undefined>>,
  { named, beginning }: KnownVariables,
): readonly string[] {
  const isChosen = (name: string) => beginning !== undefined && name.startsWith(beginning);
  return Object.keys(env)
    .filter((name) => name.startsWith(ownPrefix) && (env[name] ?? "") !== "")
    .filter((name) => !named.includes(name) && !isChosen(name) && !serviceVariable.test(name))
    .sort()
    .map((name) => {
      const near = didYouMean(withoutPrefix(name), named.map(withoutPrefix));
      const meant = near === undefined ? "" : ` (did you mean ${ownPrefix}${near}?)`;
      return `The environment variable ${name} is unknown and does nothing${meant}`;
    });
}

function withoutPrefix(variable: string): string {
  return variable.slice(ownPrefix.length);
}
