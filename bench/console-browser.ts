import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Browser, type BrowserContext, type CDPSession, chromium, type Page } from "playwright-core";
import { signedIn } from "../test/support/signed-in.ts";

/** Debian's Chromium; the bench brings no browser. */
const CHROMIUM = "/usr/bin/chromium";
const PATIENCE_MS = 120_000;

/** A page of the console in a fresh browser context. */
export interface BenchPage extends AsyncDisposable {
  page: Page;
  devtools: CDPSession;
}

export interface BenchBrowser extends AsyncDisposable {
  open(path: string): Promise<BenchPage>;
  /** Returns the private memory of the process that draws a page. */
  privateBytesOf(page: BenchPage): Promise<number>;
}

export async function openBrowser({ url, token }: { url: string; token: string }): Promise<BenchBrowser> {
  if (!existsSync(join(import.meta.dirname, "..", "build", "console", "index.html")))
    throw new Error("the console is not built: run scripts/setup");
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
  return {
    async open(path) {
      const context = await browser.newContext({ viewport: { width: 1360, height: 860 }, storageState: signedIn(url, token) });
      context.setDefaultTimeout(PATIENCE_MS);
      return await openIn(context, `${url}${path}`);
    },
    privateBytesOf: async () => await largestRenderer(browser),
    [Symbol.asyncDispose]: () => browser.close(),
  };
}

async function openIn(context: BrowserContext, address: string): Promise<BenchPage> {
  await context.addInitScript({ content: probes });
  const page = await context.newPage();
  const devtools = await context.newCDPSession(page);
  await devtools.send("Network.enable");
  const opened = { page, devtools, [Symbol.asyncDispose]: () => context.close() };
  wire.set(opened, 0);
  devtools.on("Network.loadingFinished", ({ encodedDataLength }) => wire.set(opened, (wire.get(opened) ?? 0) + encodedDataLength));
  await page.goto(address, { waitUntil: "commit" });
  return opened;
}

const wire = new WeakMap<object, number>();

/** Returns the bytes of all answers so far, as transferred. */
export function receivedBytes(page: BenchPage): number {
  return wire.get(page) ?? 0;
}

async function largestRenderer(browser: Browser): Promise<number> {
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  await session.detach();
  return Math.max(...processInfo.filter(({ type }) => type === "renderer").map(({ id }) => privateBytes(id)));
}

function privateBytes(pid: number): number {
  const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  return [...rollup.matchAll(/^Private_(?:Clean|Dirty):\s+(\d+) kB$/gm)].reduce((sum, [, kib]) => sum + Number(kib) * 1024, 0);
}

/**
 * Helpers inside the page. `settled` resolves with the time at which a frame directly followed the previous one, which
 * means that the page responds; `painted` with the time at which the current content has been drawn.
 */
const probes = `
globalThis.bench = {
  settled: () => new Promise((resolve) => {
    let last = performance.now();
    const next = (now) => {
      if (now - last < 50) return resolve(last);
      last = now;
      requestAnimationFrame(next);
    };
    requestAnimationFrame((now) => { last = now; requestAnimationFrame(next); });
  }),
  painted: () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(() => resolve(performance.now()), 0))),
  until: (condition) => new Promise((resolve) => {
    const look = () => {
      if (!condition()) return false;
      watcher.disconnect();
      resolve();
      return true;
    };
    const watcher = new MutationObserver(look);
    if (!look()) watcher.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
  }),
  frames: () => {
    const times = [];
    let last = performance.now();
    let isOn = true;
    const next = (now) => {
      times.push(now - last);
      last = now;
      if (isOn) requestAnimationFrame(next);
    };
    requestAnimationFrame((now) => { last = now; requestAnimationFrame(next); });
    globalThis.bench.stopFrames = () => { isOn = false; return times; };
  },
};`;
