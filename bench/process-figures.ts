import { readFileSync } from "node:fs";

/** Memory in MiB: currently resident, the peak of that, or the part that no file backs. */
export function memoryMiB(pid: number, field: "VmRSS" | "VmHWM" | "RssAnon"): number {
  const text = readFileSync(`/proc/${pid}/status`, "utf8");
  const kib = Number(new RegExp(`^${field}:\\s*(\\d+) kB`, "m").exec(text)?.[1]);
  return Math.round(kib / 102.4) / 10;
}

/** User and system time are fields 14 and 15 of a process's stat, in ticks of 10 ms. */
export function cpuSecondsOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}
