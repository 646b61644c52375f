import { expect, it } from "vitest";
import { audit, spotReadiness } from "../../src/audit/audit.ts";
import { auditTable, githubAnnotations } from "../../src/audit/audit-output.ts";
import type { AuditReport } from "../../src/audit/report.ts";

/** Sentences of the audit that name a number, each with none, one, two and a thousand. */

const cutBy = (count: number) =>
  spotReadiness({
    ...{ workloads: count, counts: [], worst: undefined },
    ...{ platforms: [{ name: "aks", groups: [], source: "Default" }] },
    ...{ judged: { aks: count }, cut: { aks: count } },
  }).message;

function named(count: number): AuditReport {
  const pods = Array.from({ length: count }, (_, place) => {
    const metadata = { name: `p${place}` };
    return { json: { apiVersion: "v1", kind: "Pod", metadata, spec: { containers: [] } } };
  });
  return audit({ sources: pods, platforms: [], scope: "Named" });
}

const noted = (count: number) => named(count).notes.slice(1).join().split(",")[0];
const annotated = (count: number) => githubAnnotations(named(count)).split("::")[2]?.split(":")[0];
const closed = (count: number) =>
  auditTable(named(count), { colour: "Off" }).trim().split("\n").at(-1);
const shortened = (count: number) =>
  /… and .*/.exec(auditTable(named(count + 1), { colour: "Off", rows: 1 }))?.[0];

type Said = string | undefined;
type Row = readonly [string, (count: number) => Said, Said, Said, Said, Said];

const table: readonly Row[] = [
  [
    "cut",
    cutBy,
    "No workload can be judged.",
    "No findings for 1 workload on these nodes; 1 of 1 workload gets no time on aks.",
    "No findings for 2 workloads on these nodes; 2 of 2 workloads get no time on aks.",
    "No findings for 1000 workloads on these nodes; 1000 of 1000 workloads get no time on aks.",
  ],
  [
    "in scope",
    noted,
    "",
    "None of 1 workload names Spot nodes",
    "None of 2 workloads names Spot nodes",
    "None of 1000 workloads names Spot nodes",
  ],
  [
    "out of scope",
    annotated,
    undefined,
    "The workload was not judged, because it names no Spot nodes",
    "Both workloads were not judged, because they name no Spot nodes",
    "All 1000 workloads were not judged, because they name no Spot nodes",
  ],
  [
    "in the table",
    closed,
    "0 workloads: 0 errors, 0 warnings, 0 info",
    "1 workload (1 out of scope): 0 errors, 0 warnings, 0 info",
    "2 workloads (2 out of scope): 0 errors, 0 warnings, 0 info",
    "1000 workloads (1000 out of scope): 0 errors, 0 warnings, 0 info",
  ],
  [
    "not shown",
    shortened,
    undefined,
    "… and 1 more workload (-o json has all)",
    "… and 2 more workloads (-o json has all)",
    "… and 1000 more workloads (-o json has all)",
  ],
];

it.each(table)("%s", (_, say, ...said) => {
  expect([0, 1, 2, 1000].map(say)).toEqual(said);
});
