import { describe, expect, it } from "vitest";
import { type DrainReason, drainReasons } from "../../src/core/departure/drain-reason.ts";
import { explainDrain } from "../../src/core/drain-plan/drain-plan-report.ts";
import { explainPlan } from "../../src/core/plan/plan-report.ts";
import { inEnglish, type Sentence } from "../../src/core/reason/english.ts";
import { englishNotPlanned } from "../../src/core/reason/english-plan.ts";
import { explain, reasons } from "../../src/core/reason/reason.ts";
import { formatInstant, hours, instant, minutes, plus } from "../../src/core/time/time.ts";
import { translated } from "../../src/web/words/translated.ts";

const at = instant(Date.UTC(2026, 10, 20, 9, 30));
const japanese = (text: string): string => translated(text, "ja");
/** Words of Kubernetes and of Lastcall's resources that are not translated. */
const kept =
  /DaemonSet|DisruptionTarget|Departure|WaitCompleted|Alertmanager|Allow|Proceed|Block|Skip|Delete|podRule|--action-hosts|gates\.alerts\.url|kubelet|providerID|cordon|emptyDir|hostPath|Node|Pod|API|lifetime\.max|spec\.hold|waves\.restartedAt|gce:\/\/|aws:\/\/\/|azure:\/\/\//g;

function englishIn(text: string, facts: readonly string[]): readonly string[] {
  let rest = text.replaceAll(kept, "");
  for (const fact of facts) rest = rest.replaceAll(fact, "");
  return rest.match(/[A-Za-z]{2,}/g) ?? [];
}

describe("in Japanese", () => {
  it.each(reasons)(
    "the sentence of %s has all the facts of the English one, and no English",
    (reason) => {
      for (const detail of [undefined, "web: 1 of 3"]) {
        for (const facts of [{}, { at, deadlineAt: at, until: at }]) {
          const english = explain(reason, { node: "n1", policy: "spot", detail, ...facts });
          const text = japanese(english);
          expect(text.startsWith("n1 ")).toBe(true);
          expect(text.endsWith("。")).toBe(true);
          expect(englishIn(text, ["spot", "web: 1 of 3", formatInstant(at)])).toEqual([]);
          for (const fact of ["spot", "web: 1 of 3", formatInstant(at)]) {
            expect([fact, text.includes(fact)]).toEqual([fact, english.includes(fact)]);
          }
        }
      }
    },
  );

  it.each(["Spaced", "Missed", "Overdue", "DeadlineBeatsWindow"] as const)(
    "the sentence of a node planned as %s does, too, with what moved it",
    (reason) => {
      for (const window of [null, "nights"]) {
        for (const bornFrom of ["Node", "Instance"] as const) {
          const facts = { node: "n1", policy: "spot", bornFrom, window };
          const times = { bornAt: at, earliestAt: at, deadlineAt: at, departAt: at };
          const movedFrom = plus(at, minutes(-7));
          const heldBackTo = plus(at, minutes(12));
          const text = japanese(explainPlan(reason, { ...facts, ...times, movedFrom, heldBackTo }));
          expect(
            englishIn(text, [
              "spot",
              "nights",
              "n1",
              "12m",
              formatInstant(at),
              formatInstant(movedFrom),
            ]),
          ).toEqual([]);
          expect(text).toContain(`${formatInstant(movedFrom)} から変更`);
          expect(text).toContain("約 12m 遅れる");
          expect(text.includes("nights")).toBe(window !== null && reason !== "DeadlineBeatsWindow");
        }
      }
    },
  );

  it.each(["Hold", "Rest"] as const)(
    "the sentence of a node without an allowed time does, too, because of its %s",
    (by) => {
      const untilAt = plus(at, hours(3));
      const facts = {
        node: "n1",
        policy: "spot",
        bornFrom: "Node",
        barrier: { by, untilAt },
      } as const;
      const times = { bornAt: at, earliestAt: at, deadlineAt: at, departAt: at };
      const text = japanese(explainPlan("DeadlineBeatsWindow", { ...facts, ...times }));
      expect(englishIn(text, ["n1", formatInstant(at), formatInstant(untilAt)])).toEqual([]);
      expect(text).toContain(`${formatInstant(untilAt)} まで`);
    },
  );

  it("the sentence of a node without a plan does, too, for each reason that has one", () => {
    for (const reason of Object.keys(englishNotPlanned) as (keyof typeof englishNotPlanned)[]) {
      const english = explainPlan(reason, { node: "n1", policy: "spot", detail: "by-karpenter" });
      const text = japanese(english);
      expect(englishIn(text, ["spot", "by-karpenter", "n1"])).toEqual([]);
      expect(text.includes("by-karpenter")).toBe(english.includes("by-karpenter"));
    }
  });

  it.each(drainReasons as readonly DrainReason[])(
    "the sentence of a pod with %s does, too",
    (reason) => {
      for (const facts of [
        { detail: "shop/web", graceSeconds: 12, wantedGraceSeconds: 60 },
        { detail: "shop/web", graceSeconds: 60, wantedGraceSeconds: 60 },
      ]) {
        const english = explainDrain(reason, facts);
        const text = japanese(english);
        expect(englishIn(text, ["shop/web"])).toEqual([]);
        expect(text.includes("12 秒")).toBe(english.includes("12 s"));
        expect(text.includes("shop/web")).toBe(english.includes("shop/web"));
      }
    },
  );

  it.each([
    ["All 18 departures are on schedule", "全 18 件の出発は予定どおりです"],
    [
      "There is no DeparturePolicy: no node is planned",
      "DeparturePolicy がないため、どのノードも計画されません",
    ],
    [
      "It cannot be read, and its 2 nodes stay: spec.x: found y",
      "読み取れないため、2 台のノードは残ります: spec.x: found y",
    ],
    [
      "The policy is paused: 12 nodes without a departure time",
      "ポリシーは一時停止中で、12 台のノードに出発時刻がありません",
    ],
    [
      "Frozen until 2026-11-20T09:30:00.000Z. All 3 departures are on schedule",
      "2026-11-20T09:30:00.000Z まで凍結中、全 3 件の出発は予定どおりです",
    ],
    ["n1 leaves at 2026-11-20T09:30:00.000Z", "n1 は 2026-11-20T09:30:00.000Z に出発します"],
    [
      "It selects no node: compare its nodeSelector with the labels of the nodes",
      "対象のノードがありません。nodeSelector とノードのラベルを比べてください",
    ],
    [
      "It applies to no node: policies of more weight or of an earlier name apply to the 2 nodes that it selects",
      "適用されるノードがありません。選択する 2 台には、weight がより大きいか名前がより前のポリシーが適用されます",
    ],
    ["No departure is ahead", "予定された出発はありません"],
    ["The departures cannot be read", "出発を読み取れません"],
    [
      "2 nodes are leaving now, 1 of them on a notice (n1, n2)",
      "2 台が出発中です（うち 1 台は通知による）: n1, n2",
    ],
    ["1 node is on hold (n1)", "1 台が保留中です: n1"],
    [
      "1 node is on hold since 2026-11-20T09:30:00.000Z (n1)",
      "1 台が 2026-11-20T09:30:00.000Z から保留中です: n1",
    ],
    [
      "2 nodes are on hold until 2026-11-20T09:30:00.000Z (n1, n2)",
      "2 台が 2026-11-20T09:30:00.000Z まで保留中です: n1, n2",
    ],
    [
      "2 nodes are on hold, the longest since 2026-11-20T09:30:00.000Z (n1, n2)",
      "2 台が保留中です（最も長いものは 2026-11-20T09:30:00.000Z から）: n1, n2",
    ],
    [
      "11 nodes are on hold, the longest since 2026-11-20T09:30:00.000Z (n1, n2, n3 and 8 more)",
      "11 台が保留中です（最も長いものは 2026-11-20T09:30:00.000Z から）: n1, n2, n3 ほか 8 台",
    ],
    [
      "5 nodes are leaving now, 1 of them on a notice (n1, n2, n3 and 2 more)",
      "5 台が出発中です（うち 1 台は通知による）: n1, n2, n3 ほか 2 台",
    ],
    ["1 node is leaving now, on a notice (n1)", "1 台が通知により出発中です（n1）"],
    [
      "5 nodes are leaving now, all on a notice (n1, n2, n3 and 2 more)",
      "5 台がすべて通知により出発中です: n1, n2, n3 ほか 2 台",
    ],
    ["lastcall-1 leads", "lastcall-1 がリーダーです"],
    [
      "11 of 12 are ready: a notice may be missed",
      "12 台中 11 台が準備完了です。通知を逃すおそれがあります",
    ],
    ["Whether agents are ready may not be read", "エージェントの状態を読み取る権限がありません"],
    [
      "16 of 18 departures are on schedule, 2 departures are held back",
      "18 件中 16 件の出発は予定どおりで、2 件は保留されています",
    ],
    ["The departure is held back", "出発は保留されています"],
    ["All 3 departures are held back", "全 3 件の出発が保留されています"],
    [
      "2 of 3 departures are late; 1 departure is held back",
      "3 件中 2 件の出発が遅れます、1 件の出発が保留されています",
    ],
    [
      "Dry run: 1 departure would be on schedule, and no node leaves",
      "ドライラン: 1 件の出発は予定どおりのはずですが、どのノードも出発しません",
    ],
    [
      "Dry run: 2 of 6 departures would be late, and no node leaves",
      "ドライラン: 6 件中 2 件の出発が遅れるはずですが、どのノードも出発しません",
    ],
    [
      "2 of 3 departures are late; every Allow window would have to end 1h later",
      "3 件中 2 件の出発が遅れます、すべての Allow の時間帯が 1h 長く開く必要があります",
    ],
    [
      "budgets hold back 2 departures past the deadline: 1 node at once in a zone; 2 nodes would hold none back",
      "予算のため 2 件の出発が期限を過ぎて遅れます: ゾーンごとに同時に 1 台、2 台なら遅れません",
    ],
    [
      "budgets hold back 2 departures, 1 of them past the deadline: 1 node at once; 2 nodes would hold none back",
      "予算のため 2 件の出発が遅れます（うち 1 件は期限後）: 同時に 1 台、2 台なら遅れません",
    ],
    [
      "The only departure cannot start: no permission",
      "ただ一件の出発を開始できません: no permission",
    ],
    [
      "n1 is drained: 3 pods in 8 s, planned within 62 s, none with a truncated grace period (planned: 1), 2 forced.",
      "n1 のドレインが完了しました: 3 個の Pod が 8 秒で退避（計画は 62 秒以内）、計画の短縮 1、強制 2。",
    ],
    [
      "n1 is drained: no pods to evict.",
      "n1 のドレインが完了しました: 退避する Pod はありませんでした。",
    ],
    [
      "n1 is draining, blocked by shop/web-0: is not evicted, because a podRule of the policy says Block; shop/db-0: The disruption budget db needs 2 healthy pods and has 2 currently; and 3 more pods.",
      "n1 はドレイン中で、ブロックされています: shop/web-0: ポリシーの podRule が Block のため退避されません、shop/db-0: The disruption budget db needs 2 healthy pods and has 2 currently、ほか 3 個の Pod。",
    ],
    [
      "Cannot list departures.lastcall.dev: it is not installed (run: lastcall setup crds --apply), expected the custom resource definition departures.lastcall.dev",
      "departures.lastcall.dev を読み取れません。インストールされていません（run: lastcall setup crds --apply）",
    ],
    [
      'Cannot watch nodes: forbidden (nodes is forbidden: User "eve" cannot watch resource), grant watch on nodes',
      'nodes を読み取れません。権限がありません（nodes is forbidden: User "eve" cannot watch resource）。必要な権限: watch on nodes',
    ],
    [
      "Cannot list nodes: the API server rejected the credentials (Unauthorized), check the kubeconfig or the service account",
      "nodes を読み取れません。API サーバーが認証情報を拒否しました（Unauthorized）",
    ],
    ["n1 leaves now", "n1 はすぐに出発します"],
    [
      "the freeze until 2026-11-20T09:30:00Z ends after the deadlines of 117 departures (n1, n2, n3 and 114 more), which leave at their deadlines",
      "117 件の出発は 2026-11-20T09:30:00Z までの凍結より期限が早く、期限に出発します（n1, n2, n3 ほか 114 件）",
    ],
    [
      "the freeze until 2026-11-20T09:30:00Z ends after the deadlines of 1 departure (n1), which leaves at its deadline",
      "1 件の出発は 2026-11-20T09:30:00Z までの凍結より期限が早く、期限に出発します（n1）",
    ],
    [
      "the freeze until 2026-11-20T09:30:00Z ends after the deadlines of 1 departure (n1), which would leave at its deadline",
      "1 件の出発は 2026-11-20T09:30:00Z までの凍結より期限が早く、期限に出発するはずです（n1）",
    ],
    [
      "n1 leaves at 2026-11-20T09:30:00Z, by 2026-11-20T10:30:00Z instead of the time requested earlier",
      "n1 は、前の依頼に代えて 2026-11-20T09:30:00Z に出発します（期限 2026-11-20T10:30:00Z）",
    ],
    ["Due: n1 is leaving now.", "n1 は出発中です。"],
    [
      "n1 stays, because its departure was cancelled: the node was uncordoned.",
      "n1 は出発が取り消されたため残ります: ノードの cordon が解除されました。",
    ],
    [
      "n1 was skipped, because nothing shows its machine to be the one of its departure: no Node n1 has the uid 0b5b2f0e, and it names no providerID.",
      "n1 はマシンが出発の対象と同じであると確認できないため対象外です: uid が 0b5b2f0e の Node n1 はなく、providerID の指定もありません。",
    ],
    ["previously planned for 2026-11-20T09:30:00.000Z", "もとの予定は 2026-11-20T09:30:00.000Z"],
  ])("%s is translated", (english, text) => {
    expect(japanese(english)).toBe(text);
  });

  it("every limit that holds departures back is named, with what would help", () => {
    const cures = [
      ["10 % of nodes at once in a zone", { says: "limit.CurePercent", percent: 40 }],
      ["2 an hour", { says: "limit.CurePerHour", perHour: 6 }],
      "waves of 1, 10 %",
    ] as const;
    const who: Sentence = { says: "limit.BudgetsAndWaves" };
    const said: Sentence = { says: "fleet.HeldByLimits", who, departures: 9, cures };
    expect(inEnglish(said)).toBe(
      "budgets and waves hold back 9 departures: 10 % of nodes at once in a zone; 40 % would hold none back, 2 an hour; 6 an hour would hold none back, waves of 1, 10 %",
    );
    expect(translated(said, "ja")).toBe(
      "予算とウェーブのため 9 件の出発が遅れます: ゾーンごとに同時に 10 % のノード、40 % なら遅れません、一時間に 2 台、一時間に 6 台なら遅れません、ウェーブ 1, 10 %",
    );
  });

  it("text that does not come from core stays as it is", () => {
    for (const text of ["pods is forbidden", "", "<b>Due: x</b>", 'admission webhook "x" denied']) {
      expect(japanese(text)).toBe(text);
    }
  });
});

it("long text is not searched for a sentence of core", () => {
  const long = `n1 leaves at Z in the window ${", by the spacing of policy ".repeat(20_000)}`;
  expect(japanese(long)).toBe(long);
});

it("in English every sentence is core's own", () => {
  const text = explain("DrainDone", { node: "n1" });
  expect(translated(text, "en")).toBe(text);
});
