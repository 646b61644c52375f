import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { agentRights, controllerRights, type Right, rightName } from "../../src/doctor/facts.ts";

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

it.each([
  ["the controller", controllerRights, "deploy/base/rbac.yaml", "lastcall"],
  ["an agent", agentRights, "deploy/agent/rbac.yaml", "lastcall-agent"],
])(
  "the permissions that doctor checks for %s are those that its manifest grants",
  (_, rights, file, name) => {
    expect(rights.map(textOf).sort()).toEqual(granted(file, name));
  },
);
