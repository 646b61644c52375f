import type { BoardRights, BoardRow, PolicyCard } from "../../board/stream.ts";
import { copyText, instantOfLocal, isSameDay, nextHour, selectText } from "../browser.ts";
import { useState, type VNode } from "../preact.ts";
import type { PageView } from "../view-state.ts";
import type { Words } from "../words/words-english.ts";

/** An instant; null for "now" or "indefinitely"; or a day and time that are still being typed. */
export type Chosen = number | null | "Unfinished";

export interface Times {
  /** When to start, or until when to hold. */
  readonly at: Chosen;
  readonly by: Chosen;
}

/** The contents of a field for a day and a time. A partial time is invalid, but not empty. */
export function chosenIn(field: {
  readonly value: string;
  readonly validity: { readonly badInput: boolean };
}): Chosen {
  return field.validity.badInput ? "Unfinished" : (instantOfLocal(field.value) ?? null);
}

/** Undefined until both are complete; a freeze must have an end. */
export function wholeTimes(
  kind: NodeAct | PolicyAct,
  { at, by }: Times,
): { readonly at: number | null; readonly by: number | null } | undefined {
  if (at === "Unfinished" || by === "Unfinished") return undefined;
  return kind === "Freeze" && at === null ? undefined : { at, by };
}

/** The next two times that people usually mean; at night "tomorrow morning" is still today. */
export function mornings(now: number, words: Words): readonly (readonly [string, number])[] {
  const next = nextHour(now, 9);
  return [
    [isSameDay(next, now) ? words.todayMorning : words.tomorrowMorning, next],
    [words.mondayMorning, nextHour(now, 9, 1)],
  ];
}

export type NodeAct = "Hold" | "ReleaseHold" | "Depart" | "Withdraw";

export type PolicyAct = "Freeze" | "Thaw";

/** The actions available on a node now, by the caller's permissions and the node's state. */
export function nodeActs(row: BoardRow, rights: BoardRights): readonly NodeAct[] {
  const isWithdrawable =
    row.departure !== null &&
    row.noticedAt === null &&
    row.phase !== "Releasing" &&
    row.phase !== "RollingBack" &&
    (row.cause === "Manual" || (row.cause === "Planned" && row.state === "Leaving"));
  const canDepart = rights.createDepartures && rights.patchDepartures;
  // The end of a hold can be changed; a hold that has ended holds nothing.
  const isHoldable = row.hold === null || (row.hold.isOurs && row.hold.untilAt !== null);
  return [
    ...(rights.patchNodes && row.state !== "Leaving" && isHoldable ? (["Hold"] as const) : []),
    ...(rights.patchNodes && row.hold?.isOurs === true ? (["ReleaseHold"] as const) : []),
    ...(canDepart && row.state !== "Leaving" ? (["Depart"] as const) : []),
    ...(rights.deleteDepartures && isWithdrawable ? (["Withdraw"] as const) : []),
  ];
}

interface NodeActsProps {
  readonly view: PageView;
  readonly row: BoardRow;
  readonly onAct: (act: NodeAct, row: BoardRow) => void;
}

export function NodeActs({ view, row, onAct }: NodeActsProps): VNode {
  const { words, picture } = view;
  const { rights } = picture.fleet;
  const names: Readonly<Record<NodeAct, string>> = {
    Hold: words.actHold,
    ReleaseHold: words.actRelease,
    Depart: words.actDepart,
    Withdraw: words.actWithdraw,
  };
  if (!Object.values(rights).some(Boolean)) return <p class="dim">{words.noActs}</p>;
  return (
    <div class="acts" role="group" aria-label={words.acts}>
      {nodeActs(row, rights).map((act) => (
        <button key={act} type="button" onClick={() => onAct(act, row)}>
          {names[act]}
        </button>
      ))}
    </div>
  );
}

interface PolicyActsProps {
  readonly view: PageView;
  readonly card: PolicyCard;
  readonly onAct: (act: PolicyAct, card: PolicyCard) => void;
  /** Actions that need no permission. */
  readonly children: VNode;
}

export function PolicyActs({ view, card, onAct, children }: PolicyActsProps): VNode {
  const { words, picture, now } = view;
  const mayFreeze = picture.fleet.rights.patchPolicies && card.problem === null;
  const isFrozen = card.freezeUntil !== null && card.freezeUntil > now;
  return (
    <div class="acts" role="group" aria-label={words.acts}>
      {mayFreeze ? (
        <button type="button" onClick={() => onAct("Freeze", card)}>
          {words.actFreeze}
        </button>
      ) : null}
      {mayFreeze && isFrozen ? (
        <button type="button" onClick={() => onAct("Thaw", card)}>
          {words.actThaw}
        </button>
      ) : null}
      {children}
    </div>
  );
}

interface CopyProps {
  readonly view: PageView;
  readonly text: string;
  /** The id of the element that contains the text. */
  readonly shownBy: string;
}

/**
 * Copies a text. Browsers let a page write to the clipboard only with the user's permission, and
 * not at all over plain HTTP: then the text is selected, and the page says which keys copy it.
 */
export function CopyButton({ view, text, shownBy }: CopyProps): VNode {
  const { words } = view;
  const [copied, setCopied] = useState<{ readonly text: string; readonly isDone: boolean }>();
  const copy = async (): Promise<void> => {
    const isDone = await copyText(text);
    if (!isDone) selectText(shownBy);
    setCopied({ text, isDone });
  };
  const last = copied?.text === text ? copied : undefined;
  return (
    <>
      <button type="button" onClick={() => void copy()}>
        {last?.isDone ? words.copied : words.copy}
      </button>{" "}
      <span role="status">{last?.isDone === false ? words.selected : ""}</span>
    </>
  );
}
