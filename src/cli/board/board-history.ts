import { EndedDepartures, historyLine, readHistory } from "../../board/outcome/ended-departures.ts";
import { isLastcallError, messageOf } from "../../errors.ts";
import type { CommandIo } from "../command-line/command-io.ts";

export interface BoardHistory {
  readonly ended: EndedDepartures;
  /** Resolves when all that has ended by now stands in the file. */
  written(): Promise<void>;
}

/**
 * Ended departures in a file, a JSON object a line: read at the start, and those that end from then
 * on are appended. Throws INPUT_UNREADABLE and OUTPUT_UNWRITABLE; a write that fails later is told.
 */
export async function openHistory(
  path: string,
  io: Pick<CommandIo, "files" | "err">,
): Promise<BoardHistory> {
  const text = await readOrNothing(path, io);
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
  const ended = new EndedDepartures(readHistory(text), (past) => {
    due += historyLine(past);
    writing = writing.then(write);
  });
  return { ended, written: () => writing };
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
