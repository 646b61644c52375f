import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { holderIsDead, processIdentity } from "../../src/runtime/process-identity.ts";

describe("the holder of a lease", () => {
  it("is the pod, if there is one", () => {
    expect(processIdentity("lastcall-7d9f-abcde")).toBe("lastcall-7d9f-abcde");
  });

  it("is alive while its process runs", () => {
    expect(holderIsDead(processIdentity(undefined))).toBe(false);
  });

  it("is dead once its process has ended", async () => {
    const child = spawn("sleep", ["60"]);
    await once(child, "spawn");
    const own = processIdentity(undefined).split("_");
    const childIdentity = [...own.slice(0, -2), child.pid, "12345"].join("_");
    child.kill();
    await once(child, "exit");
    expect(holderIsDead(childIdentity)).toBe(true);
  });

  it("is dead if another process has its pid", () => {
    const own = processIdentity(undefined).split("_");
    expect(holderIsDead([...own.slice(0, -1), "1"].join("_"))).toBe(true);
  });

  it.each(["lastcall-7d9f-abcde", "otherhost_1234abcd_4026531836_1_5", "", "_", "a_b_c_x_y"])(
    "does not count as dead if %j is not conclusive",
    (identity) => {
      expect(holderIsDead(identity)).toBe(false);
    },
  );
});
