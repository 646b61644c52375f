import { describe, expect, it } from "vitest";
import { unkept } from "../../tools/advertised.ts";

const promised = {
  options: ["health-address"],
  optionCommands: ["run"],
  commands: ["run"],
  metrics: ["lastcall_notices_total"],
};
const run = {
  path: "src/cli/commands/run.ts",
  text: 'serve(options.healthAddress); count("lastcall_notices_total");',
};

describe("what help, docs and /metrics promise", () => {
  it("is fulfilled if code uses it", () => {
    expect(unkept(promised, [run])).toEqual([]);
  });

  it("is not fulfilled by the lists themselves, nor by a longer name", () => {
    const listed = { ...run, path: "src/config/options/options.ts" };
    const longer = {
      path: "src/cli/commands/agent.ts",
      text: 'options.healthAddressOf; "lastcall_notices_total_old"',
    };
    expect(unkept(promised, [listed, longer])).toEqual([
      "--health-address is listed, but nothing reads it",
      "lastcall_notices_total is listed, but nothing sets it",
    ]);
  });

  it("is not fulfilled by a command that does not exist", () => {
    expect(unkept({ ...promised, optionCommands: ["run", "board"] }, [run])).toEqual([
      "lastcall board has options, but there is no such command",
    ]);
  });
});
