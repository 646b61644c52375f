import { providerIdForms } from "../../cloud/facts/cloud-marks.ts";
import type { englishNotPlanned, englishPlanned } from "../../core/reason/english-plan.ts";

const idForms = providerIdForms.join("、");
const launch = "（起動 {bornAt}、{bornFrom}による）";
const change = "[、{movedAt} から変更][、約 {waitMs} 遅れる見込み]";
const inWindow = "[時間帯 {window} で]";

export const japanesePlanned: Readonly<Record<keyof typeof englishPlanned, string>> = {
  DeadlineBeatsWindow: `{node} は {departAt} に出発します。その時刻に開いた時間帯はありませんが、最早 {earliestAt} から期限 {deadlineAt} までに許された時刻がありません${launch}${change}`,
  Missed: `{node} は予定時刻を逃し、寿命が許す限り他と離れて {departAt} に${inWindow}出発します。期限 {deadlineAt}${launch}${change}`,
  Overdue: `{node} は期限 {deadlineAt} を過ぎ、他との間隔が許す限り早く {departAt} に${inWindow}出発します${launch}${change}`,
  Spaced: `{node} はポリシー {policy} の間隔に従い {departAt} に${inWindow}出発します。最早 {earliestAt}、期限 {deadlineAt}${launch}${change}`,
  DeadlineBeatsHold: `{node} は {until} まで保留中ですが、期限 {deadlineAt} が先のため {departAt} に出発します${launch}${change}`,
  DeadlineBeatsRest: `{node} は取り消された出発の後 {until} まで休止中ですが、期限 {deadlineAt} が先のため {departAt} に出発します${launch}${change}`,
};

export const japaneseNotPlanned: Readonly<Record<keyof typeof englishNotPlanned, string>> = {
  NoPolicy: "{node} を対象とするポリシーはありません",
  PolicyInvalid: "{node} を対象とするかもしれないポリシーを読み取れません: {detail}",
  PolicyPaused: "ポリシー {policy} は一時停止中のため、{node} は残ります",
  NoLifetimeLimit:
    "[{detail}ため、|ポリシー {policy} に lifetime.max がないため、]{node} は通知があったときだけ出発します",
  NodeTerminating: "{node} はすでに削除中です",
  LeftToOthers: "{node} はすでに {detail} が処理しています",
  OnHold: "{node} はアノテーション {detail} により保留中です",
  GangWorkload: "{node} を単独で出発させるとほかも終了するため計画しません: {detail}",
  MachineStayed:
    "{node} はドレインされましたがマシンが終了されませんでした。{detail} まで再びドレインされません",
  NoProviderID: "{node} にはマシンを特定する providerID がありません",
  UnknownProvider: `{node} の providerID {detail} は ${idForms} のいずれでもありません`,
  NoLaunchTime: "{node} には作成時刻がないため期限が不明です",
  Noticed: "{node} には通知が来ています: 出発 {detail}",
  Requested: "{node} は利用者の依頼で出発します: 出発 {detail}",
  Started: "{node} はすでに出発中です: 出発 {detail}",
};
