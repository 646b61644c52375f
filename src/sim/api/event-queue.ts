/** A first-in-first-out of events that one consumer iterates over; it ends when it is closed. */
export class EventQueue<T> implements AsyncIterableIterator<T> {
  #waiting: T[] = [];
  #read = 0;
  #wanted: ((result: IteratorResult<T, undefined>) => void) | undefined;
  #closed = false;
  readonly #onClose: () => void;

  constructor(onClose: () => void) {
    this.#onClose = onClose;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** The next event, if it is there already; it stays to be read. */
  peek(): T | undefined {
    return this.#waiting[this.#read];
  }

  push(event: T): void {
    if (this.#closed) return;
    if (this.#wanted === undefined) {
      this.#waiting.push(event);
      return;
    }
    const deliver = this.#wanted;
    this.#wanted = undefined;
    deliver({ done: false, value: event });
  }

  /** No more events: what was pushed before is still delivered. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#wanted?.({ done: true, value: undefined });
    this.#wanted = undefined;
    this.#onClose();
  }

  next(): Promise<IteratorResult<T, undefined>> {
    if (this.#read < this.#waiting.length) {
      const value = this.#waiting[this.#read++] as T;
      if (this.#read === this.#waiting.length) this.#drop();
      return Promise.resolve({ done: false, value });
    }
    if (this.#closed) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve) => {
      this.#wanted = resolve;
    });
  }

  return(): Promise<IteratorResult<T, undefined>> {
    this.#drop();
    this.close();
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #drop(): void {
    this.#waiting = [];
    this.#read = 0;
  }
}
