/**
 * The core's sentences in Japanese. `{fact}` stands for a fact of the core's own sentence; a
 * bracketed part is omitted if it has none. A test compares each with the core's.
 */
import { providerIdForms } from "../../cloud/facts/cloud-marks.ts";
import type { DrainReason } from "../../core/departure/drain-reason.ts";
import type { Barrier, PlannedReason } from "../../core/plan/fleet-plan.ts";
import type { NotPlannedReason } from "../../core/plan/not-planned.ts";
import type { Reason } from "../../core/reason/reason.ts";

const idForms = providerIdForms.join("、");

/** Follows the name of the node, as in `core/reason/reason.ts`. */
export const explained: Readonly<Record<Reason, string>> = {
  Spaced: "は {at} に、計画が許す限り他と離れて出発します",
  DeadlineBeatsWindow: "は期限の {deadlineAt} に出発します。それより早く許された時刻がありません",
  Missed: "は予定時刻を逃し、期限 {deadlineAt} を過ぎたため {at} に出発します",
  Overdue: "は最初の計画時に期限 {deadlineAt} を過ぎていたため {at} に出発します",
  Requested: "は利用者の依頼で出発します",
  Noticed: "はクラウドが中断するため出発します[（{deadlineAt}）][: {detail}]",
  NoPolicy: "には対象のポリシーがなく、予定された出発はありません",
  NoLifetimeLimit: "はポリシー {policy} に lifetime.max がないため、予定された出発はありません",
  NoProviderID: "はマシンを特定する providerID がないため計画されません",
  UnknownProvider: `の providerID {detail} は ${idForms} のいずれでもないため計画されません`,
  NoLaunchTime: "はマシンにもノードにも起動時刻がないため計画されません",
  OnHold:
    "は[アノテーション {detail} による保留中のため計画されません][{until} に保留が終わるまで待ちます]",
  MachineStayed: "は前回のドレイン後にマシンが残ったため、{detail} まで再びドレインされません",
  LeftToOthers: "は他のツールが処理中のため対象外です: {detail}",
  NodeTerminating: "はすでに削除中です",
  PolicyPaused: "はポリシー {policy} が一時停止中のため待ちます",
  PolicyInvalid: "は読み取れないポリシーがあるため対象外です: {detail}",
  NotYet: "は出発の時刻を待ちます[（順番は {until}）]",
  OutsideWindow: "は時間帯が開くのを待ちます[（{until}）]",
  BudgetSpent:
    "は時刻が来たときにポリシーの予算を使い切っていたため[、少なくとも {until} まで]待ちます: {detail}",
  WaveWait: "は前のウェーブを待ちます: {detail}",
  WaveHalted: "は前の出発がうまく終わらなかったため待ちます: {detail}",
  Frozen: "は凍結が終わる {until} まで待ちます",
  AlertsFiring: "はアラートが発生しているため待ちます: {detail}",
  AlertsNotAllowed:
    "は --action-hosts が gates.alerts.url のホスト[（{detail}）]を許可しないため待ちます",
  AlertsUnknown: "は Alertmanager[（{detail}）]が応答しないため待ちます",
  BlockingPod: "はブロックする Pod を待ちます: {detail}",
  GangWorkload:
    "は複数ノードにまたがるワークロード[（{detail}）]を終了させるため、自発的には退去しません",
  GangsUnknown: "は複数ノードにまたがるワークロードを一覧できないため待ちます",
  BlockingPodsUnknown: "はブロックする Pod を一覧できなかったため待ちます",
  FleetUnhealthy: "はフリートが不健全なため待ちます[: {detail}]",
  HeldByPerson: "は Departure の spec.hold が設定されているため待ちます",
  DeadlineFirst:
    "は依頼された時刻 {at} が期限[ {detail} ]を過ぎているため、それより前に計画どおり出発します",
  CordonedByOthers: "は他者が cordon したため待ちます",
  DrainImpossible: "はドレインがロールバックされるため開始されません[: {detail}]",
  ReleaseImpossible: "は後でマシンを解放できないためドレインされません[: {detail}]",
  CloudUnreachable: "はマシンを解放できるかクラウドが答えないため待ちます[: {detail}]",
  Started: "は出発中です",
  DeadlineForces: "は期限 {deadlineAt} より遅い開始が許されないため、今出発します",
  BudgetImpossible: "には予算が退避を決して許さない Pod があります[: {detail}]",
  NoCapacityElsewhere: "には他のノードに収まらないかもしれない Pod があります[: {detail}]",
  StartLapsed: "は出発の開始を許した条件が古くなったため、再計画を待ちます",
  ConflictWait: "は他のドレインと互いに妨げ合うおそれがあるため待ちます[: {detail}]",
  ReplacementWait: "は他のノードに Pod の場所ができるのを待ちます[: {detail}]",
  ReplacementTimeout: "は時間内に他のノードに Pod の場所を得られませんでした[: {detail}]",
  ActionWait: "は必須アクションを待ちます: {detail}",
  ActionFailed: "は必須アクションが失敗したためドレインされません[: {detail}]",
  DrainRunning: "はドレイン中です[: {detail}]",
  DrainBlocked: "はドレイン中で、ブロックされています: {detail}",
  DrainTimeout: "は制限時間内にドレインできませんでした[: {detail}]",
  DrainDone: "のドレインが完了しました[: {detail}]",
  VolumeWait: "はドレインが完了し、ボリュームの切り離しを待ちます[: {detail}]",
  LoadBalancerWait:
    "はドレインが完了し、まだ通信を送るロードバランサのため {detail} まで残されます",
  DeadlineReached: "は期限 {deadlineAt} に達しました[: {detail}]",
  ReleaseRetried: "はドレインが完了し、マシンの解放を再試行しています[: {detail}]",
  ReleaseFailed: "を解放できませんでした: {detail}",
  AwaitingMachine: "はドレインが完了し、クラウドがマシンを終了するのを待ちます",
  MachineNotTaken:
    "はドレインされましたが、マシンが終了されなかったため cordon を解除しました[: {detail}]",
  Released:
    "はドレインが完了し、マシンが解放されました[が、Node オブジェクトは削除されていません: {detail}]",
  NodeGone: "はなくなりました。ノードが削除されました[: {detail}]",
  MachineReplaced: "はなくなりました。今は別のマシンがその名前です",
  MachineRebooted: "は再起動されたため、出発が終了しました",
  WrongMachine: "はマシンが出発の対象と同じであると確認できないため対象外です[: {detail}]",
  CancelledByPerson: "は出発が取り消されたため残ります[: {detail}]",
  NoticeWithdrawn: "はクラウドが通知を撤回したため残ります",
  NoticeOutlived: "は通知の後もマシンが稼働しているため残ります",
  NoticeIgnored: "はポリシー {policy} がその通知を無視するため残ります",
  PlanChanged: "は計画から外れました[: {detail}]",
  RequestRefused: "は出発に必要な要求が失敗し続けたため残ります[: {detail}]",
  RolledBackByRule: "は残り、cordon を解除しました[: {detail}]",
  OrphanedCordon: "は、もうない出発のために cordon されていたため解除しました",
  DryRun: "は今出発するところですが、ドライランです",
};

/** Why a node leaves at its time, as a whole sentence, as in `core/plan/plan-report.ts`. */
export const planned: Readonly<Record<PlannedReason, string>> = {
  DeadlineBeatsWindow:
    "{node} は {departAt} に出発します。その時刻に開いた時間帯はありませんが、最早 {earliestAt} から期限 {deadlineAt} までに許された時刻がありません（起動 {bornAt}、{bornFrom}による）",
  Missed:
    "{node} は予定時刻を逃し、寿命が許す限り他と離れて {departAt} に[時間帯 {window} で]出発します。期限 {deadlineAt}（起動 {bornAt}、{bornFrom}による）",
  Overdue:
    "{node} は期限 {deadlineAt} を過ぎ、他との間隔が許す限り早く {departAt} に[時間帯 {window} で]出発します（起動 {bornAt}、{bornFrom}による）",
  Spaced:
    "{node} はポリシー {policy} の間隔に従い {departAt} に[時間帯 {window} で]出発します。最早 {earliestAt}、期限 {deadlineAt}（起動 {bornAt}、{bornFrom}による）",
};

/** The same for a node that has no allowed time because of a hold or a rest. */
export const barred: Readonly<Record<Barrier["by"], string>> = {
  Hold: "{node} は {until} まで保留中ですが、期限 {deadlineAt} が先のため {departAt} に出発します（起動 {bornAt}、{bornFrom}による）",
  Rest: "{node} は取り消された出発の後 {until} まで休止中ですが、期限 {deadlineAt} が先のため {departAt} に出発します（起動 {bornAt}、{bornFrom}による）",
};

/** Why a node has no planned departure, as a whole sentence. */
export const notPlanned: Readonly<Record<NotPlannedReason, string>> = {
  NoPolicy: "{node} を対象とするポリシーはありません",
  PolicyInvalid: "{node} を対象とするかもしれないポリシーを読み取れません: {detail}",
  PolicyPaused: "ポリシー {policy} は一時停止中のため、{node} は残ります",
  NoLifetimeLimit:
    "ポリシー {policy} に lifetime.max がないため、{node} は通知があったときだけ出発します",
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

/** Follows the name of a pod, as in `core/drain-plan/drain-plan-report.ts`. */
export const drained: Readonly<Record<DrainReason, string>> = {
  DaemonSet: "DaemonSet がすぐにこのノードに作り直すため対象外",
  Mirror: "kubelet だけが終了できる静的 Pod のため対象外",
  Finished: "終了しているため対象外",
  PolicySkip: "ポリシーの podRule が Skip のため対象外",
  ComesBack:
    "ドレイン中に cordon にかかわらずこのノードに作られた（退避してもまた作られる）ため対象外",
  Evictable: "退避[（猶予 {graceSeconds} 秒）]",
  WillBeCut:
    "期限がそれ以上を許さないため、{wantedGraceSeconds} 秒でなく {graceSeconds} 秒の猶予で退避",
  OwnController: "このドレインを行っているため最後に退避[（猶予 {graceSeconds} 秒）]",
  DaemonSetByRule: "podRule が指定するため他の後に退避[（猶予 {graceSeconds} 秒）]",
  DeleteRule: "ポリシーの podRule が Delete のため予算にかかわらず削除",
  NodeUnreachable: "ノードに到達できないため終了を確認できません",
  NoController: "退避[（猶予 {graceSeconds} 秒）]。コントローラーがないため作り直されません",
  DaemonSetGone:
    "退避[（猶予 {graceSeconds} 秒）]。DaemonSet {detail} がもうないため作り直されません",
  EmptyDir: "退避[（猶予 {graceSeconds} 秒）]。emptyDir のデータは失われます",
  HostPath: "退避[（猶予 {graceSeconds} 秒）]。hostPath のデータはマシンに残ります",
  LocalVolume:
    "退避[（猶予 {graceSeconds} 秒）]。ボリューム {detail} はこのマシンにあり、データはマシンとともに失われます",
  NoCapacityElsewhere: "他のノードに収まらないかもしれません: {detail}",
  Terminating: "すでに終了中のため待ちます[（期限 {detail}）]",
  StuckTerminating: "とうに終わっているはずが終わらないため対象外[（期限 {detail}）]",
  NamespaceTerminating: "削除中で退避を許さない名前空間 {detail} とともに終了",
  WaitCompleted: "podRule が WaitCompleted のため完了を待ちます",
  RestartOwner: "唯一のレプリカのため {detail} のロールアウト再起動で移動",
  DoNotDisturb: "{detail} があるため退避されません",
  DoNotDisrupt: "{detail} があるため退避されません",
  NotSafeToEvict: "{detail} があるため退避されません",
  BlockRule: "ポリシーの podRule が Block のため退避されません",
  MultipleBudgets: "複数の予算の対象のため退避できません: {detail}",
  BudgetImpossible: "予算が決して許さないため退避できません: {detail}",
  BudgetExhausted: "予算が中断を許さないため今は退避できません: {detail}",
  SingleReplica: "唯一のレプリカで予算が中断を許さないため退避できません: {detail}",
  AnnotationOverruled: "{detail} がありますが、クラウドがノードを中断するため退避",
  BlockRuleOverruled: "podRule が Block ですが、クラウドがノードを中断するため退避",
  BudgetHolds: "予算によりブロック中: {detail}",
  BudgetStale: "予算の状態を待ちます: {detail}",
  ApiOverloaded: "API サーバーが過負荷のため待ちます",
  EvictionRefused: "退避を拒否されました: {detail}",
  EvictionFailed: "退避できませんでした: {detail}",
  RestartRefused: "所有者の再起動が拒否されたため予算を待ちます: {detail}",
  AnswerLost: "退避されたかもしれませんが、応答が失われました: {detail}",
  ForcedAtDeadline:
    "期限がそれ以上待つことを許さないため、退避せずに削除[（{detail}）][（猶予 {wantedGraceSeconds} 秒を {graceSeconds} 秒に短縮）][（猶予 {graceSeconds} 秒）]",
  ForcedAtTimeout:
    "ドレインが時間切れになりポリシーが Proceed のため、退避せずに削除[（{detail}）][（猶予 {wantedGraceSeconds} 秒を {graceSeconds} 秒に短縮）][（猶予 {graceSeconds} 秒）]",
};
