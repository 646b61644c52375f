import type { NodeDeparture, PodRecord } from "../../board/node-page.ts";
import type { PodLoss } from "../../board/stream.ts";
import type { PodLine } from "../../core/drain-plan/drain-plan-report.ts";
import { Loss } from "../past-list.tsx";
import type { VNode } from "../preact.ts";
import type { PageView } from "../view-state.ts";
import { momentText, secondsText } from "../words/format.ts";
import { DrainRow, DrainTable, shareOf } from "./drain-clock.tsx";

interface HappenedProps {
  readonly view: PageView;
  readonly departure: NodeDeparture;
}

/** What each pod was to get, outlined, and what it took, filled, on the clock of the drain. */
export function Happened({ view, departure }: HappenedProps): VNode | null {
  const { words, now, language } = view;
  const { record, past } = departure;
  if (record === null) return null;
  const { beganAt, plan, pods } = record;
  const until = past?.endedAt ?? now;
  const since = (at: number): number => Math.max(0, (at - beganAt) / 1000);
  const ends = pods.map(({ toldAt, goneAt }) =>
    since(goneAt ?? (toldAt === null ? beganAt : until)),
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
  /** Of what has not ended. */
  readonly until: number;
}

function HappenedBar({ view, pod, record, loss, most, since, until }: HappenedBarProps): VNode {
  const { words, language } = view;
  const { toldAt = null, goneAt = null } = record ?? {};
  const start = toldAt === null ? 0 : since(toldAt);
  const took = toldAt === null ? 0 : since(goneAt ?? until) - start;
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
          {toldAt === null ? null : (
            <i
              class={goneAt === null ? "took going" : loss === undefined ? "took" : "took lost"}
              style={{ left: share(start), width: share(took) }}
            />
          )}
        </>
      }
      count={toldAt === null ? "–" : secondsText(Math.round(took), language)}
    >
      <span class="why">
        {planned}
        {toldAt === null ? ` · ${words.notTold}` : ""}
        {toldAt !== null && goneAt === null ? ` · ${words.stillThere}` : ""}
      </span>
      {loss === undefined ? null : <Loss view={view} loss={loss} />}
    </DrainRow>
  );
}
