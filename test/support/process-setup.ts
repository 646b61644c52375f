import { afterAll, vi } from "vitest";
import "./page-loader.ts";

const environment = { ...process.env };

/** What a file changed of its process, the next file in the same worker does not see. */
afterAll(() => {
  for (const name of Object.keys(process.env)) {
    if (!(name in environment)) delete process.env[name];
  }
  Object.assign(process.env, environment);
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});
