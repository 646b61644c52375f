import type { BoardNode, BoardNotice, BoardPod, DemoPicture } from "../../board/demo-picture.ts";
import type { FleetFigures } from "../../board/stream.ts";
import type { VNode } from "../preact.ts";
import type { PageView } from "../view-state.ts";
import { countdown, spanText } from "../words/format.ts";
import { type DemoWords, demoWords } from "./demo-words.ts";
import { MachineBars } from "./machine-bars.tsx";
import { pressKey, useDemo, useDemoKeys } from "./use-demo.ts";

interface Shown {
  readonly view: PageView;
  readonly words: DemoWords;
  readonly picture: DemoPicture;
}

/** What the demo is there to show: one fate, of a fleet without Lastcall and of one with it. */
export function DemoStage({ view }: { readonly view: PageView }): VNode {
  const picture = useDemo();
  const words = demoWords[view.language];
  useDemoKeys();
  return (
    <section class="stage" aria-labelledby="stage">
      <h2 id="stage">{words.title}</h2>
      {picture === undefined ? null : (
        <>
          <p class="story">{words.story(picture.story, picture.now)}</p>
          <Controls view={view} words={words} picture={picture} />
          <Fleets view={view} words={words} picture={picture} />
        </>
      )}
    </section>
  );
}

function Controls({ words, picture: { paused, speed, moment } }: Shown): VNode {
  const rounded = speed < 10 ? Math.round(speed * 10) / 10 : Math.round(speed);
  const why = words.moments[moment];
  const text = paused ? words.paused : `${rounded}×${why === "" ? "" : ` · ${why}`}`;
  return (
    <div class="stage-keys" role="group" aria-label={words.keys}>
      <button type="button" onClick={() => pressKey("Pause")}>
        {paused ? words.resume : words.pause} <kbd>space</kbd>
      </button>
      <button type="button" onClick={() => pressKey("Slower")}>
        {words.slower} <kbd>−</kbd>
      </button>
      <button type="button" onClick={() => pressKey("Faster")}>
        {words.faster} <kbd>+</kbd>
      </button>
      <button type="button" onClick={() => pressKey("NextEvent")}>
        {words.nextEvent} <kbd>n</kbd>
      </button>
      <button type="button" onClick={() => pressKey("Interrupt")}>
        {words.interrupt} <kbd>i</kbd>
      </button>
      <span class="stage-speed">{text}</span>
    </div>
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

function twinBar({ name, twin }: BoardNode) {
  const state = twin?.doing ?? "Gone";
  return { name, bornAt: twin?.bornAt, state } as const;
}

function nodeBar({ name, bornAt, doing: { kind } }: BoardNode) {
  const isLeaving = kind === "Draining" || kind === "Releasing";
  const isThere = kind === "Taken" || kind === "Gone" || kind === "Booting";
  return { name, bornAt, state: isLeaving ? "Leaving" : isThere ? kind : "Working" } as const;
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
 * The time from the notice until the power goes, filled from when the pod was told to terminate
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
