import {
  type BoardClock,
  type BoardPicture,
  type StreamMessage,
  withChange,
} from "../board/stream.ts";
import { after, elapsedMs, every, getJson, remember, remembered } from "./browser.ts";
import { useEffect, useState } from "./preact.ts";
import { languages } from "./words/languages.ts";
import type { Language, Words } from "./words/words.ts";

/** How the page hears its server: `Refused` is for good. */
export type ConnectionState = "Connecting" | "Live" | "Lost" | "Refused";

export interface LiveState {
  readonly connection: ConnectionState;
  readonly picture: BoardPicture | undefined;
}

/** Without a word for so long the connection is taken for dead. */
const silentMs = 25_000;
const againMs = 1000;

/**
 * The picture as the server tells it: a whole one, then changes by number. A number that does not
 * follow means that something was missed, and everything is asked for again.
 */
export class LiveBoard {
  #state: LiveState = { connection: "Connecting", picture: undefined };
  #clock: { readonly told: BoardClock; readonly heardMs: number } | undefined;
  #id: string | undefined;
  #source: EventSource | undefined;
  #stopWaiting: (() => void) | undefined;
  #isShown = true;
  readonly #listeners = new Set<(state: LiveState) => void>();

  get state(): LiveState {
    return this.#state;
  }

  /** The cluster's time; the browser's own clock may be hours off. */
  now(): number {
    if (this.#clock === undefined) return 0;
    const { told, heardMs } = this.#clock;
    return told.at + (elapsedMs() - heardMs) * told.rate;
  }

  rate(): number {
    return this.#clock?.told.rate ?? 1;
  }

  /**
   * Tells the listener the state as it is, and each change from then on: the first picture may have
   * come between the first drawing of a page and whoever listens for the next.
   */
  onChange(listener: (state: LiveState) => void): () => void {
    listener(this.#state);
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * While nobody sees the page it hears nothing: a browser has six connections to a server for all
   * of its tabs. What it missed is told when it is shown again.
   */
  setShown(isShown: boolean): void {
    if (isShown === this.#isShown) return;
    this.#isShown = isShown;
    if (isShown) this.connect();
    else this.#close();
  }

  connect(): void {
    this.#close();
    if (!this.#isShown) return;
    const from = this.#id === undefined ? "" : `?after=${encodeURIComponent(this.#id)}`;
    const source = new EventSource(`/api/stream${from}`);
    this.#source = source;
    this.#expectWord();
    source.onmessage = ({ data }) => {
      this.#expectWord();
      this.#hear(JSON.parse(String(data)) as StreamMessage);
    };
    source.onerror = () => {
      source.close();
      this.#lose();
    };
  }

  #close(): void {
    this.#source?.close();
    this.#stopWaiting?.();
  }

  #expectWord(): void {
    this.#stopWaiting?.();
    this.#stopWaiting = after(silentMs, () => this.#lose());
  }

  /** Asks why, since an event source does not say, and tries again after a while. */
  #lose(): void {
    this.#close();
    this.#set({ connection: "Lost" });
    getJson("/api/node?name=")
      .then(({ status }) => this.#set({ connection: status === 401 ? "Refused" : "Lost" }))
      .catch(() => undefined)
      .finally(() => after(againMs, () => this.connect()));
  }

  #hear(message: StreamMessage): void {
    this.#clock = { told: message.clock, heardMs: elapsedMs() };
    switch (message.kind) {
      case "Picture":
        this.#id = message.id;
        this.#set({ connection: "Live", picture: message.picture });
        return;
      case "Change":
        this.#change(message);
        return;
      case "Clock":
        if (this.#state.picture !== undefined) this.#set({ connection: "Live" });
    }
  }

  #change({ id, after, change }: Extract<StreamMessage, { kind: "Change" }>): void {
    const { picture } = this.#state;
    if (picture === undefined || after !== this.#id) {
      this.#id = undefined;
      this.connect();
      return;
    }
    this.#id = id;
    this.#set({ connection: "Live", picture: withChange(picture, change) });
  }

  #set(part: Partial<LiveState>): void {
    this.#state = { ...this.#state, ...part };
    for (const listener of [...this.#listeners]) listener(this.#state);
  }
}

/** What every part of the page is drawn from. */
export interface PageView {
  readonly picture: BoardPicture;
  readonly now: number;
  /** How many times faster than the browser's own the cluster's time goes. */
  readonly rate: number;
  readonly words: Words;
  readonly language: Language;
}

export type PagePlace =
  | { readonly page: "Departures" | "Timeline" | "Outcomes" }
  | { readonly page: "Node"; readonly name: string };

function placeOf(hash: string): PagePlace {
  const path = hash.replace(/^#\/?/, "");
  if (path === "timeline") return { page: "Timeline" };
  if (path === "outcomes") return { page: "Outcomes" };
  const name = /^node\/(.+)$/.exec(path)?.[1];
  return name === undefined ? { page: "Departures" } : { page: "Node", name: decoded(name) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function nodeLink(name: string): string {
  return `#/node/${encodeURIComponent(name)}`;
}

/** Draws again at each change of what the server tells. */
export function useLive(live: LiveBoard): LiveState {
  const [state, setState] = useState(live.state);
  useEffect(() => live.onChange(setState), [live]);
  return state;
}

/** The cluster's time, to the second or finer where it runs fast. */
export function useNow(live: LiveBoard): number {
  const [now, setNow] = useState(live.now());
  const period = live.rate() === 1 ? 1000 : 250;
  useEffect(() => every(period, () => setNow(live.now())), [live, period]);
  return Math.max(now, live.now());
}

export function usePlace(): PagePlace {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const follow = (): void => setHash(location.hash);
    addEventListener("hashchange", follow);
    // Somebody may have gone on between the first drawing of the page and this.
    follow();
    return () => removeEventListener("hashchange", follow);
  }, []);
  return placeOf(hash);
}

/** The first so many, and where there are more the way to see all. */
export function useFirst<T>(
  items: readonly T[],
  most: number,
): readonly [readonly T[], (() => void)?] {
  const [isWhole, setWhole] = useState(false);
  if (isWhole || items.length <= most) return [items];
  return [items.slice(0, most), () => setWhole(true)];
}

export type Theme = "dark" | "light";

export interface Preferences {
  readonly language: Language;
  readonly theme: Theme;
  readonly setLanguage: (language: Language) => void;
  readonly setTheme: (theme: Theme) => void;
}

/** What the viewer chose, else what their browser prefers; dark as stations are. */
export function usePreferences(): Preferences {
  const [language, setLanguage] = useState(firstLanguage);
  const [theme, setTheme] = useState(firstTheme);
  useEffect(() => {
    document.documentElement.lang = language;
    document.title = `Lastcall · ${languages[language].board}`;
    remember("language", language);
  }, [language]);
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    remember("theme", theme);
  }, [theme]);
  return { language, theme, setLanguage, setTheme };
}

function firstLanguage(): Language {
  const chosen = remembered("language");
  if (chosen === "en" || chosen === "ja") return chosen;
  return navigator.language.startsWith("ja") ? "ja" : "en";
}

function firstTheme(): Theme {
  const chosen = remembered("theme");
  if (chosen === "dark" || chosen === "light") return chosen;
  return matchMedia("(prefers-color-scheme: light)").matches ? "light" : "dark";
}
