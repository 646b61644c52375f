/** As in `bin/lastcall.js`: the polyfill adds what Node 22 and 24 lack. */
if (!("Temporal" in globalThis)) await import("../../src/runtime/temporal.ts");
