const departures = "{departures?departure|departures}";
const nodes = "{nodes?node|nodes}";
const names = "({names}[ and {more} more])";
/** Every one of the departures that the reader knows of. */
const all = "{departures?The departure is|Both departures are|All {departures} departures are}";
const some = `{some} of {departures} ${departures} {some?is|are}`;

/** Whether a policy's nodes leave in time, what keeps them, and what would help. */
export const englishFleet = {
  NonePlanned: "No departures are planned",
  AllOnSchedule: `${all} on schedule`,
  SomeOnSchedule: `${some} on schedule[, {held} {held?departure is|departures are} held back]`,
  AllLate: `${all} late`,
  SomeLate: `${some} late`,
  Halted: "{departures?The departure does not start|No departure starts} before its deadline",
  AllHeldBack: `${all} held back`,
  HeldBack: "{held} {held?departure is|departures are} held back",
  DryRunNone: "Dry run: no departures are planned",
  DryRunInTime: `Dry run: {departures} ${departures} would be on schedule, and no node leaves`,
  DryRunAllLate:
    "Dry run: {departures?the departure|both departures|all {departures} departures} would be late, and no node leaves",
  DryRunSomeLate: `Dry run: {some} of {departures} ${departures} would be late, and no node leaves`,
  Found: "the controller found: {detail}",
  NoneCanStart:
    "{departures?The only departure cannot|Neither departure can|None of {departures} departures can} start: {detail}",
  SomeCannotStart: `{some} of {departures} ${departures} cannot start ${names}: {detail}`,
  OnHold: `{nodes} ${nodes} on hold until after the deadline, which ends the {nodes?hold|holds}`,
  NoWindow: `{nodes} ${nodes} without an open window before the deadline`,
  NoAllowedTime: `{nodes} ${nodes} without an allowed time before the deadline`,
  Widen: "every Allow window would have to end {byMs} later",
  Helpless: "longer windows would not help {shut?it|{helpless} of them}",
  Missed:
    "{nodes} {nodes?node that missed its time leaves|nodes that missed their time leave} past the deadline",
  Overdue:
    "{nodes} {nodes?node already past the deadline|nodes already past the deadline, leaving one by one}",
  Expiring:
    "lifetime.max ends first for {overdue?it, unless it departs|{expiring} of them, unless they depart} by request",
  HeldByLimits: `{who} hold back {departures} ${departures}[, {past} of them past the deadline]: {cures}`,
  HeldPastDeadline: `{who} hold back {departures} ${departures} past the deadline: {cures}`,
  CloseTogether:
    "departures are at least {reachedMs} instead of {wantedMs} apart, because there is no time for more",
  FreezeHolds: `the freeze until {until} holds back {departures} ${departures}`,
  FreezeEndsLate: `the freeze until {until} ends after the deadlines of {departures} ${departures} ${names}, which {departures?leaves at its deadline|leave at their deadlines}`,
  FreezeWouldEndLate: `the freeze until {until} ends after the deadlines of {departures} ${departures} ${names}, which would leave at {departures?its deadline|their deadlines}`,
  PausedEmpty: "The policy is paused, and selects no node",
  Paused: `The policy is paused: {nodes} ${nodes} without a departure time`,
  SelectsNone: "It selects no node: compare its nodeSelector with the labels of the nodes",
  Outranked: `It applies to no node: policies of more weight or of an earlier name apply to the {nodes} ${nodes} that it selects`,
  OwnersUnread:
    "{nodes} {nodes?node is|nodes are} held back, because a policy that might own {nodes?it|them} cannot be read: {detail}. {rest}",
  Unhealthy: "No voluntary departure starts, because the fleet is unhealthy: {detail}[. {rest}]",
} as const;

/** What a person who looks once has to know. */
export const englishHeadline = {
  NoPolicies: "There is no DeparturePolicy: no node is planned",
  NodesUnread: "The nodes cannot be read",
  PoliciesUnread: "The policies cannot be read",
  DeparturesUnread: "The departures cannot be read",
  PolicyUnread: "It cannot be read[, and its {nodes?node stays|{nodes} nodes stay}]: {detail}",
  Frozen: "Frozen until {until}. {rest}",
  Next: "{node} leaves at {departAt}",
  NoneAhead: "No departure is ahead[ before the freeze ends at {until}]",
  NoneLeaving: "No node is leaving now",
  Leaving: `{nodes} {nodes?node is|nodes are} leaving now ${names}`,
  SomeNoticed: `{nodes} nodes are leaving now, {noticed} of them on a notice ${names}`,
  AllNoticed: `{nodes} {nodes?node is leaving now,|nodes are leaving now, both|nodes are leaving now, all} on a notice ${names}`,
  OnHold: `{nodes} {nodes?node is|nodes are} on hold[ until {untilAt}][{nodes?|, the longest} since {sinceAt}] ${names}`,
  Leads: "{holder} leads",
  NotRenewed:
    "No controller leads and nothing starts: {holder} has not renewed its Lease[ since {renewedAt}]",
  NoLease: "Nobody holds the Lease: no controller runs, or it runs without leader election",
  LeaseUnread: "Whether a controller leads may not be read",
  NoAgentFits: "The agent is installed, and fits on no node",
  AgentsReady: "{ready} of {wanted} {wanted?is|are} ready",
  AgentsMissing: "{ready} of {wanted} {wanted?is|are} ready: a notice may be missed",
  NoAgent: "There is no agent",
  AgentsUnread: "Whether agents are ready may not be read",
} as const;

/** What limits departures, within other sentences. */
export const englishLimit = {
  Budgets: "budgets",
  Waves: "waves",
  BudgetsAndWaves: "budgets and waves",
  PerHour: "{perHour} an hour",
  Nodes: `{nodes} ${nodes} at once`,
  NodesInZone: `{nodes} ${nodes} at once in a zone`,
  NodesInCluster: `{nodes} ${nodes} at once in the cluster`,
  Percent: "{percent} % of nodes at once",
  PercentInZone: "{percent} % of nodes at once in a zone",
  PercentInCluster: "{percent} % of nodes at once in the cluster",
  WaveSizes: "waves of {names}",
  CureNodes: `{nodes} ${nodes} would hold none back`,
  CurePercent: "{percent} % would hold none back",
  CurePerHour: "{perHour} an hour would hold none back",
  HourSpent: `{departures} ${departures} had started within an hour, and at most {perHour} may`,
  NodesOut: `{nodes} ${nodes} of {where} {nodes?was|were} out[, {missing} of them gone and not replaced yet], and at most {most} may be`,
  NodesGone: `{nodes} ${nodes} of {where} {nodes?was|were} out, gone and not replaced yet, and at most {most} may be`,
  ThePolicy: "the policy {policy}",
  TheZone: "the zone {zone=without a name}",
  TheCluster: "the cluster",
  NoWave: "no wave has succeeded",
  WavesPassed: "{waves?the wave has|both waves have|all {waves} waves have} succeeded",
  WaveHalted:
    "wave {wave} of {waves} is halted, because the departure {departure} ended as {outcome}; set waves.restartedAt in the policy to continue",
  WaveGoing:
    "wave {wave} of {waves}: {size?{succeeded} of 1 has|{succeeded} of {size} {succeeded?has|have}} succeeded, {underWay} {underWay?is|are} under way",
  PolicyNotReady: "{notReady} of {nodes} nodes of the policy {policy} are not Ready",
  ClusterNotReady: "{notReady} of {nodes} nodes of the cluster are not Ready",
  Unheard: "the API server has sent nothing about {kind} for more than {silentMs}",
  NotReplaced: "nothing has replaced {node} since {sinceAt}[, and {more} more]",
  HoldUnreadable:
    '{mark}, whose value {value} cannot be read ([{meant}? ]expected "true", "4h" or "2026-12-01T00:00:00Z")',
  Cloud: "cloud",
  NodeObject: "Node object",
} as const;
