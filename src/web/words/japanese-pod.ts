import type { englishDrain, englishPod } from "../../core/reason/english-pod.ts";

const grace = "[（猶予 {graceSeconds} 秒）]";
const granted = `[（猶予 {wantedGraceSeconds} 秒を {graceSeconds} 秒に短縮）|${grace}]`;

export const japanesePod: Readonly<Record<keyof typeof englishPod, string>> = {
  DaemonSet: "DaemonSet がすぐにこのノードに作り直すため対象外",
  Mirror: "kubelet だけが終了できる静的 Pod のため対象外",
  Finished: "終了しているため対象外",
  PolicySkip: "ポリシーの podRule が Skip のため対象外",
  ComesBack:
    "ドレイン中に cordon にかかわらずこのノードに作られた（退避してもまた作られる）ため対象外",
  Evictable: `退避${grace}`,
  WillBeCut:
    "期限がそれ以上を許さないため、{wantedGraceSeconds} 秒でなく {graceSeconds} 秒の猶予で退避",
  OwnController: `このドレインを行っているため最後に退避${grace}`,
  DaemonSetByRule: `podRule が指定するため他の後に退避${grace}`,
  DeleteRule: "ポリシーの podRule が Delete のため予算にかかわらず削除",
  NodeUnreachable: "ノードに到達できないため終了を確認できません",
  NoController: `退避${grace}。コントローラーがないため作り直されません`,
  DaemonSetGone: `退避${grace}。DaemonSet {detail} がもうないため作り直されません`,
  EmptyDir: `退避${grace}。emptyDir のデータは失われます`,
  HostPath: `退避${grace}。hostPath のデータはマシンに残ります`,
  LocalVolume: `退避${grace}。ボリューム {detail} はこのマシンにあり、データはマシンとともに失われます`,
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
  ForcedAtDeadline: `期限がそれ以上待つことを許さないため、退避せずに削除[（{detail}）]${granted}`,
  ForcedAtTimeout: `ドレインが時間切れになりポリシーが Proceed のため、退避せずに削除[（{detail}）]${granted}`,
};

export const japaneseDrain: Readonly<Record<keyof typeof englishDrain, string>> = {
  PodHeld: "{pod}: {detail}",
  MorePods: "ほか {more} 個の Pod",
  DeletedAfter: "ブロックが続けば {afterSeconds} 秒後に削除されます",
  GraceCut: "猶予は {wantedGraceSeconds} 秒から {graceSeconds} 秒に短縮されます",
  MarkUnreadable:
    '{mark}: {value}（読み取れません[（{meant} ですか）]。"true"、"2h" などと書きます）',
  NoPods: "退避する Pod はありませんでした",
  Account:
    "{pods} 個の Pod が {tookSeconds} 秒で退避（計画は {plannedSeconds} 秒以内）[、猶予短縮 {cutAsPlanned}][、猶予短縮 {cut}、計画の短縮 {plannedCut}][、計画の短縮 {missedCut}][、強制 {forced}][、残留 {left}（{names}）]",
  Gone: "{node} はなくなりました",
  NoNode: "{node} の Node オブジェクトはもうありません",
  HadNoPods: "退避する Pod はありませんでした",
  AllDrained: "その前に{pods? Pod は|両方の Pod が|全 {pods} 個の Pod が}退避していました",
  AllLeft: "その前に{pods? Pod は|どちらの Pod も|全 {pods} 個の Pod が}退避していませんでした",
  AllKilled: "{pods?Pod は|両方の Pod が|全 {pods} 個の Pod が}強制終了されました",
  SomeLeft: "{pods} 個中 {left} 個の Pod は退避が間に合いませんでした",
  SomeKilled: "{pods} 個中 {killed} 個の Pod が強制終了され、残りはその前に退避していました",
  KilledAndLeft:
    "{pods} 個中 {killed} 個の Pod が強制終了され、{left} 個は退避が間に合いませんでした",
};
