import { providerIdForms } from "../../cloud/facts/cloud-marks.ts";
import type { englishNode } from "../../core/reason/english-node.ts";

const idForms = providerIdForms.join("、");

export const japaneseNode: Readonly<Record<keyof typeof englishNode, string>> = {
  Spaced: "{node} は {at} に、計画が許す限り他と離れて出発します",
  DeadlineBeatsWindow:
    "{node} は期限の {deadlineAt} に出発します。それより早く許された時刻がありません",
  Missed: "{node} は予定時刻を逃し、期限 {deadlineAt} を過ぎたため {at} に出発します",
  Overdue: "{node} は最初の計画時に期限 {deadlineAt} を過ぎていたため {at} に出発します",
  Requested: "{node} は利用者の依頼で出発します",
  Noticed: "{node} はクラウドが中断するため出発します[（{deadlineAt}）][: {detail}]",
  NoPolicy: "{node} には対象のポリシーがなく、予定された出発はありません",
  NoLifetimeLimit:
    "{node} は[{detail}ため|ポリシー {policy} に lifetime.max がないため]、予定された出発はありません",
  NoProviderID: "{node} はマシンを特定する providerID がないため計画されません",
  UnknownProvider: `{node} の providerID {detail} は ${idForms} のいずれでもないため計画されません`,
  NoLaunchTime: "{node} はマシンにもノードにも起動時刻がないため計画されません",
  OnHold:
    "{node} は[{until} に保留が終わるまで待ちます|アノテーション {detail} による保留中のため計画されません]",
  MachineStayed:
    "{node} は前回のドレイン後にマシンが残ったため、{detail} まで再びドレインされません",
  LeftToOthers: "{node} は他のツールが処理中のため対象外です: {detail}",
  NodeTerminating: "{node} はすでに削除中です",
  PolicyPaused: "{node} はポリシー {policy} が一時停止中のため待ちます",
  PolicyInvalid: "{node} は読み取れないポリシーがあるため対象外です: {detail}",
  NotYet: "{node} は出発の時刻を待ちます[（順番は {until}）]",
  OutsideWindow: "{node} は時間帯が開くのを待ちます[（{until}）]",
  BudgetSpent:
    "{node} は時刻が来たときにポリシーの予算を使い切っていたため[、少なくとも {until} まで]待ちます: {detail}",
  WaveWait: "{node} は前のウェーブを待ちます: {detail}",
  WaveHalted: "{node} は前の出発がうまく終わらなかったため待ちます: {detail}",
  Frozen: "{node} は凍結が終わる {until} まで待ちます",
  AlertsFiring: "{node} はアラートが発生しているため待ちます: {detail}",
  AlertsNotAllowed:
    "{node} は --action-hosts が gates.alerts.url のホスト[（{detail}）]を許可しないため待ちます",
  AlertsUnknown: "{node} は Alertmanager[（{detail}）]が応答しないため待ちます",
  BlockingPod: "{node} はブロックする Pod を待ちます: {detail}",
  GangWorkload:
    "{node} は複数ノードにまたがるワークロード[（{detail}）]を終了させるため、自発的には退去しません",
  GangsUnknown: "{node} は複数ノードにまたがるワークロードを一覧できないため待ちます",
  BlockingPodsUnknown: "{node} はブロックする Pod を一覧できなかったため待ちます",
  FleetUnhealthy: "{node} はフリートが不健全なため待ちます[: {detail}]",
  HeldByPerson: "{node} は Departure の spec.hold が設定されているため待ちます",
  DeadlineFirst:
    "{node} は依頼された時刻 {at} が期限[ {detail} ]を過ぎているため、それより前に計画どおり出発します",
  CordonedByOthers: "{node} は他者が cordon したため待ちます",
  DrainImpossible: "{node} はドレインがロールバックされるため開始されません[: {detail}]",
  ReleaseImpossible: "{node} は後でマシンを解放できないためドレインされません[: {detail}]",
  CloudUnreachable: "{node} はマシンを解放できるかクラウドが答えないため待ちます[: {detail}]",
  Started: "{node} は出発中です",
  DeadlineForces: "{node} は期限 {deadlineAt} より遅い開始が許されないため、今出発します",
  BudgetImpossible: "{node} には予算が退避を決して許さない Pod があります[: {detail}]",
  NoCapacityElsewhere: "{node} には他のノードに収まらないかもしれない Pod があります[: {detail}]",
  StartLapsed: "{node} は出発の開始を許した条件が古くなったため、再計画を待ちます",
  ConflictWait: "{node} は他のドレインと互いに妨げ合うおそれがあるため待ちます[: {detail}]",
  ReplacementWait: "{node} は他のノードに Pod の場所ができるのを待ちます[: {detail}]",
  ReplacementTimeout: "{node} は時間内に他のノードに Pod の場所を得られませんでした[: {detail}]",
  ActionWait: "{node} は必須アクションを待ちます: {detail}",
  ActionFailed: "{node} は必須アクションが失敗したためドレインされません[: {detail}]",
  DrainRunning: "{node} はドレイン中です[: {detail}]",
  DrainBlocked: "{node} はドレイン中で、ブロックされています: {detail}",
  DrainTimeout: "{node} は制限時間内にドレインできませんでした[: {detail}]",
  DrainDone: "{node} [は {left} 個の Pod を残しました|のドレインが完了しました][: {detail}]",
  VolumeWait:
    "{node} は[{left} 個の Pod を残したまま|ドレインが完了し]、ボリュームの切り離しを待ちます[: {detail}]",
  LoadBalancerWait:
    "{node} は[{left} 個の Pod を残したまま|ドレインが完了し]、まだ通信を送るロードバランサのため {detail} まで残されます",
  DeadlineReached: "{node} は期限 {deadlineAt} に達しました[: {detail}]",
  ReleaseRetried:
    "{node} は[{left} 個の Pod を残したまま|ドレインが完了し]、マシンの解放を再試行しています[: {detail}]",
  ReleaseFailed: "{node} を解放できませんでした: {detail}",
  AwaitingMachine:
    "{node} は[{left} 個の Pod を残したまま|ドレインが完了し]、クラウドがマシンを終了するのを待ちます",
  MachineNotTaken:
    "{node} は[{left} 個の Pod を残しましたが|ドレインされましたが]、マシンが終了されなかったため cordon を解除しました[: {detail}]",
  Released:
    "{node} は[{left} 個の Pod を残したまま|ドレインが完了し]、マシンが解放されました[が、Node オブジェクトは削除されていません: {detail}]",
  NodeGone: "{node} はなくなりました。ノードが削除されました[: {detail}]",
  MachineReplaced: "{node} はなくなりました。今は別のマシンがその名前です",
  MachineRebooted: "{node} は再起動されたため、出発が終了しました",
  WrongMachine: "{node} はマシンが出発の対象と同じであると確認できないため対象外です[: {detail}]",
  CancelledByPerson: "{node} は出発が取り消されたため残ります[: {detail}]",
  NoticeWithdrawn: "{node} はクラウドが通知を撤回したため残ります",
  NoticeOutlived: "{node} は通知の後もマシンが稼働しているため残ります",
  NoticeIgnored: "{node} はポリシー {policy} がその通知を無視するため残ります",
  PlanChanged: "{node} は計画から外れました[: {detail}]",
  RequestRefused: "{node} は出発に必要な要求が失敗し続けたため残ります[: {detail}]",
  RolledBackByRule: "{node} は残り、cordon を解除しました[: {detail}]",
  OrphanedCordon: "{node} は、もうない出発のために cordon されていたため解除しました",
  DryRun: "{node} は今出発するところですが、ドライランです",
};
