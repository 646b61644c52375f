import type { Checker } from "./checker.ts";
import {
  actsOnOwnNode,
  drainedIsTrue,
  dyingStaysCordoned,
  evictedFromCordoned,
  givenBackStays,
  notDrainedInVain,
  oneActor,
  releasedRightMachine,
  releasedWhenEmpty,
} from "./checkers/act-checkers.ts";
import { actionsAreUndone } from "./checkers/action-checkers.ts";
import { cordonsEnd, markHasDeparture } from "./checkers/cordon-checkers.ts";
import { endedWithEvidence } from "./checkers/evidence-checkers.ts";
import { graceIsKept, othersCordonStays, undisturbedStays } from "./checkers/pod-checkers.ts";
import {
  fleetIsNotEmptied,
  startIsAllowed,
  startIsInBudget,
  startIsInformed,
  startIsInTime,
  startLeavesRivalsAlone,
  startsKeepPace,
  startWaitsForFleet,
} from "./checkers/start-checkers.ts";
import {
  calmIsRest,
  nothingBreaks,
  noticeIsActedOn,
  phasesEnd,
  writesAreFew,
} from "./checkers/time-checkers.ts";

/** Every rule there is. A new one is a new line, and judges every run from then on. */
export const checkers: readonly Checker[] = [
  startIsAllowed,
  startIsInBudget,
  startsKeepPace,
  startWaitsForFleet,
  startLeavesRivalsAlone,
  startIsInformed,
  startIsInTime,
  fleetIsNotEmptied,
  graceIsKept,
  undisturbedStays,
  othersCordonStays,
  evictedFromCordoned,
  releasedWhenEmpty,
  drainedIsTrue,
  releasedRightMachine,
  actsOnOwnNode,
  givenBackStays,
  dyingStaysCordoned,
  oneActor,
  endedWithEvidence,
  notDrainedInVain,
  markHasDeparture,
  phasesEnd,
  cordonsEnd,
  actionsAreUndone,
  noticeIsActedOn,
  calmIsRest,
  writesAreFew,
  nothingBreaks,
];
