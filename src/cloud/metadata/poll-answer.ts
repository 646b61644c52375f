import { LastcallError } from "../../errors.ts";
import type { MetadataAnswer } from "./metadata-client.ts";

/** For an answer whose status says nothing about the machine, such as a 503. */
export function refusedError(channel: string, answer: MetadataAnswer): LastcallError {
  return new LastcallError(
    "CLOUD_UNREACHABLE",
    `Cannot ask ${channel}: the metadata service answered ${answer.status}, expected 200`,
  );
}
