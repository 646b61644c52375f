import type {
  BoardNode,
  BoardNotice,
  BoardPod,
  DemoMachineState,
  DemoPicture,
} from "../../board/demo-picture.ts";
import type { FleetFigures } from "../../board/stream.ts";
import type { VNode } from "../preact.ts";
import type { PageView } from "../view-state.ts";
import { countdown, spanText } from "../words/time-text.ts";
import { type DemoWords, demoWords } from "./demo-words.ts";

interface MachineBar {
  readonly name: string;
  readonly bornAt: number | undefined;
  readonly state: DemoMachineState;
}

interface BarsProps {
  readonly words: DemoWords;
  readonly now: number;
  /** By name. */
  readonly bars: readonly MachineBar[];
}

const lifeMs = 24 * 3_600_000;
const [step, width, height] = [10, 8, 40];

/** One bar per machine, as high as its age; the shapes carry the same meaning as the colours. */
function MachineBars({ words, now, bars }: BarsProps): VNode {
  const counted = (...states: readonly MachineBar["state"][]): number =>
    bars.filter(({ state }) => states.includes(state)).length;
  return (
    <svg
      class="machines"
      viewBox={`0 0 ${bars.length * step} ${height}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={words.machinesText(
        counted("Working"),
        counted("Taken", "Gone"),
        counted("Leaving"),
      )}
    >
      {bars.map((bar, place) => (
        <g key={bar.name} transform={`translate(${place * step + 1} 0)`}>
          <Bar bar={bar} now={now} />
        </g>
      ))}
    </svg>
  );
}

function Bar({ bar: { bornAt, state }, now }: { bar: MachineBar; now: number }): VNode {
  if (state === "Taken" || state === "Gone") {
    return (
      <>
        <rect class="lost" width={width} height={height} />
        <path class="cross" d="M1 15 7 25M7 15 1 25" />
      </>
    );
  }
  const share = bornAt === undefined ? 0 : Math.max(0, Math.min(1, (now - bornAt) / lifeMs));
  const high = state === "Booting" ? 0 : Math.max(1.5, share * height);
  return (
    <>
      <rect class="room" width={width} height={height} />
      <rect
        class={state === "Leaving" ? "leaves" : "works"}
        y={height - high}
        width={width}
        height={high}
      />
      {state === "Leaving" ? <path class="arrow" d="M4 13V27M1 23 4 27 7 23" /> : null}
    </>
  );
}

interface Shown {
  readonly view: PageView;
  readonly words: DemoWords;
  readonly picture: DemoPicture;
}

/** The point of the demo: the same course of a fleet without Lastcall and with it. */
export function DemoStage({ view, picture }: Pick<Shown, "view" | "picture">): VNode {
  const words = demoWords[view.language];
  return (
    <section class="stage" aria-labelledby="stage">
      <h2 id="stage">{words.title}</h2>
      <p class="story">{words.story(picture.story, picture.now)}</p>
      <Fleets view={view} words={words} picture={picture} />
    </section>
  );
}

function Fleets(shown: Shown): VNode {
  const { words, picture } = shown;
  const { nodes, unseen = 0, without, withLastcall, notice } = picture;
  const help = unseen === 0 ? words.machinesHelp : `${words.machinesHelp} · ${words.more(unseen)}`;
  const promises: readonly (readonly [keyof FleetFigures, string, string])[] = [
    ["lostAtLimit", words.lostAtLimit, words.lostAtLimitHelp],
    ["lostAtOnce", words.lostAtOnce, words.lostAtOnceHelp],
    ["podsKilled", words.podsKilled, words.podsKilledHelp],
    ["replacements", words.replacements, words.replacementsHelp],
  ];
  return (
    <table class="fates">
      <thead>
        <tr>
          <td class="corner" />
          <th scope="col">{words.without}</th>
          <th scope="col">{words.withLastcall}</th>
        </tr>
      </thead>
      <tbody>
        <tr>
          <PromiseHead name={words.machines} help={help} />
          <td>
            <MachineBars words={words} now={picture.now} bars={nodes.map(twinBar)} />
          </td>
          <td>
            <MachineBars words={words} now={picture.now} bars={nodes.map(nodeBar)} />
          </td>
        </tr>
        {notice === undefined ? null : <NoticeRow {...shown} notice={notice} />}
        {promises.map(([figure, name, about]) => (
          <tr key={figure} class="promise">
            <PromiseHead name={name} help={about} />
            <td>{without[figure]}</td>
            <td class="good">{withLastcall[figure]}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function PromiseHead({ name, help }: { readonly name: string; readonly help: string }): VNode {
  return (
    <th scope="row">
      {name}
      <span class="dim">{help}</span>
    </th>
  );
}

function twinBar({ name, twin }: BoardNode): MachineBar {
  return { name, bornAt: twin?.bornAt, state: twin?.doing ?? "Gone" };
}

function nodeBar({ name, bornAt, doing }: BoardNode): MachineBar {
  return { name, bornAt, state: doing };
}

function NoticeRow({ view, words, picture, notice }: Shown & { notice: BoardNotice }): VNode {
  const { node, deadlineAt, goneAt, pods, twinPods } = notice;
  const leftMs = deadlineAt - picture.now;
  const state =
    goneAt === undefined ? (leftMs > 0 ? countdown(leftMs) : words.shutDown) : words.gone;
  const side = { view, words, picture, notice };
  return (
    <tr class="notice-row">
      <th scope="row">
        {words.notice} {node}
        <span class={leftMs > 0 ? "clock bad" : "bad"}>{state}</span>
      </th>
      <td>
        {twinPods === undefined ? (
          <span class="dim">{words.noTwin}</span>
        ) : (
          <Pods {...side} pods={twinPods} running={words.unaware} />
        )}
      </td>
      <td>
        <Pods {...side} pods={pods} running={words.running} />
      </td>
    </tr>
  );
}

interface Side extends Shown {
  readonly notice: BoardNotice;
  readonly pods: readonly BoardPod[];
  readonly running: string;
}

function Pods({ pods, ...side }: Side): VNode {
  if (pods.length === 0) return <span class="dim">{side.words.noPods}</span>;
  return (
    <ul class="pods">
      {pods.map((pod) => (
        <PodBar key={pod.name} {...side} pod={pod} />
      ))}
    </ul>
  );
}

/**
 * The time from the notice until the machine is off, filled from when the pod was told to terminate
 * until it had; the line is the shutdown.
 */
function PodBar({
  view,
  words,
  picture,
  notice,
  pod,
  running,
}: Omit<Side, "pods"> & { pod: BoardPod }) {
  const { noticedAt, deadlineAt } = notice;
  const { terminatingAt, endedAt, isKilled } = pod;
  const share = (at: number): number =>
    Math.max(0, Math.min(100, ((at - noticedAt) / ((deadlineAt - noticedAt) * 1.25)) * 100));
  const until = endedAt ?? Math.min(picture.now, notice.goneAt ?? picture.now);
  const start = share(terminatingAt ?? until);
  const isRunning = terminatingAt === undefined;
  const kind = isKilled ? "killed" : isRunning ? "runs" : endedAt === undefined ? "ends" : "ended";
  return (
    <li class={kind}>
      <span class="pod-name">{pod.name}</span>
      <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
        <rect class="track" width="100" height="10" />
        <rect class="before" width={start} height="10" />
        <rect class="fill" x={start} width={Math.max(0, share(until) - start)} height="10" />
        <rect class="deadline" x="80" width="0.6" height="10" />
      </svg>
      <span class="pod-state">{podText(pod, { view, words, now: picture.now, running })}</span>
    </li>
  );
}

function podText(
  { terminatingAt, endedAt, isKilled }: BoardPod,
  about: { view: PageView; words: DemoWords; now: number; running: string },
): string {
  const { view, words, now, running } = about;
  if (isKilled) return words.killed;
  if (terminatingAt === undefined) return running;
  const span = (until: number): string => spanText(until - terminatingAt, view.language);
  return endedAt === undefined ? words.terminating(span(now)) : words.terminated(span(endedAt));
}
