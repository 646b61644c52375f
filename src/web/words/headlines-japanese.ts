/** The sentences of the headline in Japanese. */
export const headlines: readonly (readonly [english: RegExp, japanese: string])[] = [
  [
    /^There is no DeparturePolicy: no node is planned$/,
    "DeparturePolicy がないため、どのノードも計画されません",
  ],
  [
    /^It selects no node: compare its nodeSelector with the labels of the nodes$/,
    "対象のノードがありません。nodeSelector とノードのラベルを比べてください",
  ],
  [
    /^It applies to no node: policies of more weight or of an earlier name apply to the (\d+) nodes? that it selects$/,
    "適用されるノードがありません。選択する $1 台には、weight がより大きいか名前がより前のポリシーが適用されます",
  ],
  [
    /^It cannot be read, and its (?:(\d+) nodes stay|node stays): (.+)$/,
    "読み取れないため、[$1 台の]ノードは残ります: $2",
  ],
  [/^It cannot be read: (.+)$/, "読み取れません: $1"],
  [
    /^The policy is paused, and selects no node$/,
    "ポリシーは一時停止中で、選択するノードがありません",
  ],
  [
    /^The policy is paused: (\d+) nodes? without a departure time$/,
    "ポリシーは一時停止中で、$1 台のノードに出発時刻がありません",
  ],
  [/^Frozen until (\S+)$/, "$1 まで凍結中"],
  [/^(\S+) leaves at (\S+Z)$/, "$1 は $2 に出発します"],
  [/^The nodes cannot be read$/, "ノードを読み取れません"],
  [/^The policies cannot be read$/, "ポリシーを読み取れません"],
  [/^The departures cannot be read$/, "出発を読み取れません"],
  [
    /^No departure is ahead(?: before the freeze ends at (\S+Z))?$/,
    "[$1 に凍結が終わるまで、]予定された出発はありません",
  ],
  [/^No node is leaving now$/, "出発中のノードはありません"],
  [/^1 node is leaving now, on a notice \((.+)\)$/, "1 台が通知により出発中です（$1）"],
  [
    /^(\d+) nodes are leaving now, (?:both|all) on a notice \((.+?)(?: and (\d+) more)?\)$/,
    "$1 台がすべて通知により出発中です: $2[ ほか $3 台]",
  ],
  [
    /^(\d+) nodes? (?:is|are) leaving now(?:, (\d+) of them on a notice)? \((.+?)(?: and (\d+) more)?\)$/,
    "$1 台が出発中です[（うち $2 台は通知による）]: $3[ ほか $4 台]",
  ],
  [/^1 node is on hold(?: since (\S+))? \((.+)\)$/, "1 台が[ $1 から]保留中です: $2"],
  [
    /^(\d+) nodes? (?:is|are) on hold(?:(?:, the longest)? since (\S+))? \((.+?)(?: and (\d+) more)?\)$/,
    "$1 台が保留中です[（最も長いものは $2 から）]: $3[ ほか $4 台]",
  ],
  [/^(\S+) leads$/, "$1 がリーダーです"],
  [
    /^No controller leads and nothing starts: (\S+) has not renewed its Lease(?: since (\S+))?$/,
    "リーダーのコントローラーがなく、何も始まりません: $1 は Lease を更新していません[（最後は $2）]",
  ],
  [
    /^Nobody holds the Lease: no controller runs, or it runs without leader election$/,
    "Lease の保持者がいません。コントローラーが動いていないか、リーダー選出なしで動いています",
  ],
  [
    /^Whether a controller leads may not be read$/,
    "コントローラーの状態を読み取る権限がありません",
  ],
  [
    /^The agent is installed, and fits on no node$/,
    "エージェントはインストール済みですが、対象のノードがありません",
  ],
  [/^(\d+) of (\d+) (?:is|are) ready$/, "$2 台中 $1 台が準備完了です"],
  [
    /^(\d+) of (\d+) (?:is|are) ready: a notice may be missed$/,
    "$2 台中 $1 台が準備完了です。通知を逃すおそれがあります",
  ],
  [/^There is no agent$/, "エージェントがありません"],
  [/^Whether agents are ready may not be read$/, "エージェントの状態を読み取る権限がありません"],
];
