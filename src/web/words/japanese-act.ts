import type { englishAct, englishChange } from "../../core/reason/english-act.ts";

const ends = "[（期限 {byTime}）][（マシンは {endTime} に終わるかもしれません）]";

export const japaneseAct: Readonly<Record<keyof typeof englishAct, string>> = {
  PlannedAgain: "{node} は他のノードと同じく再び計画されます",
  OnHold: "{node} は {untilTime} まで保留されます",
  HeldByMark: "アノテーション {mark} がある間、{node} に予定された出発はありません",
  NoticeDrains: "クラウドの通知があればドレインされます",
  DryRun: "ポリシー {policy} はドライランのため、{node} は出発しません",
  LeavesNow: `{node} はすぐに出発します${ends}`,
  LeavesNowInstead: `{node} は、前の依頼に代えてすぐに出発します${ends}`,
  LeavesAt: `{node} は {atTime} に出発します${ends}`,
  LeavesAtInstead: `{node} は、前の依頼に代えて {atTime} に出発します${ends}`,
  AfterDeadline:
    "期限 {deadlineTime} より後です。保留されていなければ、{node} はそれより前に計画どおり出発します",
  DeadlineDropped:
    "{node} には {byTime} までに出発する依頼がありましたが、出発の開始時には過ぎているため、その期限は取り消されます",
  CloudTakesIt:
    "{node} には {untilTime} までの時間がないかもしれません。クラウドが {endTime} にマシンを取り上げます",
  LifetimeEnds:
    "{node} には {untilTime} までの時間がないかもしれません。その期限は {deadlineTime} で、ポリシー {policy} による lifetime.max は {endTime} に終わります",
  LeavesThoughMarked: "{node} はアノテーション {mark} により保留中ですが、それでも出発します",
  LeavesThoughHeld: "{node} は {untilTime} まで保留中ですが、それでも出発します",
  LeavesThoughFrozen:
    "{node} は、ポリシー {policy} が {untilTime} まで凍結中ですが、それでも出発します",
  LeavesThoughPaused: "{node} は、ポリシー {policy} が一時停止中ですが、それでも出発します",
  WaitsForHold: "出発 {departure} の spec.hold が設定されている間は待ちます",
  WaitsForNothing: "時間帯、凍結、保留は待ちません",
  WaitsForBudgets: "ポリシー {policy} の予算を待ちますが、時間帯、凍結、保留は待ちません",
  MayStartAgain: "ポリシー {policy} の予定された出発が再び始められます",
  Freezes:
    "ポリシー {policy} の予定された出発は、期限に迫られない限り {untilTime} より前に始まりません",
  FreezesShorter: "ポリシー {policy} の今の凍結より早く終わります。今は {untilTime} までです",
  NoticedAnyway: "{node} はそれでも通知により出発します：出発 {departure}",
  RequestedAnyway: "{node} はそれでも要求どおり[ {atTime} に]出発します：出発 {departure}",
  HoldCancels:
    "{node} は出発中（{phase}）です。保留により出発 {departure} は取り消され、行われたことは元に戻されます",
  ReplacesHold: "[{by} による ]{node} の保留「{value}」を置き換えます",
  EndsHold: "[{by} による ]{node} の保留「{value}」を終えます",
  DeadlineAnyway: "{node} はそれでも期限の {deadlineTime} に出発します",
  DeadlinesAnyway:
    "それでも {nodes} 台のノードがそれぞれの期限に出発します。最初は {deadlineTime} の {node} です",
  LifetimeAnyway:
    "それでもポリシー {policy} による {node} の lifetime.max は {endTime} に終わり、その上限のあるマシンは事前のドレインなしに終了されます",
  DrainUndone: "{node} は残ります。ドレインは取り消され、cordon が解除されます",
  RequestDropped: "{node} は依頼どおりには出発しません",
  PlannedAnew: "計画が別の時刻を与えます",
  Done: "完了しました",
  HasEnded: "{node} の出発は終わっています",
  Interrupted: "{node} はクラウドが回収するため出発します。ここでは取り消せません",
  Releasing: "{node} のマシンはすでに解放中です",
  AlreadyLeaving: "{node} はすでに出発中です: 出発 {departure}",
  NoMark: "{node} に取り除く {mark} はありません",
  PastHold: "{node} を {untilTime} まで保留できません。過ぎた時刻です",
  PastFreeze: "{untilTime} まで凍結できません。過ぎた時刻です",
  PastLeave: "{node} を {atTime} に出発させることはできません。過ぎた時刻です",
  EndsBeforeStart: "{node} を {byTime} までに出発させることはできません。開始は {atTime} です",
  NodeGone: "表示されていたノード {node} はもうありません",
  NoNode: "ノード {node} はありません",
  NoPolicy: "読み取れるポリシー {policy} はありません",
  DepartureGone: "出発 {departure} はもうありません",
  Changed: "表示の後に変わりました。もう一度確認してください",
  ChangedByOther: "他の人が先でした: {detail}",
};

export const japaneseChange: Readonly<Record<keyof typeof englishChange, string>> = {
  Hold: "[保留は今 {value} です|保留はもうありません]",
  Freeze: "[{until} まで凍結されています|凍結はもうありません]",
  Gone: "もうありません",
  DepartureGone: "もうありません",
  OtherNode: "今は別のものがその名前です",
  OtherDeparture: "今は別のものがその名前です",
  BeingWritten: "書き込み中です",
};
