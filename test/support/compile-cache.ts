import { join } from "node:path";

/**
 * The variable that makes a program under test keep what Node compiled: it then starts in a third
 * of the time, and nothing else changes. `npm ci` empties the folder.
 */
export const compileCache: Readonly<Record<string, string>> = {
  NODE_COMPILE_CACHE: join(import.meta.dirname, "../../node_modules/.cache/lastcall"),
};
