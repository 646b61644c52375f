import type { VNode } from "../preact.ts";
import type { DemoWords } from "./demo-words.ts";

interface MachineBar {
  readonly name: string;
  readonly bornAt: number | undefined;
  readonly state: "Working" | "Leaving" | "Taken" | "Gone" | "Booting";
}

interface BarsProps {
  readonly words: DemoWords;
  readonly now: number;
  readonly bars: readonly MachineBar[];
}

const lifeMs = 24 * 3_600_000;
const [step, width, height] = [10, 8, 40];

/** A bar a machine, as high as it is old; the shapes say by themselves what the colours say. */
export function MachineBars({ words, now, bars }: BarsProps): VNode {
  const inOrder = bars.toSorted((a, b) => (a.name < b.name ? -1 : 1));
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
      {inOrder.map((bar, place) => (
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
