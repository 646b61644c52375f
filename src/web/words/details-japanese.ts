/** What stands within other sentences: what a budget lets leave, and why a fleet is unhealthy. */
export const details: readonly (readonly [english: RegExp, japanese: string])[] = [
  [
    /^(\d+) of (\d+) nodes of the policy (\S+) are not Ready$/,
    "ポリシー $3 の $2 台中 $1 台が Ready でない",
  ],
  [
    /^(\d+) of (\d+) nodes of the cluster are not Ready$/,
    "クラスタの $2 台中 $1 台が Ready でない",
  ],
  [
    /^nothing has replaced (\S+) since ([^\s,]+)(?:, and (\d+) more)?$/,
    "$2 から $1[ ほか $3 台]の代わりがない",
  ],
  [
    /^(\S+), whose value (".*") cannot be read \((?:(\S+)\? )?expected "true", 4h or (\S+)\)$/,
    '$1（値 $2 は読み取れません[（$3 ですか）]。"true"、4h、$4 などと書きます）',
  ],
  [
    /^(\S+: ".*"), which cannot be read \((?:(\S+)\? )?expected "true" or 2h\)$/,
    '$1（読み取れません[（$2 ですか）]。"true"、2h などと書きます）',
  ],
  [/^(\d+) an hour$/, "一時間に $1 台"],
  [/^(\d+) nodes? at once$/, "同時に $1 台"],
  [/^(\d+ %) of nodes at once$/, "同時に $1 のノード"],
  [/^(\d+) nodes? at once in a zone$/, "ゾーンごとに同時に $1 台"],
  [/^(\d+ %) of nodes at once in a zone$/, "ゾーンごとに同時に $1 のノード"],
  [/^(\d+) nodes? at once in the cluster$/, "クラスタ全体で同時に $1 台"],
  [/^(\d+ %) of nodes at once in the cluster$/, "クラスタ全体で同時に $1 のノード"],
  [/^waves of ([\d, %]+)$/, "ウェーブ $1"],
];
