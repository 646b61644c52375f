import {
  type BoardClock,
  type BoardPicture,
  type StreamMessage,
  withChange,
} from "../board/stream.ts";
import { after, elapsedMs, every, getJson, remember, remembered } from "./browser.ts";
import { useEffect, useState } from "./preact.ts";
import type { Language } from "./words/time-text.ts";
import type { Words } from "./words/words-english.ts";
import { english } from "./words/words-english.ts";
import { japanese } from "./words/words-japanese.ts";

/** The state of the page's connection to its server; `Refused`: the browser has no access. */
export type ConnectionState = "Connecting" | "Live" | "Lost" | "Refused";

export interface LiveState {
  readonly connection: ConnectionState;
  readonly picture: BoardPicture | undefined;
}

/** A connection that is silent for this long counts as dead. */
const silentMs = 25_000;

const againMs = 1000;

/** Access returns only if somebody opens another address of this board in the same browser. */
const refusedAgainMs = 30_000;

/**
 * The view as the server sends it: a whole one, then numbered changes. A gap in the numbers means
 * that a change was missed, and the whole view is requested again.
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

  /** The cluster's time; the browser's clock may be hours off. */
  now(): number {
    if (this.#clock === undefined) return 0;
    const { told, heardMs } = this.#clock;
    return told.at + (elapsedMs() - heardMs) * told.rate;
  }

  rate(): number {
    return this.#clock?.told.rate ?? 1;
  }

  /**
   * Calls the listener with the current state and then with each change: the first view may have
   * arrived between a page's first rendering and its subscription.
   */
  onChange(listener: (state: LiveState) => void): () => void {
    listener(this.#state);
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * A hidden page closes its connection: a browser has six connections to a server for all of its
   * tabs. It catches up when shown again.
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
    const source = new EventSource(`api/stream${from}`);
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

  /**
   * Asks the server for the reason, since an event source does not give it, and retries after a
   * while.
   */
  #lose(): void {
    this.#close();
    const lost = this.#source;
    if (this.#state.connection !== "Refused") this.#set({ connection: "Lost" });
    void getJson("api/node?name=")
      .then(({ status }) => (status === 401 ? "Refused" : "Lost"))
      .catch(() => "Lost" as const)
      .then((connection) => {
        // The page was hidden and shown meanwhile, and has another connection.
        if (this.#source !== lost) return;
        this.#set({ connection });
        const waitMs = connection === "Refused" ? refusedAgainMs : againMs;
        this.#stopWaiting = after(waitMs, () => this.connect());
      });
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

/** What every part of the page is rendered from. */
export interface PageView {
  readonly picture: BoardPicture;
  readonly now: number;
  /** How many times faster than the browser's clock the cluster's time runs. */
  readonly rate: number;
  readonly words: Words;
  readonly language: Language;
}

export type PagePlace =
  | { readonly page: "Departures" | "Timeline" | "Outcomes" }
  | {
      readonly page: "Node";
      readonly name: string;
      /** The uid of the departure whose steps are asked for. */
      readonly departure: string | undefined;
    };

export function placeOf(hash: string): PagePlace {
  const path = hash.replace(/^#\/?/, "");
  if (path === "timeline") return { page: "Timeline" };
  if (path === "outcomes") return { page: "Outcomes" };
  const [, name, departure] = /^node\/([^/]+)(?:\/(.+))?$/.exec(path) ?? [];
  if (name === undefined) return { page: "Departures" };
  return { page: "Node", name: decoded(name), departure: departure && decoded(departure) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function nodeLink(name: string, departure?: string): string {
  const more = departure === undefined ? "" : `/${encodeURIComponent(departure)}`;
  return `#/node/${encodeURIComponent(name)}${more}`;
}

/** Renders again at each change from the server. */
export function useLive(live: LiveBoard): LiveState {
  const [state, setState] = useState(live.state);
  useEffect(() => live.onChange(setState), [live]);
  return state;
}

/** The cluster's time, to the second, or finer if it runs fast. */
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
    // Not `hashchange`: Back to an address with another filter does not fire it.
    addEventListener("popstate", follow);
    // The user may have navigated between the page's first rendering and this.
    follow();
    return () => removeEventListener("popstate", follow);
  }, []);
  return placeOf(hash);
}

/** The first few items, and a way to see all if there are more. */
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

/** The viewer's choice, otherwise the browser's preference; dark by default. */
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

export const languages: Readonly<Record<Language, Words>> = { en: english, ja: japanese };
