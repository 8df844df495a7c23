import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import axe from "axe-core";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { root, useCaisson } from "../e2e/caisson-process.ts";
import { signedIn } from "./signed-in.ts";

/** Debian's package; the tests bring no browser. */
const CHROMIUM = "/usr/bin/chromium";
const PATIENCE_MS = 90_000;

export interface ConsolePage {
  page: Page;
  context: BrowserContext;
  /** What the browser refused and what scripts threw. A test that provokes some removes them. */
  complaints: string[];
}

/** A station that other machines can reach: the options that start it, and those that let the browser find it. */
export interface Exposed {
  up: readonly string[];
  browser: readonly string[];
}

/**
 * Starts a station with real sandboxes on a separate port, and opens its console in a real browser, for the tests of a
 * file. Fails a test that ends with complaints.
 */
export function useConsole({ exposed }: { exposed?: (folder: string) => Promise<Exposed> } = {}) {
  const caisson = useCaisson();
  let browser: Browser;
  let url = "";
  let token = "";
  const open: ConsolePage[] = [];
  beforeAll(async () => {
    if (!existsSync(join(root, "build", "console", "index.html"))) throw new Error("the console is not built: run scripts/setup");
    const { up: where, browser: found } = (await exposed?.(caisson.base())) ?? { up: ["--port", "0"], browser: [] };
    const up = await caisson.run(["up", "--detach", ...where, "--json"]);
    expect(up.code, up.stderr).toBe(0);
    ({ url, token } = JSON.parse(up.text));
    browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-dev-shm-usage", ...found] });
  });
  afterAll(async () => {
    await browser?.close();
    await caisson.run(["down"]);
  });
  afterEach(async () => {
    for (const { context, complaints } of open.splice(0)) {
      await context.close();
      expect(complaints, "what the browser complained about").toEqual([]);
    }
  });

  /**
   * Opens a page in a separate browser context, signed in with this token or the station's first. A null token means
   * signed out.
   */
  async function openPage(
    path: string,
    options: { token?: string | null; phone?: boolean; dark?: boolean; at?: string } = {},
  ): Promise<ConsolePage> {
    const context = await browser.newContext({
      viewport: options.phone ? { width: 390, height: 844 } : { width: 1360, height: 860 },
      hasTouch: options.phone ?? false,
      colorScheme: options.dark ? "dark" : "light",
      reducedMotion: "reduce",
      ...(options.token !== null && { storageState: signedIn(options.at ?? url, options.token ?? token) }),
    });
    context.setDefaultTimeout(PATIENCE_MS);
    const page = await context.newPage();
    const complaints: string[] = [];
    page.on("console", (message) => {
      // An unreachable station is not the page's fault.
      if (message.type() === "error" && !/net::ERR_|Failed to load resource|^WebSocket connection to /.test(message.text()))
        complaints.push(message.text());
    });
    page.on("pageerror", (error) => complaints.push(String(error)));
    const opened = { page, context, complaints };
    open.push(opened);
    await page.goto(String(new URL(path, options.at ?? url)));
    return opened;
  }

  return {
    ...caisson,
    openPage,
    url: () => url,
    token: () => token,
    /** Creates a token, for tests of what each owner may see. */
    async tokenFor(name: string, args: readonly string[] = []): Promise<string> {
      return JSON.parse((await caisson.run(["token", "create", name, ...args, "--json"])).text).token;
    },
  };
}

/** Returns the accessibility violations of a page, each with its rule. */
export async function barriers(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  const found = await page.evaluate(async () => {
    const { axe: there } = globalThis as unknown as {
      axe: { run(): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };
    };
    return (await there.run()).violations;
  });
  return found.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`);
}

/** Saves a screenshot if `CONSOLE_PICTURES` names a folder. */
export async function picture(page: Page, name: string): Promise<void> {
  const folder = process.env.CONSOLE_PICTURES;
  if (folder === undefined || folder === "") return;
  await mkdir(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name}.png`) });
}
