import type { Language, Words } from "./words.ts";
import { english } from "./words-english.ts";
import { japanese } from "./words-japanese.ts";

export const languages: Readonly<Record<Language, Words>> = { en: english, ja: japanese };
