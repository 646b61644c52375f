import type { SentenceTable } from "../../core/reason/english.ts";
import { japaneseAct, japaneseChange } from "./japanese-act.ts";
import { japaneseApi, japaneseVerb } from "./japanese-api.ts";
import { japaneseDetail } from "./japanese-detail.ts";
import { japaneseFleet, japaneseHeadline, japaneseLimit } from "./japanese-fleet.ts";
import { japaneseNode } from "./japanese-node.ts";
import { japaneseNotPlanned, japanesePlanned } from "./japanese-plan.ts";
import { japaneseDrain, japanesePod } from "./japanese-pod.ts";

/** The sentences in Japanese, by the keys of the English ones. */
export const japanese: SentenceTable = {
  act: japaneseAct,
  api: japaneseApi,
  change: japaneseChange,
  detail: japaneseDetail,
  drain: japaneseDrain,
  fleet: japaneseFleet,
  headline: japaneseHeadline,
  limit: japaneseLimit,
  node: japaneseNode,
  notPlanned: japaneseNotPlanned,
  planned: japanesePlanned,
  pod: japanesePod,
  verb: japaneseVerb,
};
