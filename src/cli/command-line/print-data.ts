import type { CommandIo } from "./command-io.ts";

/** Writes plain data as JSON or YAML, the same fields in the same order. */
export async function printData(
  data: unknown,
  format: "json" | "yaml",
  io: Pick<CommandIo, "out">,
): Promise<void> {
  if (format === "json") {
    io.out(`${JSON.stringify(data, undefined, 2)}\n`);
    return;
  }
  const { printYaml } = await import("../../config/yaml-text.ts");
  io.out(printYaml(data));
}
