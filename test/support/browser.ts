import { existsSync } from "node:fs";
import { AxeBuilder } from "@axe-core/playwright";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";

const paths = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** Debian's own browser, or the one in `CHROMIUM`; nothing is downloaded. */
export function startBrowser(): Promise<Browser> {
  const executablePath = process.env.CHROMIUM ?? paths.find((path) => existsSync(path));
  if (executablePath === undefined) {
    throw new Error("Cannot test the board: there is no Chromium; apt-get install chromium");
  }
  const args = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"];
  return chromium.launch({ executablePath, args });
}

export interface OpenPage {
  readonly context: BrowserContext;
  readonly page: Page;
  /** Console messages of the page, and its requests to any host other than its own server. */
  readonly complaints: readonly string[];
}

/** Opens a board at the address that it printed. */
export async function openBoard(
  browser: Browser,
  url: string,
  look: { readonly width?: number; readonly height?: number } = {},
): Promise<OpenPage> {
  const viewport = { width: look.width ?? 1280, height: look.height ?? 860 };
  const context = await browser.newContext({
    viewport,
    locale: "en-GB",
    timezoneId: "UTC",
    colorScheme: "dark",
  });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error") complaints.push(message.text());
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(new URL(url).origin)) complaints.push(request.url());
  });
  await page.goto(url);
  await page.getByRole("heading", { name: "Next departures" }).waitFor();
  return { context, page, complaints };
}

/** The findings of axe, as `rule: element`. */
export async function axeFindings(page: Page): Promise<readonly string[]> {
  const { violations } = await new AxeBuilder({ page }).analyze();
  return violations.flatMap(({ id, nodes }) => nodes.map(({ target }) => `${id}: ${target}`));
}
