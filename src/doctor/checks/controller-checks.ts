import { clouds } from "../../cloud/clouds.ts";
import { counted } from "../../core/reason/counted.ts";
import {
  between,
  formatDuration,
  type Instant,
  type Millis,
  millis,
  minutes,
} from "../../core/time/time.ts";
import {
  type Check,
  type CheckResult,
  type DoctorFacts,
  fail,
  judging,
  type LeaderFacts,
  type LeaseFacts,
  namesOf,
  optionOf,
  pass,
  setupCommand,
  skip,
  spotNodes,
  type WorkloadFacts,
  warn,
} from "../facts.ts";

const installFix = "install it: docs/running.md";

/** Checks the controller's Deployment; if there is none, the check `controller` reports that. */
function ofController(
  facts: DoctorFacts,
  judge: (found: WorkloadFacts) => CheckResult,
): CheckResult {
  return judging(facts.controller, (found) =>
    found === undefined ? skip(`no controller is installed in ${facts.namespace}`) : judge(found),
  );
}

/** An age in seconds below two minutes, otherwise as a duration. */
function ageText(ageMs: Millis): string {
  if (ageMs < minutes(2)) return `${Math.round(ageMs / 1000)} s`;
  return formatDuration(minutes(Math.floor(ageMs / minutes(1))));
}

function leaseVerdict(lease: LeaseFacts, at: Instant): CheckResult {
  const { holder, renewedAt, durationMs } = lease;
  if (holder === undefined)
    return fail("nobody leads: the Lease was released and not acquired again");
  if (renewedAt === undefined) return fail(`${holder} leads, and has never renewed its Lease`);
  const ageMs = between(renewedAt, at);
  const age = ageText(millis(Math.abs(ageMs)));
  if (ageMs > durationMs) return fail(`${holder} led, and its Lease was last renewed ${age} ago`);
  if (ageMs < -5000)
    return warn(`${holder} leads, by a clock that is ${age} ahead of the API server's`);
  return pass(`${holder} leads, its Lease was renewed ${age} ago`);
}

const stopOne = "stop one of them: each starts as many departures as a budget allows";

function secondLeader(other: LeaderFacts, own: string | undefined, here: string): CheckResult {
  const elsewhere = `${other.holder} leads in the namespace ${other.namespace}`;
  if (own !== undefined) return fail(`${own} leads in ${here}, and ${elsewhere}`, stopOne);
  return fail(`nobody leads in ${here}, but ${elsewhere}`, `use -n ${other.namespace}`);
}

const podsFix = "check its pods and their Events with kubectl describe pods -n NAMESPACE";
const nodesFix =
  "add a node that its pods fit on, or let them onto Spot nodes: in the chart's values controller.requireStableNodes: false, tolerations for their taints, and no required node affinity";

const volumeFix =
  "add a node in the zone of its volume, or remove that from extraVolumes in the chart's values";
const quotaFix = "make room for its pods in the quota, or allow them in the namespace";

function replicaVerdict(
  { ready, wanted, refused }: WorkloadFacts,
  { ownPods }: DoctorFacts,
): CheckResult {
  if (wanted === 0) return fail("the controller has no replica", "scale its Deployment to 2");
  if (ready >= wanted) {
    if (wanted === 1)
      return warn("the controller has one replica and no standby", "set 2 replicas");
    return pass(`${ready} replicas of the controller are ready`);
  }
  const pods = ownPods.kind === "Known" ? ownPods.value : [];
  const pending = pods.find(
    ({ component, unscheduled }) => component === "controller" && unscheduled !== undefined,
  );
  const { why, fix } = missingReplicas(pending?.unscheduled, refused);
  if (ready > 0)
    return warn(`${ready} of the controller's ${wanted} replicas are ready${why}`, fix);
  const none =
    wanted === 1
      ? "the controller's only replica is not"
      : `none of the controller's ${wanted} replicas is`;
  return fail(`${none} ready${why}`, fix);
}

/** In the words of who keeps the pods from running: the API server, or the scheduler. */
function missingReplicas(unscheduled: string | undefined, refused: string | undefined) {
  if (refused !== undefined) return { why: `: ${refused}`, fix: quotaFix };
  if (unscheduled === undefined) return { why: "", fix: podsFix };
  const fix = unscheduled.includes("volume") ? volumeFix : nodesFix;
  return { why: `; the scheduler: ${unscheduled}`, fix };
}

/** Without a Lease, every pod acts. */
function electionProblem({ options, wanted, overlaps }: WorkloadFacts): CheckResult | undefined {
  if (options["leader-elect"] !== "false" || !(wanted > 1 || overlaps)) return undefined;
  const how =
    wanted > 1
      ? `all ${wanted} replicas act`
      : "an update starts a second pod while the first still acts";
  return fail(
    `the controller runs with --leader-elect=false, and ${how}`,
    "remove the option, or set one replica and strategy: {type: Recreate}",
  );
}

function withoutLease(found: WorkloadFacts | undefined): CheckResult {
  const absent = fail("there is no Lease: no controller has ever led here");
  if (found === undefined) return absent;
  const elects = optionOf(found, "leader-elect");
  if (elects.kind === "Unknown") return skip(`there is no Lease; ${elects.why}`);
  return elects.value === "false" ? skip("the controller runs without a Lease") : absent;
}

/** The version `1.2.3` of an image's tag or a chart's label; undefined if there is none. */
function versionIn(text: string): string | undefined {
  return /(?:^|[:@v-])(\d+\.\d+\.\d+[-.\w]*)$/.exec(text)?.[1];
}

function versionVerdict(facts: DoctorFacts, found: WorkloadFacts): CheckResult {
  const agent = facts.agent.kind === "Known" ? facts.agent.value : undefined;
  const parts: readonly (readonly [string, string | undefined])[] = [
    ["the controller", versionIn(found.image)],
    ["the agent", agent && versionIn(agent.image)],
    ["the chart", found.chart && versionIn(found.chart)],
  ];
  const told = parts.filter(([, version]) => version !== undefined);
  const other = told.filter(([, version]) => version !== facts.version);
  if (told.length === 0) return skip("no image shows its version");
  if (other.length === 0) return pass(`all parts have version ${facts.version}`);
  const skew = other.map(([part, version]) => `${part} is ${version}`).join(", ");
  return warn(`${skew}, and this program is ${facts.version}`);
}

/** Checks of the controller's installation. */
export const controllerChecks: readonly Check[] = [
  {
    id: "controller",
    looksAt: "whether the controller runs, with a second replica on standby",
    fix: installFix,
    run: (facts) =>
      judging(facts.controller, (found) => {
        if (found === undefined) return fail(`no controller is installed in ${facts.namespace}`);
        return replicaVerdict(found, facts);
      }),
  },
  {
    id: "lease",
    looksAt: "who leads, and how fresh the Lease is",
    fix: "check the controller's log: kubectl logs -n NAMESPACE -l app.kubernetes.io/component=controller",
    run: ({ lease, otherLeaders, at, controller, namespace }) => {
      const own = controller.kind === "Known" ? controller.value : undefined;
      const problem = own && electionProblem(own);
      if (problem !== undefined) return problem;
      return judging(lease, (found) => {
        const [other] = otherLeaders.kind === "Known" ? otherLeaders.value : [];
        if (other !== undefined) return secondLeader(other, found?.holder, namespace);
        return found === undefined ? withoutLease(own) : leaseVerdict(found, at);
      });
    },
  },
  {
    id: "dry-run",
    looksAt: "whether the controller acts, or only reports what it would do",
    fix: "remove dry-run from its options once you have seen enough",
    run: (facts) =>
      ofController(facts, (found) =>
        judging(optionOf(found, "dry-run"), (dryRun = "false") =>
          dryRun === "false"
            ? pass("the controller carries out its decisions")
            : warn("the controller runs with --dry-run and writes nothing"),
        ),
      ),
  },
  {
    id: "chart",
    looksAt: "whether controller, agent, chart and this program have the same version",
    fix: "upgrade the parts together: docs/running.md",
    run: (facts) => ofController(facts, (found) => versionVerdict(facts, found)),
  },
  {
    id: "images",
    looksAt: "whether the pods of controller and agent have started",
    fix: "check their Events with kubectl describe pods -n NAMESPACE; images: docs/images.md",
    run: ({ ownPods }) =>
      judging(ownPods, (pods) => {
        const stuck = pods.flatMap(({ name, component, waiting, unscheduled }) => {
          const why = waiting ?? unscheduled;
          return why === undefined || component === "placeholder" ? [] : [{ name, why }];
        });
        if (pods.length === 0) return skip("no pod of Lastcall was found");
        if (stuck.length === 0) return pass("no pod of Lastcall is waiting to start");
        const told = stuck.map(({ name, why }) => `${name} (${why})`);
        return fail(`${counted(stuck.length, "pod")} cannot start: ${namesOf(told)}`);
      }),
  },
  {
    id: "placement",
    looksAt: "whether the controller keeps off the nodes that it drains",
    fix: "keep its node affinity, and provide a node pool that is not Spot",
    run: (facts) =>
      judging(facts.ownPods, (pods) =>
        judging(spotNodes(facts), (spot) => {
          const names = new Set(spot.map(({ name }) => name));
          const here = pods.filter(({ component }) => component === "controller");
          if (here.length === 0) return skip("the controller has no pods");
          const onSpot = here.filter(({ node }) => node !== undefined && names.has(node));
          if (onSpot.length === 0) return pass("no pod of the controller is on a Spot node");
          const told = onSpot.map(({ name, node }) => `${name} on ${node}`);
          return warn(`the controller is on a Spot node: ${namesOf(told)}`);
        }),
      ),
  },
  {
    id: "placeholder-image",
    looksAt:
      "if capacity is reserved before a drain: the priority class of the placeholders, and their image",
    fix: "apply deploy/base/placeholder-priority.yaml; set an image that nodes can pull with --placeholder-image",
    run: ({ policies, priorityClasses, ownPods }) =>
      judging(policies, (found) => {
        const makers = found.policies.filter(
          ({ replacement }) => replacement.when === "BeforeDrain",
        );
        if (makers.length === 0) return skip("no policy reserves capacity before a drain");
        const pods = ownPods.kind === "Known" ? ownPods.value : [];
        const stuck = pods.filter(
          ({ component, waiting }) => component === "placeholder" && /Image/.test(waiting ?? ""),
        );
        if (stuck.length > 0)
          return fail(
            `${counted(stuck.length, "placeholder cannot pull its", "placeholders cannot pull their")} image`,
          );
        return judging(priorityClasses, (classes) =>
          classes.has("lastcall-placeholder")
            ? pass("the priority class of the placeholders exists")
            : fail(
                "the PriorityClass lastcall-placeholder is missing: no capacity can be reserved",
              ),
        );
      }),
  },
  {
    id: "service-account",
    looksAt: "whether pods of the controller can get a cloud identity at all",
    fix: `${setupCommand}; docs/cloud`,
    run: (facts) =>
      ofController(facts, ({ hostNetwork, podLabels }) => {
        if (hostNetwork) {
          return fail(
            "the controller uses its node's network, and therefore gets the node's identity",
          );
        }
        return judging(facts.accountAnnotations, (annotations) => {
          const problem = clouds
            .map(({ doctor }) => doctor.identityProblem?.({ annotations, podLabels }))
            .find((one) => one !== undefined);
          if (problem !== undefined) return fail(problem);
          return pass("nothing prevents the controller from getting its own identity");
        });
      }),
  },
];
