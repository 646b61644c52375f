import { typedClouds } from "../../cloud/clouds.ts";
import { knownClouds } from "../../cloud/facts/known-clouds.ts";
import { capitalized } from "../../core/reason/counted.ts";
import { andList } from "../../core/reason/word-list.ts";
import type { Option } from "./option.ts";

type TypedCloud = (typeof typedClouds)[number];
type CloudOption = TypedCloud["options"][number];
type CloudSetupOption = TypedCloud["setup"]["options"][number];

const names = knownClouds.map(({ name }) => name);

/** The values of `--cloud`. */
export const cloudChoices = ["auto", ...names];

/** Options of the controller and the agent for each cloud. */
export const cloudOptions: readonly CloudOption[] = typedClouds.flatMap<CloudOption>(
  ({ options }) => options,
);

const releasing = typedClouds
  .filter(({ setup }) => setup.asksRelease)
  .map(({ facts }) => facts.name);

/** What each cloud needs `--cluster` for; those that say the same are named together. */
function clusterHelp(): string {
  const uses = Map.groupBy(typedClouds, ({ setup }) => setup.cluster);
  const told = [...uses].map(([use, some]) => {
    const named = andList(some.map(({ facts }) => facts.name));
    return `with ${named}${use}`;
  });
  return capitalized(told.join("; "));
}

/** Options of `setup` of a cloud: the cloud, and the controller that gets the permissions. */
export const setupOptions = [
  {
    name: "undo",
    type: "switch",
    default: "false",
    commands: ["setup"],
    help: `With ${names.join(", ")}: remove what the same command has set up, and nothing else`,
  },
  {
    name: "cluster",
    type: "text",
    value: "NAME",
    commands: ["setup"],
    parts: names,
    help: clusterHelp(),
  },
  {
    name: "service-account",
    type: "text",
    value: "NAME",
    default: "lastcall",
    commands: ["setup"],
    parts: names,
    help: `With ${names.join(", ")}: the controller's ServiceAccount in the cluster`,
  },
  {
    name: "role",
    type: "text",
    value: "ID",
    default: "lastcall",
    commands: ["setup"],
    parts: names,
    help: `With ${names.join(", ")}: role to create`,
  },
  {
    name: "release",
    type: "choice",
    choices: ["Recreate", "Delete", "DeleteInstance", "NodeClaim", "None"],
    value: "MODE",
    default: "Recreate",
    commands: ["setup"],
    parts: releasing,
    help: `With ${andList(releasing)}: the policies' instance.release, which the role must permit`,
  },
  ...typedClouds.flatMap<CloudSetupOption>(({ setup }) => setup.options),
] as const satisfies readonly Option[];
