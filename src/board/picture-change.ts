import type { BoardChange, BoardPicture, FleetState, Identified, ListChange } from "./stream.ts";

/**
 * Finds what is new in a picture, against the one before: each part is compared by what would be
 * sent of it, and what is as it was is not sent again.
 */
export class PictureChanges {
  readonly #rows = new KnownItems();
  readonly #past = new KnownItems();
  readonly #policies = new KnownItems();
  #fleet = "";

  /** Undefined where nothing is new. */
  of(picture: BoardPicture): BoardChange | undefined {
    const fleet = this.#newFleet(picture.fleet);
    const rows = this.#rows.changeTo(picture.rows);
    const past = this.#past.changeTo(picture.past);
    const policies = this.#policies.changeTo(picture.policies);
    const change: BoardChange = {
      ...(fleet && { fleet }),
      ...(rows && { rows }),
      ...(past && { past }),
      ...(policies && { policies }),
    };
    return Object.keys(change).length === 0 ? undefined : change;
  }

  #newFleet(fleet: FleetState): FleetState | undefined {
    const text = JSON.stringify(fleet);
    if (text === this.#fleet) return undefined;
    this.#fleet = text;
    return fleet;
  }
}

class KnownItems {
  #texts = new Map<string, string>();

  changeTo<T extends Identified>(items: readonly T[]): ListChange<T> | undefined {
    const before = this.#texts;
    const texts = new Map<string, string>();
    const set: T[] = [];
    for (const item of items) {
      const text = JSON.stringify(item);
      texts.set(item.id, text);
      if (before.get(item.id) !== text) set.push(item);
    }
    const gone = [...before.keys()].filter((id) => !texts.has(id));
    this.#texts = texts;
    return set.length + gone.length === 0 ? undefined : { set, gone };
  }
}
