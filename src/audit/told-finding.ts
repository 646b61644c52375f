import type { Finding } from "./report.ts";

/** A finding as people are told it: once, however many platforms it applies to. */
export interface ToldFinding extends Omit<Finding, "platform"> {
  /** Empty if it applies to all. */
  readonly platforms: readonly string[];
}

/**
 * One for each rule and object of a file: what is wrong on several platforms has one place and one
 * fix. The first and so the worst of them is quoted.
 */
export function toldFindings<One extends Finding>(
  findings: readonly One[],
): readonly (Omit<One, "platform"> & ToldFinding)[] {
  const groups = Map.groupBy(findings, ({ rule, object, file, line, platform, message }) =>
    JSON.stringify([rule, object, file, line, platform === null ? message : ""]),
  );
  return [...groups.values()].flatMap(([first, ...others]) => {
    if (first === undefined) return [];
    const platforms = [first, ...others].flatMap(({ platform }) => platform ?? []);
    const also = [...new Set(platforms.slice(1))];
    const message = also.length === 0 ? first.message : `${first.message}; also on ${listed(also)}`;
    return [{ ...first, platforms, message }];
  });
}

function listed(names: readonly string[]): string {
  const last = names.at(-1) ?? "";
  return names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${last}` : last;
}
