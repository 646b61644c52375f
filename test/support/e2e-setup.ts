import { expect } from "vitest";
import { announceTestFile } from "./used-rights.ts";

announceTestFile(expect.getState().testPath ?? "");
