/** Acts on the board: by keyboard alone, by two people at once, and with the clipboard. */
import type { BrowserContext, Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { realClock } from "../../src/runtime/real-clock.ts";
import { type Ask, type BoardStage, departures, hourMs, policies } from "./board-stage.ts";

export function boardActTests(stageOf: () => BoardStage): void {
  let ask: Ask;
  let context: BrowserContext;
  let page: Page;
  let show: BoardStage["show"];

  beforeAll(() => {
    ({ ask, context, page, show } = stageOf());
  });

  describe("by keyboard alone", () => {
    /** Presses Tab until the element with this text has the focus, then Enter. */
    async function press(name: string): Promise<void> {
      for (let steps = 0; steps < 60; steps += 1) {
        await page.keyboard.press("Tab");
        const text = await page.evaluate(() => document.activeElement?.textContent?.trim() ?? "");
        if (text !== name) continue;
        await page.keyboard.press("Enter");
        return;
      }
      throw new Error(`Tab does not lead to ${name}`);
    }

    /** Waits for the preview, confirms it and closes the result. */
    async function confirm(): Promise<void> {
      await page.locator("dialog .command").waitFor();
      await press("Confirm");
      await page.locator("dialog .answer.good").waitFor();
      const focused = () => page.evaluate(() => document.activeElement?.textContent);
      await expect.poll(focused).toBe("Close");
      await page.keyboard.press("Enter");
      await page.locator("dialog").waitFor({ state: "detached" });
    }

    /** The button appears once the page has received the result of the previous act. */
    const offered = (name: string) => page.getByRole("button", { name, exact: true }).waitFor();

    test("a node is found, held and released", async () => {
      await show("");
      await press("n3");
      await offered("Hold");
      await press("Hold");
      await press("Until released");
      await confirm();
      const hold = () =>
        ask("GET", "/api/v1/nodes/n3").metadata?.annotations?.["lastcall.dev/hold"];
      expect(hold()).toBe("true");
      await offered("Release hold");
      await press("Release hold");
      await confirm();
      expect(hold()).toBeUndefined();
    });

    test("a departure is requested for a time and cancelled", async () => {
      await show("node/n2");
      await offered("Depart");
      await press("Depart");
      // Before 09:00 UTC the next morning is on the same day.
      const isNight = new Date(realClock.now()).getUTCHours() < 9;
      await press(isNight ? "Today 09:00" : "Tomorrow 09:00");
      await confirm();
      const ofNode = () =>
        (ask("GET", departures).items ?? []).filter(({ spec }) => spec?.node?.name === "n2");
      const [asked] = ofNode();
      expect(asked?.spec).toMatchObject({ cause: "Manual" });
      const day = new Date(realClock.now() + (isNight ? 0 : 24 * hourMs))
        .toISOString()
        .slice(0, 10);
      expect(Date.parse(asked?.spec?.departAt ?? "")).toBe(Date.parse(`${day}T09:00:00Z`));
      await offered("Cancel departure");
      await press("Cancel departure");
      await confirm();
      expect(ofNode()).toEqual([]);
    });

    test("a policy is frozen and the freeze ended", async () => {
      await show("timeline");
      await offered("Freeze");
      await press("Freeze");
      await press("4 h");
      await confirm();
      const until = () => ask("GET", `${policies}/spot`).spec?.gates?.freezeUntil;
      const inMs = Date.parse(until() ?? "") - realClock.now();
      expect(inMs).toBeGreaterThan(4 * hourMs - 120_000);
      expect(inMs).toBeLessThanOrEqual(4 * hourMs);
      await offered("End freeze");
      await press("End freeze");
      await confirm();
      expect(until()).toBeUndefined();
    });
  });

  test("a node is requested to be gone by a time", async () => {
    await show("node/n2");
    await page.getByRole("button", { name: "Depart", exact: true }).click();
    const by = new Date(realClock.now() + 3 * hourMs).toISOString().slice(0, 16);
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Gone by").fill(by);
    const command = dialog.locator(".command code");
    await expect.poll(() => command.textContent()).toContain("--by");
    // If the user denies clipboard access, the command is selected so that it can be copied.
    await page.evaluate(() => {
      const value = () => Promise.reject(new DOMException("denied", "NotAllowedError"));
      Object.defineProperty(navigator.clipboard, "writeText", { value, configurable: true });
    });
    await dialog.getByRole("button", { name: "Copy" }).click();
    await dialog.getByText("Selected: press Ctrl+C (⌘C) to copy it.").waitFor();
    expect(await page.evaluate(() => String(getSelection()))).toBe(await command.textContent());
    await page.evaluate(() => Reflect.deleteProperty(navigator.clipboard, "writeText"));
    await dialog.getByRole("button", { name: "Confirm" }).click();
    await dialog.locator(".answer.good").waitFor();
    await dialog.getByRole("button", { name: "Close" }).click();
    const asked = (ask("GET", departures).items ?? []).filter(({ spec }) => spec?.deadlineAt);
    expect(asked.map(({ spec }) => Date.parse(spec?.deadlineAt ?? ""))).toEqual([
      Date.parse(`${by}Z`),
    ]);
  });

  test("the second of two people who hold one node is told that it is already held", async () => {
    const other = await context.newPage();
    for (const one of [page, other]) {
      await show("node/n3", one);
      await one.getByRole("button", { name: "Hold", exact: true }).click();
      await one.getByRole("dialog").getByRole("button", { name: "Until released" }).click();
      await one.getByRole("dialog").locator(".command").waitFor();
      await one.getByRole("dialog").getByRole("button", { name: "Confirm" }).waitFor();
    }
    const sent: number[] = [];
    other.on("response", (answer) => {
      if (answer.url().endsWith("/api/act")) sent.push(answer.status());
    });
    await page.getByRole("dialog").getByRole("button", { name: "Confirm" }).click();
    await page.locator("dialog .answer.good").waitFor();
    await other.getByRole("dialog").getByRole("button", { name: "Confirm" }).click();
    await other.locator("dialog .answer.held").waitFor();
    // The change is visible before anything can be confirmed again.
    await other
      .locator("dialog")
      .getByText(/^Held.* until released$/)
      .waitFor();
    expect(sent).toHaveLength(1);
    const { annotations } = ask("GET", "/api/v1/nodes/n3").metadata ?? {};
    expect(annotations?.["lastcall.dev/hold"]).toBe("true");
    await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
    await other.close();
  });

  test("the edited policy of a what-if can be copied", async () => {
    await context.grantPermissions(["clipboard-read", "clipboard-write"]);
    await show("timeline");
    await page.getByRole("button", { name: "What if" }).click();
    const area = page.locator(".what-if textarea");
    await area.waitFor();
    const edited = (await area.inputValue()).replace("36h", "30h");
    await area.fill(edited);
    const copy = page.locator(".what-if").getByRole("button", { name: /Copy|Copied/ });
    await copy.click();
    await page.locator(".what-if").getByRole("button", { name: "Copied" }).waitFor();
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    expect(copied).toBe(edited);
    expect(copied).toContain("max: 30h");
    // Later edits are not in the clipboard.
    await area.fill(edited.replace("30h", "20h"));
    await expect.poll(() => copy.textContent()).toBe("Copy");
    // If pages have no access to the clipboard, the text is selected so that it can be copied.
    await page.evaluate(() => Object.defineProperty(navigator, "clipboard", { value: undefined }));
    await copy.click();
    await page.locator(".what-if").getByText("Selected: press Ctrl+C (⌘C) to copy it.").waitFor();
    const selected = await area.evaluate((element) => {
      const { selectionStart, selectionEnd, value } = element as HTMLTextAreaElement;
      return document.activeElement === element && value.slice(selectionStart, selectionEnd);
    });
    expect(selected).toBe(edited.replace("30h", "20h"));
  });
}
