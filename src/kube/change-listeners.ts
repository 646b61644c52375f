/**
 * Tells listeners that something has changed, many changes of one turn as one: a relist of ten
 * thousand nodes rings once.
 */
export class ChangeListeners {
  readonly #listeners = new Set<() => void>();
  #isDue = false;

  notify(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    queueMicrotask(() => {
      this.#isDue = false;
      for (const listener of this.#listeners) listener();
    });
  }

  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
