import { clouds } from "../../cloud/clouds.ts";
import type { Cloud } from "../../contracts/cloud-descriptor.ts";
import { cloudOf } from "../../core/cluster/node.ts";
import { counted } from "../../core/reason/counted.ts";
import { andList } from "../../core/reason/word-list.ts";
import {
  type AdmissionTrial,
  type Check,
  type CheckResult,
  type DoctorFacts,
  type Fact,
  fail,
  judging,
  namesOf,
  namesWith,
  optionOf,
  pass,
  type RightFacts,
  skip,
  type WorkloadFacts,
  warn,
} from "../facts.ts";

function rightsVerdict(fact: Fact<readonly RightFacts[]>, who: string): CheckResult {
  return judging(fact, (rights) => {
    const missing = rights.filter(({ allowed }) => !allowed).map(({ name }) => name);
    if (missing.length > 0) return fail(`${who} may not ${namesOf(missing)}`);
    return pass(
      `${who} has ${rights.length === 1 ? "its permission" : `its ${rights.length} permissions`}`,
    );
  });
}

function agentRightsVerdict({ agentRights }: DoctorFacts, agent: WorkloadFacts): CheckResult {
  const verdict = rightsVerdict(agentRights, "the agent");
  const fallback = optionOf(agent, "fallback");
  if (verdict.status !== "Pass" || fallback.kind === "Known") return verdict;
  return skip(
    `${verdict.message}; whether it needs those of a fallback is not known: ${fallback.why}`,
  );
}

/** Undefined if RBAC grants neither, so there is nothing to refuse. */
function trialVerdict(trial: AdmissionTrial): CheckResult | undefined {
  const { who, act, needed, isUsed, abuse, forbidden, policyFile } = trial;
  if (forbidden.kind === "Accepted") {
    return fail(
      `${who} may ${abuse}: no admission policy refuses it`,
      `apply ${policyFile}, or upgrade the chart; its binding needs the name of the policy and validationActions: [Deny]`,
    );
  }
  if (isUsed && needed.kind === "Denied") {
    return fail(`${who} may not ${act}: ${needed.message}`, "mend what refuses it");
  }
  const unknown = (what: string, why: string) =>
    skip(`whether ${who} may ${what} is not known: ${why}`);
  if (forbidden.kind === "Unknown") return unknown(abuse, forbidden.why);
  if (isUsed && needed.kind === "Unknown") return unknown(act, needed.why);
  if (forbidden.kind === "NotGranted") return undefined;
  if (forbidden.policy === undefined) return unknown(abuse, forbidden.message);
  return pass(forbidden.policy);
}

function admissionVerdict(trials: readonly AdmissionTrial[]): CheckResult {
  const verdicts = trials.flatMap((one) => trialVerdict(one) ?? []);
  const worst = (["Fail", "Skip"] as const).flatMap((status) =>
    verdicts.filter((one) => one.status === status),
  )[0];
  if (worst !== undefined) return worst;
  if (verdicts.length === 0) return skip("nothing is granted that a policy would have to limit");
  const policies = [...new Set(verdicts.map(({ message }) => message))];
  const abuses = counted(verdicts.length, "abuse of the tokens was", "abuses of the tokens were");
  return pass(`in a dry run ${abuses} refused, by ${policies.join(", ")}`);
}

function allTrials({ agentTrials, controllerTrials, agent, controller }: DoctorFacts): CheckResult {
  return judging(agent, (someAgent) =>
    judging(controller, (someController) => {
      if (someAgent === undefined && someController === undefined)
        return skip("neither controller nor agent is installed");
      return judging(agentTrials, (ofAgents) => {
        if (someAgent !== undefined && ofAgents.length === 0)
          return skip("not tried in a dry run: the cluster needs two nodes for that");
        return judging(controllerTrials, (others) => admissionVerdict([...ofAgents, ...others]));
      });
    }),
  );
}

const withQuota = clouds.filter(({ doctor }) => doctor.systemPodsNeedQuota === true);

function productOf({ facts }: Cloud): string {
  return facts.kubernetes.toUpperCase();
}

/** The platform of these nodes that needs a quota for pods of the system's priority classes. */
function quotaPlatform({ nodes }: DoctorFacts): Cloud | undefined {
  if (nodes.kind === "Unknown") return undefined;
  const present = new Set(nodes.value.map((node) => cloudOf(node)?.name));
  return withQuota.find(({ facts }) => present.has(facts.name));
}

/** The system's priority classes that no quota covers, where pods of such a class need one. */
function uncoveredClasses(facts: DoctorFacts): readonly string[] {
  const { quotaClasses } = facts;
  if (quotaClasses.kind === "Unknown") return [];
  const needed = [facts.controller, facts.agent]
    .flatMap((fact) => (fact.kind === "Known" ? (fact.value?.priorityClass ?? []) : []))
    .filter((name) => name.startsWith("system-"));
  return needed.filter((name) => !quotaClasses.value.has(name));
}

function quotaVerdict(facts: DoctorFacts): CheckResult {
  const platform = quotaPlatform(facts);
  const missing = platform === undefined ? [] : uncoveredClasses(facts);
  if (platform !== undefined && missing.length > 0) {
    const wanted = `as ${productOf(platform)} requires`;
    return fail(`no ResourceQuota of the namespace covers ${namesOf(missing)}, ${wanted}`);
  }
  return judging(facts.podTrials, (trials) => {
    if (trials.length === 0) return skip("neither controller nor agent is installed");
    for (const { who, answer } of trials) {
      if (answer.kind === "Denied") return fail(`no pod of ${who} is admitted: ${answer.message}`);
    }
    for (const { who, answer } of trials) {
      if (answer.kind === "Accepted") continue;
      const why = answer.kind === "Unknown" ? answer.why : "its creator may not create pods";
      return skip(`whether pods of ${who} are admitted is not known: ${why}`);
    }
    return pass(`one more pod of ${trials.map(({ who }) => who).join(" and of ")} is admitted`);
  });
}

/** The default account is that of every pod of the namespace that names none. */
function accountVerdict({ controller, agent }: DoctorFacts): CheckResult {
  return judging(controller, (one) =>
    judging(agent, (other) => {
      const isHere = one !== undefined && one.namespace === other?.namespace;
      if (isHere && one.serviceAccount === other?.serviceAccount) {
        return fail(
          `controller and agents share the ServiceAccount ${one.serviceAccount}, so each agent has the controller's permissions`,
        );
      }
      const found = [one, other].filter((workload) => workload !== undefined);
      if (found.length === 0) return skip("neither controller nor agent is installed");
      const common = found.filter(({ serviceAccount }) => serviceAccount === "default");
      if (common.length > 0) {
        return fail(
          `${namesWith(
            common.map(({ name }) => name),
            "uses",
            "use",
          )} the ServiceAccount default, as other pods of the namespace do`,
        );
      }
      return pass("no other pod has the ServiceAccount of the controller or of the agents");
    }),
  );
}

/** Checks of what Lastcall and others may do. */
export const accessChecks: readonly Check[] = [
  {
    id: "rights",
    looksAt: "whether the controller's ServiceAccount may do all that it does",
    fix: "apply deploy/base/rbac.yaml and, for RestartOwner, deploy/restart-owner/rbac.yaml, or upgrade the chart",
    run: ({ rights, controller, namespace }) => {
      const isAbsent = controller.kind === "Known" && controller.value === undefined;
      if (isAbsent) return skip(`no controller is installed in ${namespace}`);
      return rightsVerdict(rights, "the controller");
    },
  },
  {
    id: "agent-rights",
    looksAt:
      "whether the agents' ServiceAccount may report notices, and act if they have a fallback",
    fix: "apply deploy/agent/rbac.yaml and, for a fallback, deploy/agent-fallback, or upgrade the chart",
    run: (facts) =>
      judging(facts.agent, (agent) =>
        agent === undefined ? skip("no agent is installed") : agentRightsVerdict(facts, agent),
      ),
  },
  {
    id: "accounts",
    looksAt: "whether controller and agents have ServiceAccounts of their own",
    fix: "set serviceAccount and agent.serviceAccount to two names that nothing else uses",
    run: accountVerdict,
  },
  {
    id: "admission",
    looksAt:
      "in a dry run with the ServiceAccounts of controller and agents: whether admission policies refuse what a stolen token could do, and nothing else",
    fix: "apply deploy/base/admission.yaml and deploy/agent/admission.yaml, or upgrade the chart",
    run: allTrials,
  },
  {
    id: "priority-quota",
    looksAt: `in a dry run: whether one more pod of the controller and of the agents is admitted; on ${andList(withQuota.map(productOf))} also whether a ResourceQuota covers their priority classes`,
    fix: "apply deploy/base/quota.yaml and deploy/agent/quota.yaml, upgrade the chart, or mend what the message names",
    run: quotaVerdict,
  },
  {
    id: "drainers",
    looksAt:
      "who else has a right by which a node can be made to leave, apart from administrators and the parts of Kubernetes",
    fix: "take the rights away that are not meant; docs/security.md lists what each leads to",
    run: ({ drainers }) =>
      judging(drainers, (found) => {
        if (found.length === 0) return pass("nobody else has a right by which a node leaves");
        const told = found.map(({ name, right }) => `${name} (${right})`);
        const has = found.length === 1 ? "has" : "have";
        const said = `${counted(found.length, "other")} ${has} a right by which a node leaves: ${namesOf(told, 5)}`;
        return found.some(({ isEverybody }) => isEverybody) ? fail(said) : warn(said);
      }),
  },
];
