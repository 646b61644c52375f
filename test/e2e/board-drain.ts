/** A drain on the board, pod by pod, with the budgets that block it. */
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { explain } from "../../src/core/reason/reason.ts";
import { realClock } from "../../src/runtime/real-clock.ts";
import { type Ask, apiVersion, type BoardStage, departures, type Read } from "./board-stage.ts";

const pods = "/api/v1/namespaces/default/pods";

export function boardDrainTests(stageOf: () => BoardStage): void {
  let ask: Ask;
  let page: Page;
  let show: BoardStage["show"];

  beforeAll(() => {
    ({ ask, page, show } = stageOf());
  });

  describe("a drain", () => {
    const names = ["web-0", "web-1", "db-0"];
    const status = (left: number, more: object = {}): void => {
      const gone = names.length - left;
      const drain = { total: names.length, left, evicted: gone, forced: 0, waiting: left };
      ask("PATCH", `${departures}/n1-1/status`, {
        status: { drain: { ...drain, blocked: 0, cut: 0 }, ...more },
      });
    };
    const end = (pod: string, gracePeriodSeconds: number): Read =>
      ask("DELETE", `${pods}/${pod}`, { gracePeriodSeconds });
    const bar = (pod: string) => page.locator("table.bars tbody tr", { hasText: pod });

    beforeAll(() => {
      for (const name of names) {
        const containers = [{ name: "c", image: "registry.example/c:1" }];
        const spec = { nodeName: "n1", containers, terminationGracePeriodSeconds: 30 };
        ask("POST", pods, { apiVersion: "v1", kind: "Pod", metadata: { name }, spec });
        ask("PATCH", `${pods}/${name}/status`, { status: { phase: "Running" } });
      }
    });

    test("is shown pod by pod as it proceeds, without a reload", async () => {
      await show("node/n1");
      await expect.poll(() => page.locator("table.bars tbody tr").count()).toBe(3);
      const { uid } = ask("GET", "/api/v1/nodes/n1").metadata ?? {};
      const spec = { node: { name: "n1", uid }, cause: "Manual" };
      ask("POST", departures, { apiVersion, kind: "Departure", metadata: { name: "n1-1" }, spec });
      const startedAt = new Date(realClock.now()).toISOString();
      status(3, { phase: "Draining", startedAt });
      await page.getByRole("button", { name: "What happened" }).waitFor();
      await expect.poll(() => page.getByText("not evicted").count()).toBe(3);

      end("web-0", 30);
      status(3, { message: "n1 is draining." });
      await bar("web-0").locator(".took.going").waitFor();
      await bar("web-0").getByText("terminating").waitFor();
      expect(await page.getByText("not evicted").count()).toBe(2);
      // It grows with time, without an update.
      const wide = () =>
        bar("web-0")
          .locator(".took")
          .evaluate((one) => Number.parseFloat((one as HTMLElement).style.width));
      const before = await wide();
      await expect.poll(wide).toBeGreaterThan(before);

      end("web-0", 0);
      status(2);
      await bar("web-0").locator(".took:not(.going)").waitFor();
      expect(await bar("web-0").textContent()).not.toContain("terminating");
      expect(await page.locator(".node-head .marks .gone").count()).toBe(1);
      expect(await page.locator(".node-head .marks .here").count()).toBe(2);
    });

    test("does not move in a browser that prefers reduced motion", async () => {
      await show("");
      await page.locator(".leaving .marks .here").first().waitFor();
      const moving = () =>
        page.evaluate(
          () =>
            [...document.querySelectorAll("*")].filter((one) => {
              const { transitionDuration, animationName } = getComputedStyle(one);
              const waits = transitionDuration
                .split(",")
                .some((part) => Number.parseFloat(part) > 0);
              return waits || animationName !== "none";
            }).length,
        );
      await page.emulateMedia({ reducedMotion: "no-preference" });
      expect(await moving()).toBeGreaterThan(0);
      await page.emulateMedia({ reducedMotion: "reduce" });
      expect(await moving()).toBe(0);
      await page.emulateMedia({ reducedMotion: null });
    });

    test("shows in the list which budgets block it, with their messages", async () => {
      const budget = (name: string, count: number): string =>
        `The disruption budget ${name} needs ${count} healthy pods and has ${count} currently`;
      const detail = `default/web-1: ${budget("web", 2)}; default/db-0: ${budget("db", 1)}`;
      const reason = "DrainBlocked";
      const drain = { total: 3, left: 2, evicted: 1, forced: 0, waiting: 0, blocked: 2, cut: 0 };
      ask("PATCH", `${departures}/n1-1/status`, {
        status: { reason, message: explain(reason, { node: "n1", detail }), drain },
      });
      await show("");
      const row = page.locator(".leaving li", { hasText: "n1" });
      await row.getByText("2 of 3 pods still there, 2 blocked").waitFor();
      for (const name of ["web-1", "db-0"]) await row.getByText(`default/${name}: The`).waitFor();
      await row.getByText(budget("web", 2)).waitFor();
      await row.getByText(budget("db", 1)).waitFor();
      expect(await row.locator(".marks .blocked").count()).toBe(2);
      await page.evaluate(() => localStorage.setItem("lastcall-language", "ja"));
      await page.reload();
      await row.getByText(`ブロックされています: default/web-1: ${budget("web", 2)}、`).waitFor();
      await page.evaluate(() => localStorage.setItem("lastcall-language", "en"));
      await page.reload();
    });

    test("has an arrow on the timeline, and planned departures have circles", async () => {
      await show("timeline");
      await page.locator(".drawing g.lane.Leaving path.depart").waitFor();
      await page.getByRole("button", { name: "48 hours", exact: true }).click();
      const circles = page.locator(".drawing g.lane.Scheduled circle.depart");
      await expect.poll(() => circles.count()).toBe(2);
      expect(await page.locator(".drawing g.lane.Leaving circle").count()).toBe(0);
    });
  });
}
