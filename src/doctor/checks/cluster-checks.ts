import { parseProviderId } from "../../core/cluster/node.ts";
import { type Check, counted, fail, judging, namesOf, pass, skip, warn } from "../check.ts";
import type { DoctorFacts, Fact, RightFacts } from "../facts.ts";

const crdFix = "lastcall setup crds --apply";
const definitionNames = ["departurepolicies.lastcall.dev", "departures.lastcall.dev"];

/**
 * ValidatingAdmissionPolicy, by which the rights of controller and agents are narrowed, is served
 * from here on.
 */
const oldestMinor = 30;
const clockWarnMs = 2000;
const clockFailMs = 15_000;

function rightsVerdict(fact: Fact<readonly RightFacts[]>, who: string) {
  return judging(fact, (rights) => {
    const missing = rights.filter(({ allowed }) => !allowed).map(({ name }) => name);
    if (missing.length === 0) return pass(`${who} has its ${counted(rights.length, "right")}`);
    return fail(`${who} may not ${namesOf(missing)}`);
  });
}

/** What was not answered because the caller may not ask, each with what was asked. */
function refusedFacts(facts: DoctorFacts): readonly string[] {
  return Object.values(facts).flatMap((fact: unknown) => {
    const { kind, code, why } = (fact ?? {}) as { kind?: string; code?: string; why?: string };
    return kind === "Unknown" && code === "RIGHT_MISSING" && why !== undefined ? [why] : [];
  });
}

/** The API server, the resources, the rights. */
export const clusterChecks: readonly Check[] = [
  {
    id: "api",
    looksAt: "whether the API server answers, and in which version",
    fix: "check the address and the credentials with kubectl version",
    run: ({ api }) => {
      if (api.kind === "Unknown") return fail(api.why);
      const { major, minor, name } = api.value;
      if (major === 1 && minor < oldestMinor) {
        const lack = "has no ValidatingAdmissionPolicy, which narrows what our tokens may do";
        return warn(`Kubernetes ${name} ${lack}`, `upgrade to 1.${oldestMinor} or later`);
      }
      return pass(`Kubernetes ${name} answers`);
    },
  },
  {
    id: "crds",
    looksAt: "whether both custom resource definitions are there and served",
    fix: crdFix,
    run: ({ definitions }) =>
      judging(definitions, (found) => {
        const missing = definitionNames.filter((name) => !found.some((one) => one.name === name));
        if (missing.length > 0) return fail(`${namesOf(missing)} is not installed`);
        const dead = found.filter(({ established }) => !established).map(({ name }) => name);
        if (dead.length > 0) return fail(`${namesOf(dead)} is installed and not served`);
        return pass("DeparturePolicy and Departure are served");
      }),
  },
  {
    id: "crd-version",
    looksAt: "whether their schemas are those of this version",
    fix: `${crdFix}; an upgrade of the chart does not touch them`,
    run: ({ definitions, version }) =>
      judging(definitions, (found) => {
        if (found.length === 0) return skip("no custom resource definition is installed");
        const old = found.filter(({ served }) => !served.includes("v1alpha1"));
        if (old.length > 0) {
          return fail(`${namesOf(old.map(({ name }) => name))} does not serve v1alpha1`);
        }
        const other = found.filter(({ sameSchema }) => !sameSchema).map(({ name }) => name);
        if (other.length === 0) return pass(`the schemas are those of ${version}`);
        return warn(`the schema of ${namesOf(other)} is not that of ${version}`);
      }),
  },
  {
    id: "rights",
    looksAt: "whether the controller's ServiceAccount may do all that it does",
    fix: "apply deploy/base/rbac.yaml, or upgrade the chart",
    run: ({ rights }) => rightsVerdict(rights, "the controller"),
  },
  {
    id: "agent-rights",
    looksAt: "whether the agents' ServiceAccount may report notices",
    fix: "apply deploy/agent/rbac.yaml, or upgrade the chart",
    run: ({ agentRights, agent }) => {
      const isAbsent = agent.kind === "Known" && agent.value === undefined;
      if (isAbsent) return skip("no agent is installed");
      return rightsVerdict(agentRights, "the agent");
    },
  },
  {
    id: "reader",
    looksAt: "whether the caller may read all that the checks are about",
    fix: "run it with a role that may list these; the checks concerned are skipped",
    run: (facts) => {
      if (facts.api.kind === "Unknown") return skip("the API server does not answer");
      const refused = refusedFacts(facts);
      if (refused.length === 0) return pass("everything that was asked for could be read");
      return warn(`${counted(refused.length, "question")} refused, the first: ${refused[0]}`);
    },
  },
  {
    id: "clock",
    looksAt: "whether this clock and the API server's agree",
    fix: "synchronize the clocks; deadlines are counted on them",
    run: ({ clockAheadMs }) =>
      judging(clockAheadMs, (ahead) => {
        const off = Math.abs(ahead);
        const said = `the API server's clock is ${Math.round(off / 1000)} s ${ahead < 0 ? "behind" : "ahead of"} this one`;
        if (off >= clockFailMs) return fail(said);
        return off >= clockWarnMs ? warn(said) : pass("the API server's clock and this one agree");
      }),
  },
  {
    id: "admission",
    looksAt: "whether the admission policies stand that narrow what the tokens may do",
    fix: "apply deploy/base/admission.yaml and deploy/agent/admission.yaml, or upgrade the chart",
    run: ({ admissionPolicies, controller, agent }) =>
      judging(admissionPolicies, (inForce) => {
        // Either policy is named after the workload that it restricts, whatever that is called.
        const expected = [
          ...namesIn(controller).map((name) => `${name}-placeholder`),
          ...namesIn(agent),
        ];
        if (expected.length === 0) return skip("neither controller nor agent is installed");
        const missing = expected.filter((name) => !inForce.has(name));
        if (missing.length === 0) return pass(`in force: ${expected.join(", ")}`);
        return warn(`the admission policy ${namesOf(missing)} is missing or bound to nothing`);
      }),
  },
  {
    id: "priority-quota",
    looksAt: "on GKE: whether a ResourceQuota admits pods of the system's priority classes",
    fix: "apply deploy/base/quota.yaml and deploy/agent/quota.yaml, or upgrade the chart",
    run: ({ nodes, quotaClasses, controller, agent }) =>
      judging(nodes, (all) => {
        const onGke = all.some(
          ({ providerID }) => parseProviderId(providerID ?? "")?.cloud === "gcp",
        );
        if (!onGke) return skip("no node is of Compute Engine");
        return judging(quotaClasses, (covered) => {
          const needed = [controller, agent]
            .flatMap((fact) => (fact.kind === "Known" ? (fact.value?.priorityClass ?? []) : []))
            .filter((name) => name.startsWith("system-"));
          const missing = needed.filter((name) => !covered.has(name));
          if (missing.length === 0) return pass("the priority classes of our pods are admitted");
          return fail(`no ResourceQuota of the namespace covers ${namesOf(missing)}`);
        });
      }),
  },
];

function namesIn(fact: Fact<{ readonly name: string } | undefined>): readonly string[] {
  return fact.kind === "Known" && fact.value !== undefined ? [fact.value.name] : [];
}
