/** As `bin/lastcall.js` does: what Node 22 and 24 lack comes from the polyfill. */
if (!("Temporal" in globalThis)) await import("../../src/runtime/temporal.ts");
