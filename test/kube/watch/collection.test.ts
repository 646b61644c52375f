import { expect, it } from "vitest";
import { listAll } from "../../../src/kube/watch/collection.ts";
import { ScriptedApi } from "../../support/scripted-api.ts";
import { object, page, refused } from "./reflector-stage.ts";

it.each([
  ["itself", { "": "t1", t1: "t1" }],
  ["one before it", { "": "t1", t1: "t2", t2: "t1" }],
])(
  "a list whose page names %s as the next one fails instead of going on without end",
  async (_, next: Readonly<Record<string, string>>) => {
    const api: ScriptedApi = new ScriptedApi(({ query }) =>
      api.sent.length > 100
        ? refused(500)
        : page("1", [object("a", "1")], next[query?.continue ?? ""] ?? ""),
    );
    await expect(listAll(api, "/api/v1/nodes")).rejects.toMatchObject({
      ...{ code: "API_ANSWER_INVALID", retryable: true },
      message: expect.stringContaining(
        "Cannot list /api/v1/nodes: found a page that was read before",
      ),
    });
    expect(api.sent).toHaveLength(Object.keys(next).length);
  },
);
