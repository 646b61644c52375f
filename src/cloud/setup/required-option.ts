import { LastcallError } from "../../errors.ts";

/** The value of an option that `lastcall setup` needs for this cloud. Throws USAGE without it. */
export function wanted(cloud: string, { flag, value, meaning }: RequiredOption): string {
  if (value === undefined) throw badSetup(cloud, `${flag} is required, set it to ${meaning}`);
  return value;
}

interface RequiredOption {
  readonly flag: string;
  readonly value: string | undefined;
  /** What it has to name. */
  readonly meaning: string;
}

export function badSetup(cloud: string, what: string): LastcallError {
  return new LastcallError("USAGE", `Cannot set up ${cloud}: ${what}`);
}
