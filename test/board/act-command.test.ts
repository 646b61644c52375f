import { expect, it } from "vitest";
import { commandOf } from "../../src/board/act/act.ts";
import { instant } from "../../src/core/time/time.ts";

const at = instant(Date.UTC(2026, 10, 20, 9));

it("the command of a departure has times only if they are set", () => {
  const act = { kind: "Depart", node: "n1", uid: "u", at: null, by: null } as const;
  expect(commandOf(act)).toBe("lastcall depart n1");
  // Without it, the command would keep the start of an earlier request.
  expect(commandOf({ ...act, by: at })).toBe(
    "lastcall depart n1 --at now --by 2026-11-20T09:00:00Z",
  );
  expect(commandOf({ ...act, at, by: at })).toBe(
    "lastcall depart n1 --at 2026-11-20T09:00:00Z --by 2026-11-20T09:00:00Z",
  );
});

it("a name is one word of the shell, whatever it contains", () => {
  const named = (node: string) => commandOf({ kind: "ReleaseHold", node, uid: "u" });
  expect(named("n1")).toBe("kubectl annotate node n1 lastcall.dev/hold-");
  expect(named("$(reboot)")).toBe("kubectl annotate node '$(reboot)' lastcall.dev/hold-");
  expect(named("it's; rm")).toBe(`kubectl annotate node 'it'\\''s; rm' lastcall.dev/hold-`);
});

it("a command names the cluster of the board, whatever the current context is", () => {
  const act = { kind: "Freeze", policy: "spot", until: null } as const;
  expect(commandOf(act, { context: "prod" })).toMatch(/ --context prod$/);
  expect(commandOf(act, { kubeconfig: "/home/ann/my config", context: "a;b" })).toMatch(
    / --kubeconfig '\/home\/ann\/my config' --context 'a;b'$/,
  );
});
