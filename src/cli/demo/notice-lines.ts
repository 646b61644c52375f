import type { BoardNotice, BoardPod } from "../../board/demo-picture.ts";
import { counted } from "../../core/reason/counted.ts";
import { between, type Instant } from "../../core/time/time.ts";
import {
  type Cell,
  cell,
  clipped,
  type StyledLine,
  shareBar,
  spanText,
  type Tone,
} from "../command-line/terminal.ts";

interface NoticeClock {
  readonly now: Instant;
  readonly notice: BoardNotice;
  readonly width: number;
}

/** With fewer columns only each pod's state fits, without a bar. */
const columnsForBars = 60;
/** Width of `terminated after 20s` and the space around it. */
const stateWidth = 25;

/**
 * A notice pod by pod: each line spans the time from the notice to the shutdown, and is filled from
 * when the pod was told to terminate until it had. Pods that still run come first if not all fit.
 */
export function noticeLines(
  notice: BoardNotice,
  at: { readonly now: Instant; readonly columns: number; readonly rows: number },
): readonly StyledLine[] {
  const hasBars = at.columns >= columnsForBars;
  const width = hasBars ? Math.max(8, Math.min(40, at.columns - 56)) : 0;
  const clock = { now: at.now, notice, width };
  const space = Math.max(1, at.rows - (notice.twinPods === undefined ? 1 : 2));
  const isWhole = notice.pods.length <= space;
  const pods = notice.pods.toSorted((a, b) => Number(hasEnded(a)) - Number(hasEnded(b)));
  const shown = isWhole ? notice.pods : pods.slice(0, space - 1);
  const longest = Math.max(0, ...notice.pods.map(({ name }) => name.length));
  const nameWidth = hasBars ? longest : Math.min(longest, at.columns - stateWidth);
  const rest = notice.pods.length - shown.length;
  return [
    headLine(clock),
    ...shown.map((pod) => podLine(pod, { ...clock, nameWidth })),
    ...(isWhole ? [] : [[cell(`   and ${rest} more`, "dim")]]),
    ...(notice.twinPods === undefined ? [] : [twinLine(notice.twinPods)]),
  ];
}

function headLine({ now, notice }: NoticeClock): StyledLine {
  const { node, deadlineAt, goneAt, pods } = notice;
  const leftMs = between(now, deadlineAt);
  const ended = pods.filter(hasEnded).length;
  const clock = goneAt !== undefined ? "is gone" : leftMs > 0 ? shutdownText(leftMs) : shuttingDown;
  return [
    cell(` NOTICE  ${node} ${clock}`, "bad"),
    cell(
      pods.length === 0 ? "   no pods" : `   ${ended} of ${counted(pods.length, "pod")} terminated`,
      ended === pods.length ? "good" : "plain",
    ),
  ];
}

const shuttingDown = "is shutting down";

function shutdownText(leftMs: number): string {
  return `shuts down in ${Math.ceil(leftMs / 1000)} s`;
}

function podLine(pod: BoardPod, clock: NoticeClock & { readonly nameWidth: number }): StyledLine {
  const { text, tone } = podState(pod, clock.now);
  const [name] = clipped([cell(pod.name)], clock.nameWidth);
  const more = pod.name.length > clock.nameWidth ? "…" : "";
  return [
    cell(`   ${`${name?.text ?? ""}${more}`.padEnd(clock.nameWidth)}  `),
    ...(clock.width === 0 ? [] : [...podBar(pod, { ...clock, tone }), cell("  ")]),
    cell(text, tone),
  ];
}

function podBar(
  { terminatingAt, endedAt }: BoardPod,
  { now, notice, width, tone }: NoticeClock & { readonly tone: Tone },
): readonly Cell[] {
  const spanMs = between(notice.noticedAt, notice.deadlineAt);
  const share = (at: Instant): number => between(notice.noticedAt, at) / spanMs;
  const start = terminatingAt === undefined ? 1 : Math.min(1, share(terminatingAt));
  const before = Math.floor(start * width);
  const length = terminatingAt === undefined ? 0 : share(endedAt ?? now) - start;
  const bar = shareBar((length * width) / Math.max(1, width - before), {
    ...{ width: width - before, tone },
  });
  return [cell("·".repeat(before), "dim"), ...bar];
}

function podState(
  { terminatingAt, endedAt, isKilled }: BoardPod,
  now: Instant,
): { text: string; tone: Tone } {
  if (isKilled) return { text: "killed", tone: "bad" };
  if (terminatingAt === undefined) return { text: "running", tone: "plain" };
  if (endedAt === undefined) {
    return { text: `terminating for ${spanText(between(terminatingAt, now))}`, tone: "accent" };
  }
  return { text: `terminated after ${spanText(between(terminatingAt, endedAt))}`, tone: "good" };
}

/** What happens to the same pods if nobody acts on the notice. */
function twinLine(pods: readonly BoardPod[]): StyledLine {
  const { text, tone } = twinState(pods);
  return [cell(`   without Lastcall: ${text}`, tone)];
}

function twinState(pods: readonly BoardPod[]): { readonly text: string; readonly tone: Tone } {
  const running = pods.filter(({ terminatingAt }) => terminatingAt === undefined).length;
  const killed = pods.filter(({ isKilled }) => isKilled).length;
  if (pods.length === 0) return { text: "no pods", tone: "plain" };
  if (running > 0) {
    const keep = running === 1 ? "1 pod keeps" : `${running} pods keep`;
    return { text: `${keep} running, unaware of the notice`, tone: "warn" };
  }
  if (killed > 0)
    return { text: `${killed} of ${counted(pods.length, "pod")} killed`, tone: "bad" };
  return pods.every(hasEnded)
    ? { text: "no pod killed", tone: "plain" }
    : { text: "the shutdown terminates its pods, with 15 s for all of them", tone: "warn" };
}

function hasEnded({ endedAt }: BoardPod): boolean {
  return endedAt !== undefined;
}
