import { providerIdForms } from "../../cloud/facts/cloud-marks.ts";
import { orList } from "./word-list.ts";

const launch = "(launched {bornAt} according to the {bornFrom})";
const change = "[; moved from {movedAt}][; it will be held back by about {waitMs}]";
const inWindow = "[ in the window {window}]";

/** When a node leaves by the plan, and why then. */
export const englishPlanned = {
  Spaced: `{node} leaves at {departAt}${inWindow}, by the spacing of policy {policy}; earliest {earliestAt}, deadline {deadlineAt} ${launch}${change}`,
  DeadlineBeatsWindow: `{node} leaves at {departAt} although no window is open then: there is no allowed time between its earliest {earliestAt} and its deadline {deadlineAt} ${launch}${change}`,
  DeadlineBeatsHold: `{node} leaves at {departAt} although it is on hold until {until}: its deadline {deadlineAt} comes first ${launch}${change}`,
  DeadlineBeatsRest: `{node} leaves at {departAt} although it rests until {until} after a departure that was undone: its deadline {deadlineAt} comes first ${launch}${change}`,
  Missed: `{node} missed its departure time and leaves at {departAt}${inWindow}, as far from other departures as its lifetime allows; its deadline {deadlineAt} ${launch}${change}`,
  Overdue: `{node} is past its deadline {deadlineAt} and leaves at {departAt}${inWindow}, as early as the distance from other departures allows ${launch}${change}`,
} as const;

/** Why a node has no planned departure. */
export const englishNotPlanned = {
  NoPolicy: "No policy selects {node}",
  PolicyInvalid: "A policy that might own {node} cannot be read: {detail}",
  PolicyPaused: "Policy {policy=no policy} is paused: {node} stays",
  NoLifetimeLimit:
    "[{node} leaves only on a notice, because {detail}|Policy {policy=no policy} has no lifetime.max: {node} leaves only on a notice]",
  NodeTerminating: "{node} is already being deleted",
  LeftToOthers: "{node} is already being disrupted by {detail}",
  OnHold: "{node} is on hold by its annotation {detail}",
  GangWorkload: "{node} does not leave on its own, because that would end others with it: {detail}",
  MachineStayed:
    "{node} was drained but its machine was not terminated; it is not drained again until {detail}",
  NoProviderID: "{node} has no providerID to identify its machine by",
  UnknownProvider: `{node} has the providerID {detail}, which is not ${orList(providerIdForms)}`,
  NoLaunchTime: "{node} has no creation time, so its deadline is unknown",
  Noticed: "{node} is under a notice: see departure {detail}",
  Requested: "{node} leaves as requested by a user: see departure {detail}",
  Started: "{node} is already leaving: see departure {detail}",
} as const;
