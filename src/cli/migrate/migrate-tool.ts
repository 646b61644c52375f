import type { Instant } from "../../core/time/time.ts";
import { LastcallError } from "../../errors.ts";
import { handlerValuesSetup, handlerWorkloadSetup } from "../../migrate/handler-setup.ts";
import { killerImage, translateKiller } from "../../migrate/killer.ts";
import { killerValuesSetup, killerWorkloadSetup } from "../../migrate/killer-setup.ts";
import {
  type Finding,
  handlerMarks,
  killerMarks,
  type MarkedNode,
  type ToolState,
} from "../../migrate/node-marks.ts";
import type { ToolSetup, Translation } from "../../migrate/setting.ts";
import { handlerImage, translateHandler } from "../../migrate/termination-handler.ts";
import type { ManifestObject, Workload } from "../../migrate/workload.ts";

/** A tool that can be migrated from. */
export interface Tool {
  readonly name: "estafette" | "nth";
  /** What its image's name holds. */
  readonly image: string;
  readonly ofValues: (values: unknown, file: string) => ToolSetup;
  readonly ofWorkload: (
    workload: Workload,
    objects: readonly ManifestObject[],
    place: string,
  ) => ToolSetup;
  /** Throws INPUT_INVALID where a limit cannot be read. */
  readonly translate: (setup: ToolSetup) => Translation;
  readonly marks: (node: MarkedNode, tool: ToolState, now: Instant) => readonly Finding[];
}

const tools: readonly Tool[] = [
  {
    ...{ name: "estafette", image: killerImage, translate: translateKiller, marks: killerMarks },
    ...{ ofValues: killerValuesSetup, ofWorkload: killerWorkloadSetup },
  },
  {
    ...{ name: "nth", image: handlerImage, translate: translateHandler, marks: handlerMarks },
    ...{ ofValues: handlerValuesSetup, ofWorkload: handlerWorkloadSetup },
  },
];

export function toolNamed(name: string | undefined): Tool {
  const found = tools.find((one) => one.name === name);
  if (found !== undefined) return found;
  throw new LastcallError(
    "USAGE",
    `Cannot migrate from ${JSON.stringify(name)}: it is not known, expected estafette or nth`,
  );
}
