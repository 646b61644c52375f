/**
 * Provides `Temporal` if the runtime does not have it yet: Node 26 does, Node 22 and 24 do not.
 * `bin/lastcall.js` loads this before anything that reads a time zone.
 */
import "temporal-polyfill/global";
