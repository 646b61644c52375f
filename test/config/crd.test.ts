import { readFileSync } from "node:fs";
import { Ajv } from "ajv";
import { describe, expect, it } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { crdOf, generateCrds, jsonSchemaOf } from "../../src/config/schema/crd.ts";
import type { FieldSchema, SchemaRule } from "../../src/config/schema/field-schema.ts";
import { policyDocument } from "../../src/config/schema/policy-document.ts";
import {
  policyDefinition,
  type ResourceDefinition,
  resourceDefinitions,
} from "../../src/config/schema/resource-definition.ts";
import { checkShape } from "../../src/config/schema/shape-check.ts";
import { seededRng } from "../../src/core/chance/chance.ts";
import { generateOptionDocs } from "../../tools/docs/option-doc.ts";
import { generateResourceDocs } from "../../tools/docs/resource-doc.ts";
import { readCorpus } from "../support/policy-corpus.ts";

const generated = [...generateCrds(), ...generateResourceDocs(), ...generateOptionDocs()];

describe("the generated file", () => {
  it.each(generated)("%s is up to date with the schema", (path, content) => {
    expect(readFileSync(new URL(`../../${path}`, import.meta.url), "utf8")).toBe(content);
  });
});

interface PlacedField {
  readonly path: string;
  readonly field: FieldSchema;
}

function fieldsUnder(path: string, field: FieldSchema): readonly PlacedField[] {
  const own = { path, field };
  if (field.type === "list") return [own, ...fieldsUnder(`${path}[]`, field.items)];
  if (field.type === "map") return [own, ...fieldsUnder(`${path}{}`, field.values)];
  if (field.type !== "object") return [own];
  const inner = Object.entries(field.properties);
  return [own, ...inner.flatMap(([name, part]) => fieldsUnder(`${path}.${name}`, part))];
}

function fieldsOf({ kind, spec, status }: ResourceDefinition): readonly PlacedField[] {
  return [...fieldsUnder(`${kind}.spec`, spec), ...fieldsUnder(`${kind}.status`, status)];
}

const allFields = resourceDefinitions.flatMap(fieldsOf);
const allRules = allFields.flatMap(({ path, field }) =>
  (field.rules ?? []).map((rule) => ({ path, field, rule })),
);

describe("the schema", () => {
  it("describes every field", () => {
    expect(allFields.filter(({ field }) => field.description.length < 3)).toEqual([]);
  });

  it("gives no default that it would refuse", () => {
    const wrong = allFields.filter(
      ({ field }) =>
        "default" in field &&
        field.default !== undefined &&
        checkShape(field, field.default).problems.length > 0,
    );
    expect(wrong).toEqual([]);
  });

  it("enforces each rule locally and in the API server, or says why only locally", () => {
    const isSilent = ({ cel, localOnly, holds }: SchemaRule) =>
      cel === undefined ? localOnly === undefined : holds === undefined && !cel.includes("oldSelf");
    const silent = allRules.filter(
      ({ path, rule }) => path.startsWith("DeparturePolicy") && isSilent(rule),
    );
    expect(silent).toEqual([]);
  });

  it("reports problems only at fields that exist", () => {
    const lost = allRules.filter(
      ({ field, rule }) =>
        rule.at !== undefined &&
        !(field.type === "object" && Object.hasOwn(field.properties, rule.at)),
    );
    expect(lost).toEqual([]);
  });

  it("bounds every list and string of a policy, so that CEL stays cheap", () => {
    const unbounded = fieldsUnder("spec", policyDefinition.spec).filter(
      ({ field }) =>
        (field.type === "list" && field.maxItems === undefined) ||
        (field.type === "string" && field.enum === undefined && field.maxLength === undefined),
    );
    expect(unbounded.map(({ path }) => path)).toEqual([]);
  });
});

describe("the CRD of Departure", () => {
  const departures = resourceDefinitions.find(({ kind }) => kind === "Departure");

  it("has the columns and the short name that scripts rely on", () => {
    const crd = crdOf(departures ?? policyDefinition) as {
      spec: {
        scope: string;
        names: { shortNames: string[] };
        versions: {
          additionalPrinterColumns: { name: string; priority?: number }[];
          subresources: unknown;
        }[];
      };
    };
    const [version] = crd.spec.versions;
    expect(crd.spec.scope).toBe("Cluster");
    expect(crd.spec.names.shortNames).toEqual(["dep"]);
    expect(version?.subresources).toEqual({ status: {} });
    const shown = (isWide: boolean) =>
      version?.additionalPrinterColumns
        .filter(({ priority = 0 }) => priority > 0 === isWide)
        .map(({ name }) => name.toUpperCase());
    // What the departure waits for: `kubectl get departures -o wide`.
    expect(shown(true)).toEqual(["ENDED", "POLICY", "REASON", "MESSAGE"]);
    expect(shown(false)).toEqual([
      "NODE",
      "CAUSE",
      "PHASE",
      "DEPARTS",
      "DEADLINE",
      "PODS",
      "ENDED AS",
      "AGE",
    ]);
  });

  it("is valid YAML whose schema repeats no key", () => {
    for (const [path, text] of generated.filter(([name]) => name.endsWith(".yaml"))) {
      expect(
        parseAllDocuments(text).flatMap(({ errors }) => errors),
        path,
      ).toEqual([]);
    }
  });
});

describe("the JSON schema of a policy", () => {
  const ajv = new Ajv({ strict: true, allowUnionTypes: true });
  ajv.addFormat("date-time", /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/);
  const document = policyDocument;
  const validate = ajv.compile(jsonSchemaOf(document));

  it.each(readCorpus("good"))("accepts $file", ({ text }) => {
    const isPolicy = (value: unknown) => JSON.stringify(value).includes("DeparturePolicy");
    const written: unknown[] = parseAllDocuments(text, { merge: true }).map((one) => one.toJS());
    for (const value of written.filter((one) => isPolicy(one) && !isList(one))) {
      expect(validate(withoutNulls(value)), JSON.stringify(validate.errors)).toBe(true);
    }
  });

  it("agrees with the built-in check on ten thousand randomly changed policies", () => {
    const text = readCorpus("good").find(({ file }) => file === "contract.yaml")?.text ?? "";
    const example: unknown = parse(text);
    const rng = seededRng(20261121);
    const counts = { taken: 0, refused: 0 };
    const disagreements: unknown[] = [];
    for (let run = 0; run < 10_000; run++) {
      const value = structuredClone(example);
      changeOne(value, rng);
      const taken = checkShape(document, value).problems.length === 0;
      if (validate(value) !== taken) disagreements.push({ run, taken, value });
      counts[taken ? "taken" : "refused"]++;
    }
    expect(disagreements).toEqual([]);
    // Both kinds must occur often, or the agreement proves nothing.
    expect(Math.min(counts.taken, counts.refused)).toBeGreaterThan(500);
  });
});

function isList(value: unknown): boolean {
  return (value as { kind?: unknown }).kind === "List";
}

function withoutNulls(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (_, part: unknown) => (part === null ? undefined : part)),
  );
}

const oddValues: readonly unknown[] = [
  ...[0, 1, -1, 1.5, 2_000_000, true, false, "", "Late", "Even", "Allow", "Wait", "None", "10%"],
  ...["0%", "24:00", "06:00", "24h", "0", "-5m", "Mon", "UTC", "+09:00", "http://x", "x=y", "a b"],
  ...["In", "2026-12-01T00:00:00Z", "x".repeat(400), [], ["Mon"], ["Mon", "Mon"], {}, { a: "b" }],
];

/** Sets any one field to one of the odd values, or removes it. */
function changeOne(root: unknown, rng: () => number): void {
  const places: [object, string][] = [];
  const visit = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    for (const [name, part] of Object.entries(value)) {
      places.push([value, name]);
      visit(part);
    }
    if (!Array.isArray(value)) places.push([value, "surprise"]);
  };
  visit(root);
  const [holder, name] = places[Math.floor(rng() * places.length)] ?? [{}, ""];
  const odd = structuredClone(oddValues[Math.floor(rng() * oddValues.length)]);
  if (rng() < 0.2 && !Array.isArray(holder)) Reflect.deleteProperty(holder, name);
  else Reflect.set(holder, name, odd);
}
