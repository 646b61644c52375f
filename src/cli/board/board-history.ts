import {
  EndedDepartures,
  historyLine,
  type KeptHistory,
  readHistory,
} from "../../board/outcome/ended-departures.ts";
import { isLastcallError, LastcallError, messageOf } from "../../errors.ts";
import type { CommandIo } from "../command-line/command-io.ts";

export interface BoardHistory {
  readonly ended: EndedDepartures;
  /** Resolves when all that has ended by now stands in the file. */
  written(): Promise<void>;
}

/**
 * Ended departures in a file, a JSON object a line: read at the start, and those that end from then
 * on are appended. Throws INPUT_UNREADABLE, INPUT_INVALID and OUTPUT_UNWRITABLE; what is left out
 * of it and a write that fails later is told.
 */
export async function openHistory(
  path: string,
  io: Pick<CommandIo, "files" | "err">,
): Promise<BoardHistory> {
  const text = await readOrNothing(path, io);
  const history = readHistory(text);
  checkHistory(path, history);
  const left = history.cut + history.foreign;
  if (left > 0) {
    const lines = left === 1 ? "1 line" : `${left} lines`;
    io.err(
      `lastcall: ${lines} of ${path} cannot be read as a departure and ${left === 1 ? "is" : "are"} left out\n`,
    );
  }
  // After a line that was cut, and to find out now whether it can be written.
  await io.files.appendText(path, text === "" || text.endsWith("\n") ? "" : "\n");
  let writing = Promise.resolve();
  let due = "";
  const write = async (): Promise<void> => {
    const lines = due;
    due = "";
    if (lines === "") return;
    await io.files
      .appendText(path, lines)
      .catch((error: unknown) => io.err(`lastcall: ${messageOf(error)}\n`));
  };
  const ended = new EndedDepartures(history.departures, (past) => {
    due += historyLine(past);
    writing = writing.then(write);
  });
  return { ended, written: () => writing };
}

/** Nothing is appended to a file that is somebody else's. Throws INPUT_INVALID. */
function checkHistory(path: string, { departures, foreign }: KeptHistory): void {
  if (foreign === 0 || departures.length > 0) return;
  throw new LastcallError(
    "INPUT_INVALID",
    `Cannot keep departures in ${path}: nothing in it is one, expected a file that lastcall board --history has written, or none`,
  );
}

async function readOrNothing(path: string, { files }: Pick<CommandIo, "files">): Promise<string> {
  try {
    return await files.readText(path);
  } catch (error) {
    const isNew = isLastcallError(error) && /does not exist/.test(error.message);
    if (isNew) return "";
    throw error;
  }
}
