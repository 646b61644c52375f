/**
 * A short sentence per reason and language, to be read from a distance, in a browser and in a
 * terminal; the core's own sentence has the details.
 */
import type { Reason } from "../core/reason/reason.ts";
import type { BoardRow } from "./stream.ts";

/** Why a node leaves when it does, or what holds it; a newer version may have other reasons. */
export function rowWords(row: BoardRow, language: "en" | "ja"): string {
  const { plannedBy, deadlineAt, hold } = row;
  const isBarred = plannedBy === "DeadlineBeatsWindow" && deadlineAt !== null;
  if (isBarred && (hold?.untilAt ?? 0) > deadlineAt) {
    return { en: "On hold past its deadline", ja: "期限の後まで保留" }[language];
  }
  const why = plannedBy ?? (row.cause === "Manual" ? "Requested" : row.reason);
  return reasonWords[why]?.[language] ?? why;
}

export const reasonWords: Readonly<Record<Reason, Readonly<Record<"en" | "ja", string>>>> = {
  Spaced: { en: "Spaced from its neighbours", ja: "他と間隔を空けて出発" },
  DeadlineBeatsWindow: { en: "No time before its deadline", ja: "期限前に出発できる時刻なし" },
  Missed: { en: "Missed its time", ja: "予定時刻を逃した" },
  Overdue: { en: "Was past its deadline when planned", ja: "計画時に期限超過" },
  Requested: { en: "Requested by a user", ja: "利用者の依頼" },
  Noticed: { en: "The cloud interrupts it", ja: "クラウドが回収" },
  NoPolicy: { en: "No policy selects it", ja: "対象のポリシーなし" },
  NoLifetimeLimit: { en: "Leaves on a notice only", ja: "通知があったときだけ出発" },
  NoProviderID: { en: "No providerID", ja: "providerID なし" },
  UnknownProvider: { en: "Unknown cloud", ja: "不明なクラウド" },
  NoLaunchTime: { en: "Launch time unknown", ja: "起動時刻が不明" },
  OnHold: { en: "On hold", ja: "保留中" },
  MachineStayed: { en: "Paused: its machine stayed", ja: "マシンが残ったため休止" },
  LeftToOthers: { en: "Another tool is removing it", ja: "他のツールが処理中" },
  NodeTerminating: { en: "Its Node is being deleted", ja: "ノードを削除中" },
  PolicyPaused: { en: "Its policy is paused", ja: "ポリシー停止中" },
  PolicyInvalid: { en: "A policy cannot be read", ja: "ポリシーを読み取れない" },
  NotYet: { en: "Its time has not come", ja: "まだ時刻ではない" },
  OutsideWindow: { en: "Waits for a window", ja: "時間帯を待機" },
  BudgetSpent: { en: "Waits for the budget", ja: "予算の空きを待機" },
  WaveWait: { en: "Waits for the previous wave", ja: "前のウェーブを待機" },
  WaveHalted: { en: "Waves are halted", ja: "ウェーブ停止" },
  Frozen: { en: "Frozen", ja: "凍結中" },
  AlertsFiring: { en: "Alerts are firing", ja: "アラート発生中" },
  AlertsNotAllowed: {
    en: "Alertmanager is not in --action-hosts",
    ja: "Alertmanager が --action-hosts にない",
  },
  AlertsUnknown: { en: "Alertmanager does not respond", ja: "Alertmanager が応答なし" },
  BlockingPod: { en: "Waits for a blocking pod", ja: "ブロックする Pod を待機" },
  GangWorkload: {
    en: "part of a workload on several nodes",
    ja: "複数ノードにまたがるワークロードの一部",
  },
  GangsUnknown: {
    en: "workloads on several nodes unknown",
    ja: "複数ノードのワークロードが不明",
  },
  BlockingPodsUnknown: { en: "Blocking pods are unknown", ja: "ブロックする Pod が不明" },
  FleetUnhealthy: { en: "The fleet is unhealthy", ja: "フリートが不健全" },
  HeldByPerson: { en: "Held by a user", ja: "利用者が保留" },
  DeadlineFirst: { en: "Its deadline comes first", ja: "期限があるため先に計画どおり出発" },
  CordonedByOthers: { en: "Cordoned by somebody else", ja: "他者が cordon 済み" },
  DrainImpossible: { en: "Its drain would be rolled back", ja: "ドレインを完了できない" },
  ReleaseImpossible: { en: "Its machine could not be released", ja: "マシンを解放できない" },
  CloudUnreachable: { en: "Its cloud does not respond", ja: "クラウドが応答なし" },
  Started: { en: "Started", ja: "開始" },
  DeadlineForces: { en: "Its deadline forces it", ja: "期限のため開始" },
  BudgetImpossible: { en: "A budget never allows it", ja: "予算が常に不許可" },
  NoCapacityElsewhere: { en: "No room for its pods", ja: "Pod の移動先なし" },
  StartLapsed: { en: "Waits to be planned again", ja: "再計画を待機" },
  ConflictWait: { en: "Waits for another drain", ja: "他のドレインを待機" },
  ReplacementWait: { en: "Reserving capacity", ja: "移動先を確保中" },
  ReplacementTimeout: { en: "No capacity in time", ja: "移動先が間に合わず" },
  ActionWait: { en: "Waiting for actions", ja: "アクションの完了待ち" },
  ActionFailed: { en: "A required action failed", ja: "必須アクションが失敗" },
  DrainRunning: { en: "Pods are leaving", ja: "Pod を退避中" },
  DrainBlocked: { en: "The drain is blocked", ja: "ドレインがブロック中" },
  DrainTimeout: { en: "The drain timed out", ja: "ドレインが時間切れ" },
  DrainDone: { en: "Drained", ja: "ドレイン完了" },
  VolumeWait: { en: "Waits for volumes", ja: "ボリュームの切り離し待ち" },
  LoadBalancerWait: { en: "Waits for load balancers", ja: "ロードバランサ待ち" },
  DeadlineReached: { en: "Deadline reached", ja: "期限に到達" },
  ReleaseRetried: { en: "Release is being retried", ja: "解放を再試行中" },
  ReleaseFailed: { en: "Release failed", ja: "解放に失敗" },
  AwaitingMachine: { en: "Waits for its termination", ja: "マシンの終了待ち" },
  MachineNotTaken: { en: "Its machine stayed", ja: "マシンが回収されず" },
  Released: { en: "Released", ja: "解放済み" },
  NodeGone: { en: "The node is gone", ja: "ノードは消滅" },
  MachineReplaced: { en: "Another machine has its name", ja: "別のマシンに交代" },
  MachineRebooted: { en: "Rebooted", ja: "再起動" },
  WrongMachine: { en: "Not the intended machine", ja: "対象のマシンではない" },
  CancelledByPerson: { en: "Cancelled by a user", ja: "利用者が取り消し" },
  NoticeWithdrawn: { en: "The cloud withdrew its notice", ja: "通知は撤回" },
  NoticeOutlived: { en: "Its machine outlived the notice", ja: "通知後もマシンは稼働" },
  NoticeIgnored: { en: "The policy ignores the notice", ja: "ポリシーが通知を無視" },
  PlanChanged: { en: "No longer planned", ja: "計画から外れた" },
  RequestRefused: { en: "Request kept failing", ja: "要求が失敗し続けた" },
  RolledBackByRule: { en: "Rolled back", ja: "規則により取り消し" },
  OrphanedCordon: { en: "Uncordoned: no departure", ja: "cordon を解除" },
  DryRun: { en: "Dry run", ja: "ドライラン" },
};
