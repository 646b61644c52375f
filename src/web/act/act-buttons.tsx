import type { BoardRights, BoardRow, PolicyCard } from "../../board/stream.ts";
import type { VNode } from "../preact.ts";
import type { PageView } from "../view-state.ts";

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
