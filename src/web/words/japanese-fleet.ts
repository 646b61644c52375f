import type {
  englishFleet,
  englishHeadline,
  englishLimit,
} from "../../core/reason/english-fleet.ts";

const some = "{departures} 件中 {some} 件の出発";
const names = "{names}[ ほか {more} 台]";

export const japaneseFleet: Readonly<Record<keyof typeof englishFleet, string>> = {
  NonePlanned: "予定された出発はありません",
  AllOnSchedule:
    "{departures?出発は|2 件の出発はどちらも|全 {departures} 件の出発は}予定どおりです",
  SomeOnSchedule: `${some}は予定どおり[で、{held} 件は保留されています]`,
  AllLate: "{departures?出発が|2 件の出発がどちらも|全 {departures} 件の出発が}遅れます",
  SomeLate: `${some}が遅れます`,
  Halted: "{departures?出発は|どの出発も}期限まで始まりません",
  AllHeldBack:
    "{departures?出発は|2 件の出発がどちらも|全 {departures} 件の出発が}保留されています",
  HeldBack: "{held} 件の出発が保留されています",
  DryRunNone: "ドライラン: 予定された出発はありません",
  DryRunInTime:
    "ドライラン: {departures} 件の出発は予定どおりのはずですが、どのノードも出発しません",
  DryRunAllLate:
    "ドライラン: {departures?出発が|2 件の出発がどちらも|全 {departures} 件の出発が}遅れるはずですが、どのノードも出発しません",
  DryRunSomeLate: `ドライラン: ${some}が遅れるはずですが、どのノードも出発しません`,
  Found: "コントローラーの報告: {detail}",
  NoneCanStart:
    "{departures?ただ一件の出発を開始できません|2 件の出発はどちらも開始できません|{departures} 件の出発はどれも開始できません}: {detail}",
  SomeCannotStart: `${some}を開始できません（{names}[ ほか {more} 件]）: {detail}`,
  OnHold: "保留が期限より後まで続くノードが {nodes} 台（保留は期限で終わります）",
  NoWindow: "期限前に出発を許された時刻のないノードが {nodes} 台",
  NoAllowedTime: "期限前に出発を許された時刻のないノードが {nodes} 台",
  Widen: "すべての Allow の時間帯が {byMs} 長く開く必要があります",
  Helpless: "{shut?|そのうち {helpless} 台は}時間帯を延ばしても間に合いません",
  Missed: "予定時刻を逃した {nodes} 台は期限を過ぎて出発します",
  Overdue:
    "{nodes?1 台はすでに期限を過ぎています|すでに期限を過ぎた {nodes} 台は一台ずつ出発します}",
  Expiring: "{overdue?|うち {expiring} 台は}手動で出発させないと先に lifetime.max に達します",
  HeldByLimits: "{who}のため {departures} 件の出発が遅れます[（うち {past} 件は期限後）]: {cures}",
  HeldPastDeadline: "{who}のため {departures} 件の出発が期限を過ぎて遅れます: {cures}",
  CloseTogether: "時間が足りないため、出発の間隔は最小で {wantedMs} でなく {reachedMs} です",
  FreezeHolds: "{until} までの凍結のため {departures} 件の出発が待ちます",
  FreezeEndsLate:
    "{departures} 件の出発は {until} までの凍結より期限が早く、期限に出発します（{names}[ ほか {more} 件]）",
  FreezeWouldEndLate:
    "{departures} 件の出発は {until} までの凍結より期限が早く、期限に出発するはずです（{names}[ ほか {more} 件]）",
  PausedEmpty: "ポリシーは一時停止中で、選択するノードがありません",
  Paused: "ポリシーは一時停止中で、{nodes} 台のノードに出発時刻がありません",
  SelectsNone: "対象のノードがありません。nodeSelector とノードのラベルを比べてください",
  Outranked:
    "適用されるノードがありません。選択する {nodes} 台には、weight がより大きいか名前がより前のポリシーが適用されます",
  OwnersUnread:
    "所有するかもしれないポリシーを読み取れないため、{nodes} 台が保留されています: {detail}、{rest}",
  Unhealthy: "フリートが不健全なため、自発的な出発は始まりません（{detail}）[、{rest}]",
};

export const japaneseHeadline: Readonly<Record<keyof typeof englishHeadline, string>> = {
  NoPolicies: "DeparturePolicy がないため、どのノードも計画されません",
  NodesUnread: "ノードを読み取れません",
  PoliciesUnread: "ポリシーを読み取れません",
  DeparturesUnread: "出発を読み取れません",
  PolicyUnread: "読み取れ[ないため、{nodes?|{nodes} 台の}ノードは残ります|ません]: {detail}",
  Frozen: "{until} まで凍結中、{rest}",
  Next: "{node} は {departAt} に出発します",
  NoneAhead: "[{until} に凍結が終わるまで、]予定された出発はありません",
  NoneLeaving: "出発中のノードはありません",
  Leaving: `{nodes} 台が出発中です: ${names}`,
  SomeNoticed: `{nodes} 台が出発中です（うち {noticed} 台は通知による）: ${names}`,
  AllNoticed: `{nodes?1 台が通知により出発中です（{names}）|{nodes} 台がすべて通知により出発中です: ${names}}`,
  OnHold: `{nodes} 台が[ {untilAt} まで]{nodes?[ {sinceAt} から]保留中です|保留中です[（最も長いものは {sinceAt} から）]}: ${names}`,
  Leads: "{holder} がリーダーです",
  NotRenewed:
    "リーダーのコントローラーがなく、何も始まりません: {holder} は Lease を更新していません[（最後は {renewedAt}）]",
  NoLease:
    "Lease の保持者がいません。コントローラーが動いていないか、リーダー選出なしで動いています",
  LeaseUnread: "コントローラーの状態を読み取る権限がありません",
  NoAgentFits: "エージェントはインストール済みですが、対象のノードがありません",
  AgentsReady: "{wanted} 台中 {ready} 台が準備完了です",
  AgentsMissing: "{wanted} 台中 {ready} 台が準備完了です。通知を逃すおそれがあります",
  NoAgent: "エージェントがありません",
  AgentsUnread: "エージェントの状態を読み取る権限がありません",
};

export const japaneseLimit: Readonly<Record<keyof typeof englishLimit, string>> = {
  Budgets: "予算",
  Waves: "ウェーブ",
  BudgetsAndWaves: "予算とウェーブ",
  PerHour: "一時間に {perHour} 台",
  Nodes: "同時に {nodes} 台",
  NodesInZone: "ゾーンごとに同時に {nodes} 台",
  NodesInCluster: "クラスタ全体で同時に {nodes} 台",
  Percent: "同時に {percent} % のノード",
  PercentInZone: "ゾーンごとに同時に {percent} % のノード",
  PercentInCluster: "クラスタ全体で同時に {percent} % のノード",
  WaveSizes: "ウェーブ {names}",
  CureNodes: "{nodes} 台なら遅れません",
  CurePercent: "{percent} % なら遅れません",
  CurePerHour: "一時間に {perHour} 台なら遅れません",
  HourSpent: "一時間に {departures} 件の出発が始まっており、上限は {perHour} 件です",
  NodesOut:
    "{where}の {nodes} 台が離脱中で[（うち {missing} 台は代わりがまだなく）]、上限は {most} 台です",
  NodesGone: "{where}の {nodes} 台がなくなって代わりがまだなく、上限は {most} 台です",
  ThePolicy: "ポリシー {policy} ",
  TheZone: "ゾーン {zone=（名前なし）} ",
  TheCluster: "クラスタ",
  NoWave: "無事に出発したウェーブはありません",
  WavesPassed:
    "{waves?ウェーブが|2 つのウェーブがどちらも|全 {waves} ウェーブが}無事に出発しました",
  WaveHalted:
    "ウェーブ {wave}/{waves} は停止中です。出発 {departure} の結果: {outcome}、ポリシーの waves.restartedAt で再開できます",
  WaveGoing:
    "ウェーブ {wave}/{waves}: {size} 台中 {succeeded} 台が無事に出発し、{underWay} 台が出発中",
  PolicyNotReady: "ポリシー {policy} の {nodes} 台中 {notReady} 台が Ready でない",
  ClusterNotReady: "クラスタの {nodes} 台中 {notReady} 台が Ready でない",
  Unheard: "API サーバーから {kind} について {silentMs} 以上何も届いていない",
  NotReplaced: "{sinceAt} から {node}[ ほか {more} 台]の代わりがない",
  HoldUnreadable:
    '{mark}（値 {value} は読み取れません[（{meant} ですか）]。"true"、"4h"、"2026-12-01T00:00:00Z" などと書きます）',
  Cloud: "クラウド",
  NodeObject: "Node オブジェクト",
};
