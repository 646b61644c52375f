import type { SupposedPicture, WhatIfFacts } from "../../board/picture.ts";
import type { BoardRow, PolicyCard } from "../../board/stream.ts";
import { CopyButton } from "../act/act-buttons.tsx";
import { useEffect, useLayoutEffect, useMemo, useState, type VNode } from "../preact.ts";
import { PolicyStanding } from "../timeline/timeline-lane.tsx";
import { nodeLink, type PageView } from "../view-state.ts";
import { Sentence } from "../words/sentence.tsx";
import { momentText } from "../words/time-text.ts";
import { policyText, presentPicture, suppose, type WhatIfResult } from "./suppose.ts";

/** With more moved departures than this, the timeline shows them better. */
const mostMoved = 200;
const yamlId = "what-if-yaml";

export interface WhatIfProps {
  readonly view: PageView;
  readonly card: PolicyCard;
  /** Undefined if nothing is supposed. */
  readonly onSuppose: (supposed: SupposedPicture | undefined) => void;
}

/** The policy's text next to the timeline, and the plan that it would give. */
export function WhatIf(props: WhatIfProps & { readonly facts: WhatIfFacts }): VNode {
  const { view, card, facts, onSuppose } = props;
  const { words, language, now } = view;
  const [edited, setEdited] = useState<string | undefined>(undefined);
  const written = useMemo(() => policyText(facts, card.name), [facts, card.name]);
  const text = edited ?? written;
  const present = useMemo(() => presentPicture(facts), [facts]);
  const made = useMemo(() => supposed(facts, card.name, text), [facts, card.name, text]);
  const picture = made.kind === "Planned" ? made.picture : undefined;
  const isEdited = text !== written;
  // Before the browser paints, so that the text and its plan appear together.
  useLayoutEffect(() => onSuppose(isEdited ? picture : undefined), [picture, isEdited]);
  useEffect(() => () => onSuppose(undefined), []);
  const moved = picture === undefined ? [] : movedRows(present.rows, picture.rows);
  return (
    <>
      <p class="dim">{words.whatIfHint}</p>
      <div class="pair">
        <div>
          <label>
            {words.policyYaml}
            <textarea
              id={yamlId}
              rows={16}
              spellcheck={false}
              autocomplete="off"
              value={text}
              aria-invalid={made.kind === "Mistakes"}
              aria-describedby="what-if-answer"
              onInput={({ currentTarget }) => setEdited(currentTarget.value)}
            />
          </label>
          <div class="acts">
            <button type="button" disabled={!isEdited} onClick={() => setEdited(undefined)}>
              {words.reset}
            </button>
            <CopyButton view={view} text={text} shownBy={yamlId} />
          </div>
        </div>
        <div id="what-if-answer" role="status">
          <Answer view={view} made={made} />
          {picture === undefined ? null : (
            <p>
              {moved.length === 0 ? words.whatIfUnmoved : words.whatIfMoved(moved.length)}{" "}
              <span class="dim">{words.whatIfAt(momentText(facts.at, now, language))}</span>
            </p>
          )}
        </div>
      </div>
      <MovedTable view={view} moved={moved.slice(0, mostMoved)} />
    </>
  );
}

function supposed(facts: WhatIfFacts, policy: string, text: string): WhatIfResult {
  try {
    return suppose(facts, { policy, text });
  } catch (error) {
    return { kind: "Mistakes", mistakes: [error instanceof Error ? error.message : String(error)] };
  }
}

function Answer({ view, made }: { readonly view: PageView; readonly made: WhatIfResult }): VNode {
  const { words } = view;
  if (made.kind === "Mistakes") {
    return (
      <>
        <p class="held">{words.unreadable}</p>
        <ul class="mistakes">
          {made.mistakes.map((mistake) => (
            <li key={mistake} dir="auto">
              {mistake}
            </li>
          ))}
        </ul>
      </>
    );
  }
  return (
    <>
      {made.warnings.map((warning) => (
        <p key={warning} class="held" dir="auto">
          {warning}
        </p>
      ))}
      {made.picture.policies.map((one) => (
        <div key={one.id} class="card">
          <h3>
            {one.name} <span class="count">{words.matched(one.matched)}</span>
          </h3>
          <PolicyStanding view={view} card={one} />
        </div>
      ))}
    </>
  );
}

interface MovedRow {
  readonly row: BoardRow;
  /** Null if none was planned. */
  readonly before: number | null;
}

/** By when they would leave; those that would no longer have a departure come last. */
function movedRows(present: readonly BoardRow[], rows: readonly BoardRow[]): readonly MovedRow[] {
  const before = new Map(present.map(({ id, departAt }) => [id, departAt]));
  return rows
    .map((row) => ({ row, before: before.get(row.id) ?? null }))
    .filter((one) => one.row.departAt !== one.before)
    .toSorted((a, b) => (a.row.departAt ?? Infinity) - (b.row.departAt ?? Infinity) || 0);
}

interface MovedProps {
  readonly view: PageView;
  readonly moved: readonly MovedRow[];
}

function MovedTable({ view, moved }: MovedProps): VNode | null {
  const { words, language, now } = view;
  if (moved.length === 0) return null;
  const moment = (at: number | null): string => (at === null ? "–" : momentText(at, now, language));
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={words.whatIfMoved(moved.length)}>
      <table class="lanes">
        <thead>
          <tr>
            {[words.node, words.legendBefore, words.whatIf, words.why].map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {moved.map(({ row, before }) => (
            <tr key={row.id}>
              <td>
                <a class="name" href={nodeLink(row.node)}>
                  {row.node}
                </a>
              </td>
              <td>{moment(before)}</td>
              <td>{moment(row.departAt)}</td>
              <td class="why">
                <Sentence view={view} text={row.explain} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
