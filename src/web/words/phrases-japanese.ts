import { headlines } from "./headlines-japanese.ts";

/** The parts of composed sentences in Japanese: forecasts, drain plans and previews. */
export const phrases: readonly (readonly [english: RegExp, japanese: string])[] = [
  [/^(.+) is gone$/, "$1 はなくなりました"],
  [/^it had no pods to drain$/, "退避する Pod はありませんでした"],
  [/^its pod was drained before$/, "その前に Pod は退避していました"],
  [/^all (\d+) pods were drained before$/, "その前に全 $1 個の Pod が退避していました"],
  [/^both pods were drained before$/, "その前に両方の Pod が退避していました"],
  [/^its pod was not drained before$/, "その前に Pod は退避していませんでした"],
  [/^both pods were not drained before$/, "その前にどちらの Pod も退避していませんでした"],
  [/^all (\d+) pods were not drained before$/, "その前に全 $1 個の Pod が退避していませんでした"],
  [
    /^(\d+) of (\d+) pods (?:was|were) not drained before$/,
    "$2 個中 $1 個の Pod は退避が間に合いませんでした",
  ],
  [/^its pod was killed$/, "Pod は強制終了されました"],
  [/^all (\d+) pods were killed$/, "全 $1 個の Pod が強制終了されました"],
  [/^both pods were killed$/, "両方の Pod が強制終了されました"],
  [
    /^(\d+) of (\d+) pods (?:was|were) killed and (\d+) (?:was|were) not drained before$/,
    "$2 個中 $1 個の Pod が強制終了され、$3 個は退避が間に合いませんでした",
  ],
  [
    /^(\d+) of (\d+) pods (?:was|were) killed, the other (?:\d+ )?(?:was|were) drained before$/,
    "$2 個中 $1 個の Pod が強制終了され、残りはその前に退避していました",
  ],
  [/^No departures are planned$/, "予定された出発はありません"],
  [/^The departure is on schedule$/, "出発は予定どおりです"],
  [/^All (\d+) departures are on schedule$/, "全 $1 件の出発は予定どおりです"],
  [/^Both departures are on schedule$/, "2 件の出発はどちらも予定どおりです"],
  [/^The departure is late$/, "出発が遅れます"],
  [/^Both departures are late$/, "2 件の出発がどちらも遅れます"],
  [/^The departure does not start before its deadline$/, "出発は期限まで始まりません"],
  [/^No departure starts before its deadline$/, "どの出発も期限まで始まりません"],
  [/^All (\d+) departures are late$/, "全 $1 件の出発が遅れます"],
  ...headlines,
  [
    /^No voluntary departure starts, because the fleet is unhealthy: (.+)$/,
    "フリートが不健全なため、自発的な出発は始まりません（$1）",
  ],
  [
    /^(\d+) nodes? (?:is|are) held back, because a policy that might own (?:it|them) cannot be read: (.+)$/,
    "所有するかもしれないポリシーを読み取れないため、$1 台が保留されています: $2",
  ],
  [/^The departure is held back$/, "出発は保留されています"],
  [/^All (\d+) departures are held back$/, "全 $1 件の出発が保留されています"],
  [/^Both departures are held back$/, "2 件の出発がどちらも保留されています"],
  [/^(\d+) departures? (?:is|are) held back$/, "$1 件の出発が保留されています"],
  [
    /^(\d+) of (\d+) departures (?:is|are) on schedule(?:, (\d+) departures? (?:is|are) held back)?$/,
    "$2 件中 $1 件の出発は予定どおり[で、$3 件は保留されています]",
  ],
  [/^Dry run: no departures are planned$/, "ドライラン: 予定された出発はありません"],
  [
    /^Dry run: (\d+) departures? would be on schedule, and no node leaves$/,
    "ドライラン: $1 件の出発は予定どおりのはずですが、どのノードも出発しません",
  ],
  [
    /^Dry run: (\d+) of (\d+) departures? would be late, and no node leaves$/,
    "ドライラン: $2 件中 $1 件の出発が遅れるはずですが、どのノードも出発しません",
  ],
  [/^(\d+) of (\d+) departures? (?:is|are) late$/, "$2 件中 $1 件の出発が遅れます"],
  [
    /^(\d+) nodes? on hold until after the deadline, which ends the holds?$/,
    "保留が期限より後まで続くノードが $1 台（保留は期限で終わります）",
  ],
  [
    /^(\d+) nodes? without an (?:allowed time|open window) before the deadline$/,
    "期限前に出発を許された時刻のないノードが $1 台",
  ],
  [
    /^every Allow window would have to end (\S+) later$/,
    "すべての Allow の時間帯が $1 長く開く必要があります",
  ],
  [
    /^longer windows would not help (?:(\d+) of them|it)$/,
    "[そのうち $1 台は]時間帯を延ばしても間に合いません",
  ],
  [
    /^(\d+) nodes? that missed (?:its|their) time leaves? past the deadline$/,
    "予定時刻を逃した $1 台は期限を過ぎて出発します",
  ],
  [
    /^(\d+) nodes already past the deadline, leaving one by one$/,
    "すでに期限を過ぎた $1 台は一台ずつ出発します",
  ],
  [/^1 node already past the deadline$/, "1 台はすでに期限を過ぎています"],
  [
    /^lifetime\.max ends first for (?:(\d+) of them, unless they depart|it, unless it departs) by request$/,
    "[うち $1 台は]手動で出発させないと先に lifetime.max に達します",
  ],
  [
    /^(budgets|waves|budgets and waves) hold back (\d+) departures? past the deadline: (.+)$/,
    "予算やウェーブのため $2 件の出発が期限を過ぎて遅れます: $3",
  ],
  [
    /^(budgets|waves|budgets and waves) hold back (\d+) departures?(?:, (\d+) of them past the deadline)?: (.+)$/,
    "予算やウェーブのため $2 件の出発が遅れます[（うち $3 件は期限後）]: $4",
  ],
  [/^(\d+) nodes? would hold none back$/, "$1 台なら遅れません"],
  [/^(\d+) nodes? would hold none back, (.+)$/, "$1 台なら遅れません、$2"],
  [/^(\d+) % would hold none back$/, "$1 % なら遅れません"],
  [/^(\d+) % would hold none back, (.+)$/, "$1 % なら遅れません、$2"],
  [/^(\d+) an hour would hold none back$/, "一時間に $1 台なら遅れません"],
  [/^(\d+) an hour would hold none back, (.+)$/, "一時間に $1 台なら遅れません、$2"],
  [
    /^departures are at least (\S+) instead of (\S+) apart, because there is no time for more$/,
    "時間が足りないため、出発の間隔は最小で $2 でなく $1 です",
  ],
  [
    /^the freeze until (\S+) holds back (\d+) departures?$/,
    "$1 までの凍結のため $2 件の出発が待ちます",
  ],
  [
    /^the freeze until (\S+) ends after the deadlines of (\d+) departures? \((.+?)(?: and (\d+) more)?\), which .+$/,
    "$2 件の出発は $1 までの凍結より期限が早く、期限に出発します（$3[ ほか $4 件]）",
  ],
  [/^no wave has succeeded$/, "無事に出発したウェーブはありません"],
  [/^all (\d+) waves have succeeded$/, "全 $1 ウェーブが無事に出発しました"],
  [/^both waves have succeeded$/, "2 つのウェーブがどちらも無事に出発しました"],
  [/^the wave has succeeded$/, "ウェーブが無事に出発しました"],
  [
    /^wave (\d+) of (\d+) is halted, because the departure (.+) ended as (\w+)$/,
    "ウェーブ $1/$2 は停止中です。出発 $3 の結果: $4",
  ],
  [
    /^set waves\.restartedAt in the policy to continue$/,
    "ポリシーの waves.restartedAt で再開できます",
  ],
  [
    /^wave (\d+) of (\d+): (\d+) of (\d+) (?:has|have) succeeded, (\d+) (?:is|are) under way$/,
    "ウェーブ $1/$2: $4 台中 $3 台が無事に出発し、$5 台が出発中",
  ],
  [
    /^it is deleted after (\S+) s(?:.*) if it is still blocked$/,
    "ブロックが続けば $1 秒後に削除されます",
  ],
  [/^and (\d+) more pods?$/, "ほか $1 個の Pod"],
  [/^grace period truncated from (\S+) s to (\S+) s$/, "猶予は $1 秒から $2 秒に短縮されます"],
  [
    /^(.+) has no planned departure while it has the annotation (.+)$/,
    "アノテーション $2 がある間、$1 に予定された出発はありません",
  ],
  [
    /^(.+) leaves although its annotation (.+) holds it$/,
    "$1 はアノテーション $2 により保留中ですが、それでも出発します",
  ],
  [
    /^(.+) leaves although it is held until (\S+)$/,
    "$1 は $2 まで保留中ですが、それでも出発します",
  ],
  [
    /^(.+) leaves although policy (.+) is frozen until (\S+)$/,
    "$1 は、ポリシー $2 が $3 まで凍結中ですが、それでも出発します",
  ],
  [
    /^(.+) leaves although policy (.+) is paused$/,
    "$1 は、ポリシー $2 が一時停止中ですが、それでも出発します",
  ],
  [
    /^Policy (.+) has dryRun set: (.+) does not leave$/,
    "ポリシー $1 はドライランのため、$2 は出発しません",
  ],
  [
    /^It waits while spec\.hold of departure (.+) is set$/,
    "出発 $1 の spec.hold が設定されている間は待ちます",
  ],
  [/^It ignores windows, freezes and holds$/, "時間帯、凍結、保留は待ちません"],
  [
    /^It waits for the budgets of policy (.+), but ignores windows, freezes and holds$/,
    "ポリシー $1 の予算を待ちますが、時間帯、凍結、保留は待ちません",
  ],
  [
    /^That ends the current freeze of policy (\S+) sooner: it is frozen until (\S+)$/,
    "ポリシー $1 の今の凍結より早く終わります。今は $2 までです",
  ],
  [
    /^The lifetime\.max of (\S+) by policy (.+) ends at (\S+) even so: a machine with such a limit is terminated then, without a drain before$/,
    "それでもポリシー $2 による $1 の lifetime.max は $3 に終わり、その上限のあるマシンは事前のドレインなしに終了されます",
  ],
  [
    /^(\S+) is leaving \((\S+)\): the hold cancels departure (\S+), and what has been done is undone$/,
    "$1 は出発中（$2）です。保留により出発 $3 は取り消され、行われたことは元に戻されます",
  ],
  [
    /^(\S+) leaves as requested at (\S+) even so: departure (\S+)$/,
    "$1 はそれでも要求どおり $2 に出発します：出発 $3",
  ],
  [
    /^(\S+) leaves as requested even so: departure (\S+)$/,
    "$1 はそれでも要求どおり出発します：出発 $2",
  ],
  [
    /^(\S+) leaves on a notice even so: departure (\S+)$/,
    "$1 はそれでも通知により出発します：出発 $2",
  ],
  [/^It replaces the hold "(.+)" of (\S+) by (.+)$/, "$3 による $2 の保留「$1」を置き換えます"],
  [/^It replaces the hold "(.+)" of (\S+)$/, "$2 の保留「$1」を置き換えます"],
  [/^It ends the hold "(.+)" of (\S+) by (.+)$/, "$3 による $2 の保留「$1」を終えます"],
  [/^(.+) leaves at its deadline (\S+) even so$/, "$1 はそれでも期限の $2 に出発します"],
  [
    /^(\d+) nodes leave at their deadlines even so, the first at (\S+): (.+)$/,
    "それでも $1 台のノードがそれぞれの期限に出発します。最初は $2 の $3 です",
  ],
  [/^A notice from the cloud still drains it$/, "クラウドの通知があればドレインされます"],
  [/^(.+) is planned again like any other node$/, "$1 は他のノードと同じく再び計画されます"],
  [/^(.+) is on hold until (\S+)$/, "$1 は $2 まで保留されます"],
  [
    /^(\S+) leaves now(?:, by (\S+?))?(?: \(its machine may end at (\S+)\))? instead of the time requested earlier$/,
    "$1 は、前の依頼に代えてすぐに出発します[（期限 $2）][（マシンは $3 に終わるかもしれません）]",
  ],
  [
    /^(\S+) leaves at (\S+?)(?:, by (\S+?))?(?: \(its machine may end at (\S+)\))? instead of the time requested earlier$/,
    "$1 は、前の依頼に代えて $2 に出発します[（期限 $3）][（マシンは $4 に終わるかもしれません）]",
  ],
  [
    /^(\S+) leaves now(?:, by (\S+?))?(?: \(its machine may end at (\S+)\))?$/,
    "$1 はすぐに出発します[（期限 $2）][（マシンは $3 に終わるかもしれません）]",
  ],
  [
    /^(\S+) leaves at (\S+?)(?:, by (\S+?))?(?: \(its machine may end at (\S+)\))?$/,
    "$1 は $2 に出発します[（期限 $3）][（マシンは $4 に終わるかもしれません）]",
  ],
  [
    /^(\S+) may not have until (\S+): the cloud takes its machine at (\S+)$/,
    "$1 には $2 までの時間がないかもしれません。クラウドが $3 にマシンを取り上げます",
  ],
  [
    /^(\S+) may not have until (\S+): its deadline is (\S+), and its lifetime\.max by policy (\S+) ends at (\S+)$/,
    "$1 には $2 までの時間がないかもしれません。その期限は $3 で、ポリシー $4 による lifetime.max は $5 に終わります",
  ],
  [
    /^(\S+) was requested to leave by (\S+): that deadline is dropped, since it is over when the departure starts$/,
    "$1 には $2 までに出発する依頼がありましたが、出発の開始時には過ぎているため、その期限は取り消されます",
  ],
  [
    /^That is after its deadline (\S+): (.+) leaves as planned before that, unless something holds it$/,
    "期限 $1 より後です。保留されていなければ、$2 はそれより前に計画どおり出発します",
  ],
  [
    /^No planned departure of policy (.+) starts before (\S+), unless its deadline forces it$/,
    "ポリシー $1 の予定された出発は、期限に迫られない限り $2 より前に始まりません",
  ],
  [
    /^Planned departures of policy (.+) may start again$/,
    "ポリシー $1 の予定された出発が再び始められます",
  ],
  [
    /^(.+) stays: its drain is rolled back, and it is uncordoned$/,
    "$1 は残ります。ドレインは取り消され、cordon が解除されます",
  ],
  [/^(.+) does not leave as requested$/, "$1 は依頼どおりには出発しません"],
  [/^The plan assigns it another time$/, "計画が別の時刻を与えます"],
  [/^(.+) is already leaving: departure (.+), phase (\w+)$/, "$1 はすでに出発中です: 出発 $2"],
  [
    /^(.+) cannot leave (?:at|by) (\S+): that time has passed$/,
    "$1 を $2 に出発させることはできません。過ぎた時刻です",
  ],
  [
    /^(.+) cannot leave by (\S+): its departure starts at (\S+)$/,
    "$1 を $2 までに出発させることはできません。開始は $3 です",
  ],
  [
    /^Cannot hold (.+) until (\S+): that time has passed$/,
    "$1 を $2 まで保留できません。過ぎた時刻です",
  ],
  [/^Cannot freeze until (\S+): that has passed$/, "$1 まで凍結できません。過ぎた時刻です"],
  [/^The node (.+) shown here no longer exists$/, "表示されていたノード $1 はもうありません"],
  [/^Departure (.+) no longer exists$/, "出発 $1 はもうありません"],
  [/^The departure of (.+) has ended$/, "$1 の出発は終わっています"],
  [
    /^(.+) leaves because the cloud interrupts it, which cannot be withdrawn here$/,
    "$1 はクラウドが回収するため出発します。ここでは取り消せません",
  ],
  [/^The machine of (.+) is already being released$/, "$1 のマシンはすでに解放中です"],
  [
    /^It has changed since it was shown: review it again$/,
    "表示の後に変わりました。もう一度確認してください",
  ],
  [/^Somebody else changed it first: its hold is (.+)$/, "他の人が先でした: 保留は今 $1 です"],
  [
    /^Somebody else changed it first: it no longer has a hold$/,
    "他の人が先でした: 保留はもうありません",
  ],
  [
    /^Somebody else changed it first: frozen until (\S+)$/,
    "他の人が先でした: $1 まで凍結されています",
  ],
  [
    /^Somebody else changed it first: it is no longer frozen$/,
    "他の人が先でした: 凍結はもうありません",
  ],
  [
    /^Somebody else changed it first: (?:it no longer exists|the departure no longer exists)$/,
    "他の人が先でした: もうありません",
  ],
  [
    /^Somebody else changed it first: another (?:node|departure) has its name now$/,
    "他の人が先でした: 今は別のものがその名前です",
  ],
  [/^Somebody else changed it first: it is being written$/, "他の人が先でした: 書き込み中です"],
  [/^Somebody else changed it first: (.+)$/, "他の人が先でした: $1"],
  [/^(.+) has no (\S+) to remove$/, "$1 に取り除く $2 はありません"],
  [/^Policy (.+) does not exist or cannot be read$/, "読み取れるポリシー $1 はありません"],
  [/^There is no node (.+)$/, "ノード $1 はありません"],
  [
    /^Cannot (?:list|watch) (\S+): it is not installed \((.+)\), expected .+$/,
    "$1 を読み取れません。インストールされていません（$2）",
  ],
  [
    /^Cannot (?:list|watch) (\S+): forbidden \((.+)\), grant (.+)$/,
    "$1 を読み取れません。権限がありません（$2）。必要な権限: $3",
  ],
  [
    /^Cannot (?:list|watch) (\S+): the API server rejected the credentials \((.+)\), check .+$/,
    "$1 を読み取れません。API サーバーが認証情報を拒否しました（$2）",
  ],
  [
    /^Cannot list (\S+): it is forbidden, and without it no drain plan can be shown$/,
    "$1 を一覧する権限がないため、ドレイン計画を表示できません",
  ],
  [/^the controller found: (.+)$/, "コントローラーの報告: $1"],
  [/^The only departure cannot start: (.+)$/, "ただ一件の出発を開始できません: $1"],
  [/^Neither departure can start: (.+)$/, "2 件の出発はどちらも開始できません: $1"],
  [/^None of (\d+) departures can start: (.+)$/, "$1 件の出発はどれも開始できません: $2"],
  [
    /^(\d+) of (\d+) departures? cannot start \((.+)\): (.+)$/,
    "$2 件中 $1 件の出発を開始できません（$3）: $4",
  ],
  [/^no pods to evict$/, "退避する Pod はありませんでした"],
  [
    /^(\d+) pods? in (\d+) s, planned within (\d+) s(?:, (?:none|(\d+)) with a truncated grace period(?:, as planned| \(planned: (\d+)\))?)?(?:, (\d+) forced)?(?:, (\d+) left behind \(([^)]*)\))?$/,
    "$1 個の Pod が $2 秒で退避（計画は $3 秒以内）[、猶予短縮 $4][、計画の短縮 $5][、強制 $6][、残留 $7（$8）]",
  ],
];
