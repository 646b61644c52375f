/**
 * Tells listeners that something has changed, many changes of one turn as one: a relist of ten
 * thousand nodes rings once.
 */
export class ChangeBell {
  readonly #listeners = new Set<() => void>();
  #rung = false;

  ring(): void {
    if (this.#rung) return;
    this.#rung = true;
    queueMicrotask(() => {
      this.#rung = false;
      for (const listener of this.#listeners) listener();
    });
  }

  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
