import { clouds } from "../cloud/clouds.ts";
import type { KnownPlatform } from "../contracts/cloud-descriptor.ts";
import { groupsOfPair, type ShutdownGroup } from "../core/drain-plan/drain-order.ts";
import { type Millis, parseDuration, seconds } from "../core/time/time.ts";
import { LastcallError } from "../errors.ts";

/**
 * Where a budget comes from. `Read`: from the node's own kubelet. `File`: from the user, as a
 * KubeletConfiguration or as `kubelet:30s/15s`. `Default`: what the platform ships. `Unknown`: not
 * known; the upstream default, no graceful shutdown, is assumed.
 */
export type BudgetSource = "Read" | "File" | "Default" | "Unknown";

/** What nodes of one kind give pods at shutdown. */
export interface Platform {
  /** As the user typed it, or a known name for nodes in the input. */
  readonly name: string;
  /** Empty: no graceful shutdown. */
  readonly groups: readonly ShutdownGroup[];
  readonly source: BudgetSource;
  /**
   * Set if nobody named the platform: only workloads that can run on this cloud are checked against
   * it.
   */
  readonly assumedCloud?: string | undefined;
}

/** Nodes as shipped. */
export const knownPlatforms: Readonly<Record<string, KnownPlatform>> = Object.assign(
  {},
  ...clouds.map(({ audit }) => audit.platforms),
);

/** Checked if neither the user nor a node of the input names a platform. */
export const defaultPlatformNames: readonly string[] = clouds.flatMap<string>(
  ({ audit }) => audit.usualPlatforms,
);

/** The default platforms, each for the workloads of its own cloud. */
export function assumedPlatforms(): readonly Platform[] {
  return clouds.flatMap(({ facts, audit }) =>
    audit.usualPlatforms.map((name) => ({
      ...knownPlatform(name),
      assumedCloud: facts.kubernetes,
    })),
  );
}

/** What a platform argument requests; the caller reads the file of a `KubeletFile`. */
export type PlatformRequest =
  | { readonly kind: "Ready"; readonly platform: Platform }
  | { readonly kind: "KubeletFile"; readonly name: string; readonly path: string };

/** Throws USAGE for an unknown name. */
export function knownPlatform(name: string): Platform {
  const known = Object.hasOwn(knownPlatforms, name) ? knownPlatforms[name] : undefined;
  if (known === undefined) throw unknownPlatform(name);
  const groups = groupsOfPair(seconds(known.totalSeconds), seconds(known.criticalSeconds));
  return { name, groups, source: "Default" };
}

/**
 * Reads a platform argument: a known name, `kubelet:30s/15s` or `kubelet:FILE`.
 * Throws USAGE for anything else, and for periods that the kubelet would refuse.
 */
export function parsePlatform(text: string): PlatformRequest {
  if (Object.hasOwn(knownPlatforms, text)) return { kind: "Ready", platform: knownPlatform(text) };
  const argument = /^kubelet:(.+)$/s.exec(text)?.[1];
  if (argument === undefined) throw unknownPlatform(text);
  const pair = /^(-?\.?\d[^/]*)\/(-?\.?\d[^/]*)$/.exec(argument);
  if (parseDuration(argument) !== undefined) {
    throw new LastcallError(
      "USAGE",
      `Cannot read the platform ${text}: it is one duration, expected the pair TOTAL/CRITICAL such as kubelet:30s/15s`,
    );
  }
  if (/^[\d.]+$/.test(argument)) {
    throw new LastcallError(
      "USAGE",
      `Cannot read the platform ${text}: it is a number without a unit, expected the pair TOTAL/CRITICAL such as kubelet:30s/15s`,
    );
  }
  if (pair === null) return { kind: "KubeletFile", name: text, path: argument };
  const totalMs = parseDuration(pair[1] ?? "");
  const criticalMs = parseDuration(pair[2] ?? "");
  if (totalMs === undefined || criticalMs === undefined) {
    throw new LastcallError(
      "USAGE",
      `Cannot read the platform ${text}: it is not a pair of durations, expected two Go durations from 0s on such as kubelet:30s/15s`,
    );
  }
  const problem = problemOfPair(totalMs, criticalMs);
  if (problem !== undefined) {
    throw new LastcallError("USAGE", `Cannot read the platform ${text}: ${problem}`);
  }
  const groups = groupsOfPair(totalMs, criticalMs);
  return { kind: "Ready", platform: { name: text, groups, source: "File" } };
}

/**
 * Why the kubelet itself would refuse the two periods, as the end of a sentence.
 * Source: kubernetes 1.36 pkg/kubelet/apis/config/validation/validation.go.
 */
export function problemOfPair(totalMs: Millis, criticalMs: Millis): string | undefined {
  if (criticalMs > totalMs) {
    return `${criticalMs / 1000} s for critical pods are more than the ${totalMs / 1000} s in total, expected at most the total`;
  }
  const tooShort = [totalMs, criticalMs].find((periodMs) => periodMs > 0 && periodMs < 1000);
  if (tooShort === undefined) return undefined;
  return `a period is ${tooShort} ms, expected 0 or at least 1 s`;
}

function unknownPlatform(text: string): LastcallError {
  const known = Object.keys(knownPlatforms);
  const names = known.join(", ");
  const listed = text.split(",");
  if (listed.length > 1 && listed.every((one) => known.includes(one.trim()))) {
    return new LastcallError(
      "USAGE",
      `Cannot judge against the platform ${JSON.stringify(text)}: it is a list, expected --platform once for each`,
    );
  }
  const near = known.find((one) => one === text.toLowerCase());
  const meant = near === undefined ? "" : ` (did you mean ${near}?)`;
  return new LastcallError(
    "USAGE",
    `Cannot judge against the platform ${JSON.stringify(text)}${meant}: it is unknown, expected one of ${names}, kubelet:TOTAL/CRITICAL or kubelet:FILE`,
  );
}
