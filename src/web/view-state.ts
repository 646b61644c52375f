import type { BoardPicture } from "../board/stream.ts";
import { every, remember, remembered } from "./browser.ts";
import type { LiveBoard, LiveState } from "./live-board.ts";
import { useEffect, useState } from "./preact.ts";
import { languages } from "./words/languages.ts";
import type { Language, Words } from "./words/words.ts";

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
