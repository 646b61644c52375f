import { loadDocument } from "../../audit/input/read-manifests.ts";
import { isSpot } from "../../audit/objects/audit-node.ts";
import { didYouMean } from "../../config/problem.ts";
import type { KubeObject } from "../../contracts/kube-api.ts";
import { type NodeFacts, zoneLabel } from "../../core/cluster/node.ts";
import { type Fields, fieldsOf, isFields, listOf, textOf } from "../../core/json/json-field.ts";
import { selectPolicy } from "../../core/policy/policy.ts";
import { counted } from "../../core/reason/counted.ts";
import {
  between,
  hours,
  type Instant,
  type Millis,
  millis,
  minutes,
  parseDuration,
} from "../../core/time/time.ts";
import { isLastcallError, LastcallError } from "../../errors.ts";
import { translateNode } from "../../kube/object/translate-node.ts";
import type { FleetCourse } from "../../sim/demo/demo-world.ts";
import {
  type CommandInput,
  type CommandIo,
  type CommandRun,
  printData,
} from "../command-line/command.ts";
import { formatTable } from "../command-line/terminal.ts";
import { newestReport } from "../input/fleet-snapshot.ts";
import { nodeFiles, readObjects, readPolicyFiles } from "../input/read-objects.ts";
import { reportSimulation } from "./demo.ts";

type SimulateInput = CommandInput<"simulate">;

/** A fleet, and what happens to it, as a scenario's file describes it. */
interface Scenario {
  readonly nodes: number;
  readonly hours: number;
  readonly zones: readonly string[];
  /** At the start: all have their 24 hours together, or spread over the day. */
  readonly ages: "Together" | "Spread";
  readonly preemptions: FleetCourse["preemptions"];
  readonly storm?: FleetCourse["storm"];
}

const usual: Scenario = {
  ...{ nodes: 18, hours: 48, zones: ["europe-west1-b", "europe-west1-c", "europe-west1-d"] },
  ...{ ages: "Together", preemptions: "Measured" },
};

const scenarios: Readonly<Record<string, Scenario & { readonly about: string }>> = {
  pool: { ...usual, about: "a node pool created at one time: all nodes reach 24 hours together" },
  spread: {
    ...{ ...usual, nodes: 36, hours: 72, ages: "Spread" },
    about: "a fleet that has grown over a day",
  },
  limit: {
    ...{ ...usual, preemptions: "None" },
    about: "the node pool, but the cloud takes nodes at 24 hours only",
  },
  storm: {
    ...{ ...usual, ages: "Spread", storm: { afterMs: hours(6), share: 0.5 } },
    about: "after six hours the cloud takes half of the nodes within a minute",
  },
};

/**
 * Runs policies on a model fleet, days in seconds, beside the same fleet without Lastcall. The exit
 * code is 3 if an invariant was broken.
 */
export const runSimulate: CommandRun<"simulate"> = async (input) => {
  const { options, io } = input;
  if (options.list) return listScenarios(input);
  const { machines, hours: length, nodes = [], ...course } = await courseOf(input);
  const { runs, seed, output, quiet } = options;
  return reportSimulation({
    ...{ runs, seed, output, quiet, io },
    nodes: machines.length,
    hours: length,
    course: { ...course, machines },
    sides: await sidesOf(input, nodes),
  });
};

async function listScenarios({ options, io }: SimulateInput): Promise<number> {
  const all = Object.entries(scenarios);
  if (options.output !== "table") {
    const items = all.map(([name, { about, nodes, hours: length }]) => ({
      ...{ name, about, nodes, hours: length },
    }));
    const list = { apiVersion: "lastcall.dev/v1alpha1", kind: "ScenarioList", items };
    await printData(list, options.output, io);
    return 0;
  }
  const rows = all.map(([name, one]) => [name, `${one.nodes}`, `${one.hours}`, one.about]);
  io.out(formatTable(["SCENARIO", "NODES", "HOURS", "WHAT HAPPENS"], rows));
  return 0;
}

type Course = FleetCourse & {
  readonly hours: number;
  /** The recorded nodes. */
  readonly nodes?: readonly NodeFacts[];
};

async function courseOf({ options, words, io }: SimulateInput): Promise<Course> {
  const [file] = words;
  const { scenario: name } = options;
  if (file === undefined) return modelCourse(scenarios[name ?? "pool"] ?? usual);
  if (name !== undefined) {
    throw new LastcallError(
      "USAGE",
      `Cannot simulate ${file} and the scenario ${name}: expected one of the two`,
    );
  }
  const files = nodeFiles(io.files.stdinBytes());
  const { json, place } = await loadDocument(file, files).catch((error: unknown) => {
    const isMissing = isLastcallError(error) && error.code === "INPUT_UNREADABLE";
    const near = isMissing ? didYouMean(file, Object.keys(scenarios)) : undefined;
    if (near === undefined) throw error;
    const problem = `Cannot simulate ${file}: there is no such file, use --scenario ${near}`;
    throw new LastcallError("INPUT_UNREADABLE", problem, { cause: error });
  });
  if (isFields(json) && textOf(json.kind) !== undefined) {
    return recordedCourse(file, json, io.clock.now());
  }
  return modelCourse(
    readScenario(json, (field) => (field === "" ? place([]) : `${place([field])}: ${field}`)),
  );
}

/** The same machines for each policy and run; their fate depends on the seed. */
function modelCourse({ nodes, ages, zones, ...course }: Scenario): Course {
  const ageOf = (place: number): Millis =>
    ages === "Spread" ? millis((place * hours(24)) / nodes) : togetherMs;
  const machines = Array.from({ length: nodes }, (_, place) => ({
    zone: zones[place % zones.length] ?? "",
    ageMs: millis(Math.round(ageOf(place))),
  }));
  return { ...course, machines };
}

/** Old enough that the first departure is due within hours. */
const togetherMs = hours(18);

/** The Spot nodes that `kubectl get nodes` wrote, as old as they were then. */
function recordedCourse(file: string, json: Fields, now: Instant): Course {
  const items = (json.items === undefined ? [json] : listOf(json.items)).map(fieldsOf);
  const kindOf = (item: Fields) => item.kind ?? String(json.kind).replace(/List$/, "");
  const objects = items.map((item) => ({ ...item, kind: kindOf(item) }) as KubeObject);
  const nodes = objects.filter(({ kind }) => kind === "Node").map(translateNode);
  const spot = nodes.filter(({ labels }) => isSpot(labels));
  if (spot.length === 0) {
    if (nodes.length === 0 && objects.some(({ kind }) => kind === "DeparturePolicy")) {
      throw new LastcallError(
        "INPUT_INVALID",
        `Cannot simulate ${file}: found a DeparturePolicy and no node, use --policy ${file}`,
      );
    }
    throw new LastcallError(
      "INPUT_INVALID",
      `Cannot simulate ${file}: found ${counted(nodes.length, "node")} and no Spot node, expected the output of kubectl get nodes -o json with the labels that the clouds give them`,
    );
  }
  const at = newestReport(objects) ?? now;
  // A model machine lives for 24 hours at most.
  const oldestMs = hours(24) - minutes(1);
  const machines = spot.map(({ labels, createdAt = at }) => {
    const { [hostnameLabel]: _, ...kept } = labels;
    return {
      zone: zoneName(labels[zoneLabel]),
      ageMs: millis(Math.min(oldestMs, Math.max(0, between(createdAt, at)))),
      labels: kept,
    };
  });
  return { machines, startAt: at, preemptions: usual.preemptions, hours: usual.hours, nodes: spot };
}

/**
 * A name for the model's machines and groups. A label may have characters that an object's name may
 * not have; the nodes keep the label itself.
 */
function zoneName(label = "europe-west1-b"): string {
  return (
    label
      .toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, "-")
      .slice(0, 32) || "unnamed"
  );
}

/** Of each node, so that it would make a group of each. */
const hostnameLabel = "kubernetes.io/hostname";

const mostNodes = 5000;

/** Throws INPUT_INVALID with the line of the field. `at` is the place of a field. */
function readScenario(json: unknown, at: (field: string) => string): Scenario {
  if (!isFields(json)) {
    const found = json === null ? "nothing" : JSON.stringify(json).slice(0, 40);
    throw new LastcallError("INPUT_INVALID", `${at("")}: found ${found}, expected a scenario`);
  }
  const fields = fieldsOf(json);
  const known = ["nodes", "hours", "zones", "ages", "preemptions", "storm"];
  const refuse = (field: string, wanted: string): never => {
    const found = fields[field] === undefined ? "nothing" : JSON.stringify(fields[field]);
    throw new LastcallError("INPUT_INVALID", `${at(field)}: found ${found}, expected ${wanted}`);
  };
  const unknown = Object.keys(fields).find((field) => !known.includes(field));
  if (unknown !== undefined) refuse(unknown, `a field of a scenario: ${known.join(", ")}`);
  const { nodes = usual.nodes, hours: length = usual.hours, zones = usual.zones } = fields;
  const { ages = usual.ages, preemptions = usual.preemptions, storm } = fields;
  if (!isWhole(nodes) || nodes > mostNodes)
    refuse("nodes", `a whole number from 1 to ${mostNodes}`);
  if (typeof length !== "number" || !(length > 0)) refuse("hours", "a number above 0");
  if (!isZones(zones)) refuse("zones", "a list of zones such as europe-west1-b");
  if (ages !== "Together" && ages !== "Spread") refuse("ages", "Together or Spread");
  if (preemptions !== "Measured" && preemptions !== "None")
    refuse("preemptions", "Measured or None");
  return {
    ...{ nodes, hours: length, zones, ages, preemptions },
    ...(storm === undefined ? {} : { storm: stormOf(storm, length) ?? refuse("storm", aStorm) }),
  } as Scenario;
}

const aStorm = "after, a duration shorter than hours, and share, from 1% to 100%, such as 50%";

function stormOf(value: unknown, length: unknown): FleetCourse["storm"] | undefined {
  const { after, share, ...others }: Fields = fieldsOf(value);
  const afterMs = parseDuration(textOf(after) ?? "");
  const [, percent] = /^(\d{1,3})%$/.exec(textOf(share) ?? "") ?? [];
  if (afterMs === undefined || percent === undefined || Object.keys(others).length > 0) {
    return undefined;
  }
  const taken = Number(percent) / 100;
  const isPossible = taken > 0 && taken <= 1 && afterMs < hours(Number(length));
  return isPossible ? { afterMs, share: taken } : undefined;
}

function isWhole(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) > 0;
}

/** Names of zones, of which the model makes names of nodes. */
function isZones(value: unknown): value is readonly string[] {
  const isZone = (one: unknown) => /^[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?$/.test(textOf(one) ?? "");
  return Array.isArray(value) && value.length > 0 && value.every(isZone);
}

/** All policies on one fleet, or with `--compare` each on its own. */
async function sidesOf({ options, io }: SimulateInput, nodes: readonly NodeFacts[]) {
  const { compare } = options;
  const files = [...new Set(options.policy)];
  if (files.includes("-")) {
    throw new LastcallError("USAGE", "Cannot read --policy from standard input, expected a file");
  }
  if (files.length === 0) {
    if (!compare) return [{ name: "lastcall" }];
    throw new LastcallError("USAGE", "Cannot compare policies: none was given, add --policy FILE");
  }
  const { warnings, policies } = await readPolicyFiles(files, io);
  const unselected = policies
    .filter((policy) => nodes.length > 0 && !nodes.some((node) => selectPolicy(node, [policy])))
    .map(({ name }) => `Policy ${name} selects none of the ${nodes.length} Spot nodes`);
  const told = options.quiet ? [] : [...warnings, ...unselected];
  for (const warning of told) io.err(`lastcall: ${warning}\n`);
  const each = await Promise.all(files.map((file) => policiesIn(file, io)));
  if (!compare) return [{ name: "lastcall", policies: each.flat() }];
  return files.map((name, place) => ({ name, policies: each[place] ?? [] }));
}

/** The objects as they are in the file, since the model's API server validates them, too. */
async function policiesIn(file: string, io: CommandIo): Promise<readonly object[]> {
  const objects = await readObjects([file], nodeFiles(io.files.stdinBytes()));
  return objects.flatMap(({ object }) => (object.kind === "DeparturePolicy" ? [object] : []));
}
