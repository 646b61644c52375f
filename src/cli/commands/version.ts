import manifest from "../../../package.json" with { type: "json" };
import { printData } from "../command-line/command-io.ts";
import type { CommandRun } from "../command-line/command-spec.ts";

export const version: string = manifest.version;

export const runVersion: CommandRun<"version"> = async ({ options, io }) => {
  if (options.output === "table") io.out(`lastcall ${version}\n`);
  else await printData({ version, runtime: process.version }, options.output, io);
  return 0;
};
