import manifest from "../../../package.json" with { type: "json" };
import { type CommandRun, printData } from "../command-line/command.ts";

export const version: string = manifest.version;

export const runVersion: CommandRun<"version"> = async ({ options, io }) => {
  if (options.output === "table") io.out(`lastcall ${version}\n`);
  else await printData({ version, runtime: process.version }, options.output, io);
  return 0;
};
