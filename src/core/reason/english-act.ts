const leaves = "[, by {byTime}][ (its machine may end at {endTime})]";
const instead = " instead of the time requested earlier";

/** What an act of a person will do, or why it cannot be performed. */
export const englishAct = {
  PlannedAgain: "{node} is planned again like any other node",
  OnHold: "{node} is on hold until {untilTime}",
  HeldByMark: "{node} has no planned departure while it has the annotation {mark}",
  NoticeDrains: "A notice from the cloud still drains a node on hold",
  DryRun: "Policy {policy} has dryRun set: {node} does not leave",
  LeavesNow: `{node} leaves now${leaves}`,
  LeavesNowInstead: `{node} leaves now${leaves}${instead}`,
  LeavesAt: `{node} leaves at {atTime}${leaves}`,
  LeavesAtInstead: `{node} leaves at {atTime}${leaves}${instead}`,
  AfterDeadline:
    "That is after its deadline {deadlineTime}: {node} leaves as planned before that, unless something holds it",
  DeadlineDropped:
    "{node} was requested to leave by {byTime}: that deadline is dropped, since it is over when the departure starts",
  CloudTakesIt: "{node} may not have until {untilTime}: the cloud takes its machine at {endTime}",
  LifetimeEnds:
    "{node} may not have until {untilTime}: its deadline is {deadlineTime}, and its lifetime.max by policy {policy} ends at {endTime}",
  LeavesThoughMarked: "{node} leaves although its annotation {mark} holds it",
  LeavesThoughHeld: "{node} leaves although it is held until {untilTime}",
  LeavesThoughFrozen: "{node} leaves although policy {policy} is frozen until {untilTime}",
  LeavesThoughPaused: "{node} leaves although policy {policy} is paused",
  WaitsForHold: "It waits while spec.hold of departure {departure} is set",
  WaitsForNothing: "It ignores windows, freezes and holds",
  WaitsForBudgets:
    "It waits for the budgets of policy {policy}, but ignores windows, freezes and holds",
  MayStartAgain: "Planned departures of policy {policy} may start again",
  Freezes:
    "No planned departure of policy {policy} starts before {untilTime}, unless its deadline forces it",
  FreezesShorter:
    "That ends the current freeze of policy {policy} sooner: it is frozen until {untilTime}",
  NoticedAnyway: "{node} leaves on a notice even so: departure {departure}",
  RequestedAnyway: "{node} leaves as requested[ at {atTime}] even so: departure {departure}",
  HoldCancels:
    "{node} is leaving ({phase}): the hold cancels departure {departure}, and what has been done is undone",
  ReplacesHold: 'It replaces the hold "{value}" of {node}[ by {by}]',
  EndsHold: 'It ends the hold "{value}" of {node}[ by {by}]',
  DeadlineAnyway: "{node} leaves at its deadline {deadlineTime} even so",
  DeadlinesAnyway:
    "{nodes} nodes leave at their deadlines even so, the first at {deadlineTime}: {node}",
  LifetimeAnyway:
    "The lifetime.max of {node} by policy {policy} ends at {endTime} even so: a machine with such a limit is terminated then, without a drain before",
  DrainUndone: "{node} stays: its drain is rolled back, and it is uncordoned",
  RequestDropped: "{node} does not leave as requested",
  PlannedAnew: "The plan assigns it another time",
  Done: "Done",
  HasEnded: "The departure of {node} has ended",
  Interrupted: "{node} leaves because the cloud interrupts it, which cannot be withdrawn here",
  Releasing: "The machine of {node} is already being released",
  AlreadyLeaving: "{node} is already leaving: departure {departure}, phase {phase}",
  NoMark: "{node} has no {mark} to remove",
  PastHold: "Cannot hold {node} until {untilTime}: that time has passed",
  PastFreeze: "Cannot freeze until {untilTime}: that has passed",
  PastLeave: "{node} cannot leave at {atTime}: that time has passed",
  EndsBeforeStart: "{node} cannot leave by {byTime}: its departure starts at {atTime}",
  NodeGone: "The node {node} shown here no longer exists",
  NoNode: "There is no node {node}",
  NoPolicy: "Policy {policy} does not exist or cannot be read",
  DepartureGone: "Departure {departure} no longer exists",
  Changed: "It has changed since it was shown: review it again",
  ChangedByOther: "Somebody else changed it first: {detail}",
} as const;

/** What somebody else has changed. */
export const englishChange = {
  Hold: "[its hold is {value}|it no longer has a hold]",
  Freeze: "[frozen until {until}|it is no longer frozen]",
  Gone: "it no longer exists",
  DepartureGone: "the departure no longer exists",
  OtherNode: "another node has its name now",
  OtherDeparture: "another departure has its name now",
  BeingWritten: "it is being written",
} as const;
