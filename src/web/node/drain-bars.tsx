import type { NodePage, ShownDrain } from "../../board/node-page.ts";
import type { PodLine } from "../../core/drain-plan/drain-plan-report.ts";
import { useState, type VNode } from "../preact.ts";
import type { PageView } from "../view-state.ts";
import { secondsText } from "../words/format.ts";
import { Sentence } from "../words/sentence.tsx";
import { DrainRow, DrainTable, shareOf } from "./drain-clock.tsx";
import { Happened } from "./happened.tsx";

/** The pods of a node as bars on the clock of its drain: one choice of notice at a time. */
export function DrainBars({
  view,
  page,
}: {
  readonly view: PageView;
  readonly page: NodePage;
}): VNode {
  const { words } = view;
  const [chosen, setChosen] = useState<string | undefined>(undefined);
  const drains = page.drains.map((drain) => ({ drain, name: nameOf(drain, view) }));
  const seen = page.departures.find(({ record }) => record !== null);
  // While it leaves, and when it is gone, that comes first; of a former node of the name last.
  const isFirst = seen?.isLive === true || drains.length === 0;
  const happened = seen === undefined ? [] : [{ drain: undefined, name: words.drainHappened }];
  const all = isFirst ? [...happened, ...drains] : [...drains, ...happened];
  const shown = all.find(({ name }) => name === chosen) ?? all[0];
  return (
    <div class="drain">
      <div class="choices" role="group" aria-label={words.drainPlan}>
        {all.map(({ name }) => (
          <button
            key={name}
            type="button"
            aria-pressed={name === shown?.name}
            onClick={() => setChosen(name)}
          >
            {name}
          </button>
        ))}
      </div>
      {shown?.drain === undefined ? null : (
        <Plan view={view} drain={shown.drain} terminating={page.terminating} />
      )}
      {seen === undefined || shown === undefined || shown.drain !== undefined ? null : (
        <Happened view={view} departure={seen} />
      )}
    </div>
  );
}

function nameOf({ kind, plan }: ShownDrain, { words }: PageView): string {
  if (kind === "Planned") return words.drainPlanned;
  return kind === "Running" ? words.drainRunning : words.drainNotice(plan.noticeSeconds ?? 0);
}

interface PlanProps {
  readonly view: PageView;
  readonly drain: ShownDrain;
  readonly terminating: readonly string[];
}

function Plan({ view, drain: { plan }, terminating }: PlanProps): VNode {
  const { words } = view;
  const { pods, skipped, warnings, noticeSeconds } = plan;
  if (pods.length === 0) return <p class="empty">{words.noPods}</p>;
  const ends = pods.map((pod) => pod.startSeconds + pod.wantedGraceSeconds);
  const most = noticeSeconds ?? Math.max(1, ...ends);
  return (
    <>
      <DrainTable view={view} most={most} counted={words.grace}>
        {pods.map((pod) => (
          <Bar
            key={pod.uid}
            view={view}
            pod={pod}
            most={most}
            isTerminating={terminating.includes(`${pod.namespace}/${pod.name}`)}
          />
        ))}
      </DrainTable>
      {skipped.length === 0 ? null : <p class="dim">{words.skippedPods(skipped.length)}</p>}
      {warnings.length === 0 ? null : (
        <details>
          <summary>
            {words.warnings} <span class="count">{warnings.length}</span>
          </summary>
          <ul class="warnings">
            {warnings.map(({ namespace, name, explain, reason }) => (
              <li key={`${namespace}/${name} ${reason}`} dir="auto">
                {namespace}/{name} <Sentence view={view} text={`${explain}.`} class="" />
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}

interface BarProps {
  readonly view: PageView;
  readonly pod: PodLine;
  readonly most: number;
  readonly isTerminating: boolean;
}

function Bar({ view, pod, most, isTerminating }: BarProps): VNode {
  const { words, language } = view;
  const share = (seconds: number): string => shareOf(seconds, most);
  /** What lies past the end of the clock is not drawn. */
  const within = (seconds: number): string => share(Math.min(seconds, most - startSeconds));
  const { startSeconds, graceSeconds, wantedGraceSeconds, forceAtSeconds, action, cut } = pod;
  const isHeld = action === "Block" || action === "Wait";
  const isOpen = startSeconds + wantedGraceSeconds > most;
  return (
    <DrainRow
      pod={pod}
      bars={
        <>
          <i
            class={isOpen ? "asked open" : "asked"}
            style={{ left: share(startSeconds), width: within(wantedGraceSeconds) }}
          />
          <i
            class={["given", cut ? "cut" : "", isHeld ? "held" : "", isTerminating ? "going" : ""]
              .filter(Boolean)
              .join(" ")}
            style={{ left: share(startSeconds), width: within(graceSeconds) }}
          />
          {forceAtSeconds === null || !isHeld ? null : (
            <i class="force" style={{ left: share(forceAtSeconds) }} />
          )}
        </>
      }
      count={
        cut ? (
          <span class="held">{words.graceOf(graceSeconds, wantedGraceSeconds)}</span>
        ) : (
          secondsText(graceSeconds, language)
        )
      }
    >
      <Sentence view={view} text={pod.explain} />
    </DrainRow>
  );
}
