/** The common parts of all charts of a drain: the time axis above, and a pod next to each bar. */

import type { NodeDeparture, NodePage, PodRecord, ShownDrain } from "../../board/node-page.ts";
import type { PodLoss } from "../../board/stream.ts";
import type { PodLine, RemarkLine } from "../../core/drain-plan/drain-plan-report.ts";
import { type ComponentChildren, useState, type VNode } from "../preact.ts";
import { Loss } from "../row-list.tsx";
import type { PageView } from "../view-state.ts";
import { Sentence } from "../words/sentence.tsx";
import { momentText, secondsText, spanText } from "../words/time-text.ts";

interface DrainTableProps {
  readonly view: PageView;
  /** The seconds of the axis. */
  readonly most: number;
  /** What the last column counts. */
  readonly counted: string;
  readonly children: ComponentChildren;
}

function DrainTable({ view, most, counted, children }: DrainTableProps): VNode {
  const { words } = view;
  return (
    <table class="bars">
      <thead>
        <tr>
          <th scope="col">
            {words.tier} · {words.pod}
          </th>
          <th scope="col" class="track">
            <Ruler view={view} most={most} />
          </th>
          <th scope="col" class="number">
            {counted}
          </th>
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  );
}

interface DrainRowProps {
  readonly pod: PodLine;
  readonly bars: ComponentChildren;
  /** In the last column. */
  readonly count: ComponentChildren;
  /** The legend below the bars. */
  readonly children: ComponentChildren;
}

function DrainRow({ pod, bars, count, children }: DrainRowProps): VNode {
  return (
    <tr>
      <td class="pod">
        <span class="tier">{pod.tier}</span>
        <span dir="auto">{pod.name}</span>
        <span class="dim">{pod.namespace}</span>
      </td>
      <td class="track">
        <span class="lane">{bars}</span>
        {children}
      </td>
      <td class="number">{count}</td>
    </tr>
  );
}

function Ruler({ view, most }: { readonly view: PageView; readonly most: number }): VNode {
  const { language } = view;
  return (
    <span class="ruler">
      {[0, 0.25, 0.5, 0.75, 1].map((share) => (
        <span key={share} style={{ left: `${share * 100}%` }}>
          {spanText(share * most * 1000, language)}
        </span>
      ))}
    </span>
  );
}

/** As shares of the axis. */
function shareOf(seconds: number, most: number): string {
  return `${Math.min(100, Math.max(0, (100 * seconds) / most))}%`;
}

interface HappenedProps {
  readonly view: PageView;
  readonly departure: NodeDeparture;
}

/** What each pod was to get (outlined) and what it took (filled), on the time axis of the drain. */
function Happened({ view, departure }: HappenedProps): VNode | null {
  const { words, now, language } = view;
  const { record, past } = departure;
  if (record === null) return null;
  const { beganAt, plan, pods } = record;
  const until = past?.endedAt ?? now;
  const since = (at: number): number => Math.max(0, (at - beganAt) / 1000);
  const ends = pods.map(({ terminatingAt, goneAt }) =>
    since(goneAt ?? (terminatingAt === null ? beganAt : until)),
  );
  const planned = plan.pods.map((pod) => pod.startSeconds + pod.graceSeconds);
  const most = Math.max(1, plan.noticeSeconds ?? 0, ...ends, ...planned);
  const records = new Map(pods.map((pod) => [pod.uid, pod]));
  const losses = new Map(past?.losses.map((loss) => [loss.pod, loss]));
  return (
    <>
      <p class="dim">{words.happenedSince(momentText(beganAt, now, language))}</p>
      <DrainTable view={view} most={most} counted={words.took}>
        {plan.pods.map((pod) => (
          <HappenedBar
            key={pod.uid}
            {...{ view, pod, most, since, until }}
            record={records.get(pod.uid)}
            loss={losses.get(`${pod.namespace}/${pod.name}`)}
          />
        ))}
      </DrainTable>
    </>
  );
}

interface HappenedBarProps {
  readonly view: PageView;
  readonly pod: PodLine;
  readonly record: PodRecord | undefined;
  readonly loss: PodLoss | undefined;
  readonly most: number;
  readonly since: (at: number) => number;
  /** For pods that have not ended. */
  readonly until: number;
}

function HappenedBar({ view, pod, record, loss, most, since, until }: HappenedBarProps): VNode {
  const { words, language } = view;
  const { terminatingAt = null, goneAt = null } = record ?? {};
  const start = terminatingAt === null ? 0 : since(terminatingAt);
  const took = terminatingAt === null ? 0 : since(goneAt ?? until) - start;
  const share = (seconds: number): string => shareOf(seconds, most);
  const planned = words.plannedGrace(
    secondsText(pod.startSeconds, language),
    secondsText(pod.graceSeconds, language),
  );
  return (
    <DrainRow
      pod={pod}
      bars={
        <>
          <i
            class="asked"
            style={{ left: share(pod.startSeconds), width: share(pod.graceSeconds) }}
          />
          {terminatingAt === null ? null : (
            <i
              class={goneAt === null ? "took going" : loss === undefined ? "took" : "took lost"}
              style={{ left: share(start), width: share(took) }}
            />
          )}
        </>
      }
      count={terminatingAt === null ? "–" : secondsText(Math.round(took), language)}
    >
      <span class="why">
        {planned}
        {terminatingAt === null ? ` · ${words.notTold}` : ""}
        {terminatingAt !== null && goneAt === null ? ` · ${words.stillThere}` : ""}
      </span>
      {loss === undefined ? null : <Loss view={view} loss={loss} />}
    </DrainRow>
  );
}

/** The pods of a node as bars on the time axis of its drain, for one choice of notice at a time. */
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
  // While the node leaves and after it has gone, that departure comes first, and those of earlier
  // nodes with its name last.
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
  if (pods.length === 0) {
    return (
      <>
        <p class="empty">{words.noPods}</p>
        <Remarks view={view} title={words.skippedPods(skipped.length)} remarks={skipped} />
      </>
    );
  }
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
      <Tiers view={view} pods={pods} />
      <Remarks view={view} title={words.skippedPods(skipped.length)} remarks={skipped} />
      <Remarks view={view} title={`${words.warnings} ${warnings.length}`} remarks={warnings} />
    </>
  );
}

/** What the numbers of the tiers mean that occur. */
function Tiers({ view: { words }, pods }: { view: PageView; pods: readonly PodLine[] }): VNode {
  const found = [...new Set(pods.map(({ tier }) => tier))].toSorted((a, b) => a - b);
  return (
    <dl class="tiers">
      <dt class="dim">{words.tierOrder}</dt>
      {found.map((tier) => (
        <dd key={tier}>
          <span class="tier">{tier}</span>
          {words.tiers[tier] ?? ""}
        </dd>
      ))}
    </dl>
  );
}

interface RemarksProps {
  readonly view: PageView;
  readonly title: string;
  readonly remarks: readonly RemarkLine[];
}

function Remarks({ view, title, remarks }: RemarksProps): VNode | null {
  if (remarks.length === 0) return null;
  return (
    <details>
      <summary>{title}</summary>
      <ul class="warnings">
        {remarks.map(({ namespace, name, explain, reason }) => (
          <li key={`${namespace}/${name} ${reason}`} dir="auto">
            {namespace}/{name} <Sentence view={view} text={`${explain}.`} class="" />
          </li>
        ))}
      </ul>
    </details>
  );
}

interface DrainBarProps {
  readonly view: PageView;
  readonly pod: PodLine;
  readonly most: number;
  readonly isTerminating: boolean;
}

function Bar({ view, pod, most, isTerminating }: DrainBarProps): VNode {
  const { words, language } = view;
  const share = (seconds: number): string => shareOf(seconds, most);
  /** Anything beyond the end of the axis is not drawn. */
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
