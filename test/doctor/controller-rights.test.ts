import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import {
  agentRights,
  controllerRights,
  fallbackRights,
  type Right,
  restartRights,
  rightName,
} from "../../src/doctor/rights.ts";

interface Role {
  readonly metadata?: { readonly name?: string };
  readonly kind?: string;
  readonly rules?: readonly {
    readonly apiGroups: readonly string[];
    readonly resources: readonly string[];
    readonly resourceNames?: readonly string[];
    readonly verbs: readonly string[];
  }[];
}

/** Each permission that the roles of this name grant, with its scope. */
function granted(file: string, name: string): readonly string[] {
  const roles = parseAllDocuments(readFileSync(file, "utf8")).map((one) => one.toJS() as Role);
  return roles
    .filter(({ metadata, rules }) => metadata?.name === name && rules !== undefined)
    .flatMap(({ kind, rules = [] }) =>
      rules.flatMap(({ apiGroups, resources, resourceNames = [undefined], verbs }) =>
        verbs.flatMap((verb) =>
          resources.flatMap((one) =>
            apiGroups.flatMap((group) =>
              resourceNames.map((resourceName) => {
                const [resource = "", subresource] = one.split("/");
                const own = kind === "Role";
                return textOf({ verb, group, resource, subresource, own, name: resourceName });
              }),
            ),
          ),
        ),
      ),
    )
    .sort();
}

function textOf(right: Right): string {
  return `${rightName(right)} ${right.own ? "own" : "all"} ${right.name ?? ""}`;
}

const cordon = {
  "agent-fallback/cordon/rbac.yaml": ["lastcall-agent-fallback-cordon", "lastcall-agent-fallback"],
};

it.each([
  ["the controller", controllerRights, { "base/rbac.yaml": ["lastcall"] }],
  [
    "a controller that restarts owners",
    restartRights,
    { "restart-owner/rbac.yaml": ["lastcall-restart-owner"] },
  ],
  ["an agent", agentRights, { "agent/rbac.yaml": ["lastcall-agent"] }],
  ["an agent that cordons", fallbackRights.Cordon ?? [], cordon],
  [
    "an agent that drains",
    fallbackRights.Drain ?? [],
    { ...cordon, "agent-fallback/drain/rbac.yaml": ["lastcall-agent-fallback-drain"] },
  ],
])(
  "the permissions that doctor checks for %s are those that its manifest grants",
  (_, rights, files) => {
    const all = Object.entries(files).flatMap(([file, names]) =>
      names.flatMap((name) => granted(`deploy/${file}`, name)),
    );
    expect(rights.map(textOf).sort()).toEqual(all.sort());
  },
);
