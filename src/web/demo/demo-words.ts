import { type Story, storyText } from "../../board/demo-picture.ts";
import { counted } from "../../core/reason/counted.ts";
import { instant } from "../../core/time/time.ts";
import { type Language, spanText } from "../words/time-text.ts";

const english = {
  title: "One fate, two fleets",
  withLastcall: "With Lastcall",
  without: "Without Lastcall",
  machines: "Nodes",
  machinesHelp: "A bar is a node's age, full at 24 h. × interrupted by the cloud, ↓ leaving",
  lostAtLimit: "Lost at 24 h",
  lostAtLimitHelp: "Nodes that reached 24 h, where the cloud interrupts every one",
  lostAtOnce: "Lost at once",
  lostAtOnceHelp: "Most nodes that the cloud interrupted within one hour, early or at 24 h",
  podsKilled: "Pods killed",
  podsKilledHelp: "Killed before they had terminated",
  replacements: "Replacements",
  replacementsHelp: "Nodes launched to replace others: the cost",
  notice: "Notice",
  shutDown: "Shutting down",
  gone: "Gone",
  running: "running",
  unaware: "still running",
  terminating: (span: string) => `terminating for ${span}`,
  terminated: (span: string) => `terminated after ${span}`,
  killed: "killed",
  noPods: "no pods",
  noTwin: "Not interrupted here: another node is in its place",
  pause: "Pause",
  resume: "Resume",
  slower: "Slower",
  faster: "Faster",
  nextEvent: "Next event",
  interrupt: "Interrupt a node",
  keys: "Clock of the demo",
  paused: "Paused",
  pausedToRead: "Paused while you read about a node",
  moments: {
    Opening: "",
    Notice: "notice running",
    Aftermath: "shutdown",
    Departure: "departure running",
    Losses: "interruptions",
    Soon: "departure soon",
    Quiet: "",
    Skipping: "to the next event",
  },
  /** What a chart of machines shows. */
  machinesText: (atWork: number, lost: number, leaving: number) =>
    `${counted(atWork, "node")} at work, ${lost} interrupted, ${leaving} leaving`,
  /** Nodes without a bar. */
  more: (nodes: number) => `and ${nodes} more ${nodes === 1 ? "node" : "nodes"}`,
  story: (story: Story, now: number) => storyText(story, instant(now), (ms) => spanText(ms, "en")),
};

/** Texts of the demo's stage, which no other board needs. */
export type DemoWords = typeof english;

const japanese: DemoWords = {
  title: "同じ条件、二つのノード群",
  withLastcall: "Lastcall あり",
  without: "Lastcall なし",
  machines: "ノード",
  machinesHelp: "棒はノードの稼働時間（満杯で 24 時間）。× は中断、↓ は出発中",
  lostAtLimit: "24 時間で失ったノード",
  lostAtLimitHelp: "24 時間に達し、クラウドに中断されたノード",
  lostAtOnce: "同時に失ったノード",
  lostAtOnceHelp: "一時間以内にクラウドが中断したノードの最大数（早期の中断も含む）",
  podsKilled: "強制終了された Pod",
  podsKilledHelp: "終了処理が済む前に止められた Pod",
  replacements: "置き換え",
  replacementsHelp: "出発したノードの代わりに起動したノード（費用にあたる）",
  notice: "通知",
  shutDown: "シャットダウン中",
  gone: "停止済み",
  running: "実行中",
  unaware: "実行中のまま",
  terminating: (span) => `終了処理中 ${span}`,
  terminated: (span) => `${span}で終了`,
  killed: "強制終了",
  noPods: "Pod なし",
  noTwin: "こちらでは中断されない（別のノードに替わっている）",
  pause: "一時停止",
  resume: "再開",
  slower: "遅く",
  faster: "速く",
  nextEvent: "次の出来事",
  interrupt: "ノードを中断",
  keys: "デモの時計",
  paused: "一時停止中",
  pausedToRead: "ノードのページを開いている間、一時停止中",
  moments: {
    Opening: "",
    Notice: "通知中",
    Aftermath: "シャットダウン",
    Departure: "出発中",
    Losses: "中断",
    Soon: "まもなく出発",
    Quiet: "",
    Skipping: "次の出来事へ",
  },
  machinesText: (atWork, lost, leaving) => `稼働中 ${atWork}、中断 ${lost}、出発中 ${leaving}`,
  more: (nodes) => `ほか ${nodes} 台`,
  story: japaneseStory,
};

function japaneseStory(story: Story, now: number): string {
  const span = (at: number): string => spanText(at - now, "ja");
  switch (story.kind) {
    case "Together":
      return `Spot ノード ${story.nodes} 台ずつ、同時に起動した二つのノード群。24 時間（あと${span(story.limitAt)}）で、残っているノードはすべてクラウドに中断される。Lastcall ありでは、その前に一台ずつ退避する。`;
    case "Notice":
      return `クラウドが両方の ${story.node} を中断する。Lastcall ありでは通知の間に Pod が退避し、なしではシャットダウンまで動き続ける。`;
    case "NoticeOver":
      return `${story.node} は停止した。強制終了された Pod は、Lastcall なしで ${story.podsKilledWithout}、ありで ${story.podsKilled}（全 ${story.pods}）。`;
    case "OneByOne":
      return `Lastcall ありではノードが一台ずつ退避して置き換わる（残り ${story.nodesLeft}／${story.nodes}）。なしでは残りの台が 24 時間を待つ。あと${span(story.limitAt)}。`;
    case "Limit":
      return `24 時間。Lastcall なしではクラウドが次々に中断し、一時間以内に ${story.nodesLost} 台。Lastcall ありで残っていたのは ${story.nodesLeft} 台。`;
    case "Result":
      return `24 時間で失ったノードは、Lastcall なしで ${story.without.lostAtLimit} 台、ありで ${story.withLastcall.lostAtLimit} 台。一時間以内に失った最大数は、早期の中断も含めて ${story.without.lostAtOnce} 台と ${story.withLastcall.lostAtOnce} 台。強制終了された Pod は ${story.without.podsKilled} と ${story.withLastcall.podsKilled}。`;
  }
}

export const demoWords: Readonly<Record<Language, DemoWords>> = { en: english, ja: japanese };
