import type { NodePage, ShownDrain } from "../../board/node-page.ts";
import type { PodLine } from "../../core/drain-plan/drain-plan-report.ts";
import { useState, type VNode } from "../preact.ts";
import type { PageView } from "../view-state.ts";
import { spanText } from "../words/format.ts";

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
  const shown = drains.find(({ name }) => name === chosen) ?? drains[0];
  return (
    <div class="drain">
      <div class="choices" role="group" aria-label={words.drainPlan}>
        {drains.map(({ name }) => (
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
      {shown === undefined ? null : (
        <Plan view={view} drain={shown.drain} terminating={page.terminating} />
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
      <table class="bars">
        <thead>
          <tr>
            <th scope="col">{words.pod}</th>
            <th scope="col" class="track">
              <Ruler view={view} most={most} />
            </th>
            <th scope="col" class="number">
              {words.grace}
            </th>
          </tr>
        </thead>
        <tbody>
          {pods.map((pod) => (
            <Bar
              key={pod.uid}
              view={view}
              pod={pod}
              most={most}
              isTerminating={terminating.includes(`${pod.namespace}/${pod.name}`)}
            />
          ))}
        </tbody>
      </table>
      {skipped.length === 0 ? null : <p class="dim">{words.skippedPods(skipped.length)}</p>}
      {warnings.length === 0 ? null : (
        <details>
          <summary>
            {words.warnings} <span class="count">{warnings.length}</span>
          </summary>
          <ul class="warnings">
            {warnings.map(({ namespace, name, explain, reason }) => (
              <li key={`${namespace}/${name} ${reason}`} dir="auto">
                {namespace}/{name} {explain}.
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
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

interface BarProps {
  readonly view: PageView;
  readonly pod: PodLine;
  readonly most: number;
  readonly isTerminating: boolean;
}

function Bar({ view, pod, most, isTerminating }: BarProps): VNode {
  const { words } = view;
  const share = (seconds: number): string =>
    `${Math.min(100, Math.max(0, (100 * seconds) / most))}%`;
  const { startSeconds, graceSeconds, wantedGraceSeconds, forceAtSeconds, action, cut } = pod;
  const isHeld = action === "Block" || action === "Wait";
  const given = Math.min(graceSeconds, most - startSeconds);
  return (
    <tr title={`${pod.namespace}/${pod.name} ${pod.explain}`}>
      <td class="pod">
        <span class="tier" title={words.tier}>
          {pod.tier}
        </span>
        <span dir="auto">{pod.name}</span>
        <span class="dim">{pod.namespace}</span>
      </td>
      <td class="track">
        <span class="lane">
          <i
            class="asked"
            style={{ left: share(startSeconds), width: share(wantedGraceSeconds) }}
          />
          <i
            class={["given", cut ? "cut" : "", isHeld ? "held" : "", isTerminating ? "going" : ""]
              .filter(Boolean)
              .join(" ")}
            style={{ left: share(startSeconds), width: share(given) }}
          />
          {forceAtSeconds === null || !isHeld ? null : (
            <i class="force" style={{ left: share(forceAtSeconds) }} />
          )}
        </span>
        <span class="why" dir="auto">
          {pod.explain}
        </span>
      </td>
      <td class="number">
        {cut ? (
          <span class="held">{words.graceOf(graceSeconds, wantedGraceSeconds)}</span>
        ) : (
          `${graceSeconds} s`
        )}
      </td>
    </tr>
  );
}
