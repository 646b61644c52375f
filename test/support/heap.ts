import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** The bytes in use after a garbage collection. */
export function heldBytes(): number {
  collect();
  collect();
  return process.memoryUsage().heapUsed;
}
