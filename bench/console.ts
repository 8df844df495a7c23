import { writeFile } from "node:fs/promises";
import { loadavg } from "node:os";
import { join } from "node:path";
import { emptyTimeline, foldEvent, type NumberedEvent } from "../console/src/pages/run/timeline.ts";
import { type BenchBrowser, type BenchPage, openBrowser, receivedBytes } from "./console-browser.ts";
import { fillLog, longRun, runIdOf } from "./console-log.ts";
import { summarise } from "./measure.ts";
import type { Figures, Row, Target } from "./report.ts";
import { type StationProcess, startStationProcess } from "./station-process.ts";

const RUNS = 10_000;
/** The number of events, by the number of the run. */
const long = new Map([
  [20_001, 10_000],
  [20_002, 50_000],
]);
const LOADS = 5;
const WHEEL_PX = 1_500;
const MESSAGES = 40;
/** Keys that appear in the tasks of some listed runs; every key changes the rows. */
const TYPED = ["0", "4", "2", "Backspace", "Backspace", "1", "7", "Backspace"];
const GROUP = "the console, in headless Chromium";

/** Measures what a user of the console waits for, over a station with many runs and with long ones. */
export async function benchConsole(): Promise<Figures> {
  let folder = "";
  await using station = await startStationProcess({
    ready: 0,
    async prepare(stateDir) {
      folder = stateDir;
      await fillLog(stateDir, { long, short: RUNS });
    },
  });
  await using browser = await openBrowser(station);
  const figures = [
    await benchFirstLoad(browser),
    await benchLongRun(browser),
    await benchMemory(browser),
    await benchAppended({ browser, station, folder }),
    await benchFilter(browser),
  ];
  return { rows: figures.flatMap(({ rows }) => rows), targets: figures.flatMap(({ targets }) => targets) };
}

function row(name: string, figure: Omit<Row, "group" | "name" | "note">): Row {
  return { group: GROUP, name, ...figure, note: `load ${(loadavg()[0] ?? 0).toFixed(1)}` };
}

const ms = (name: string, times: readonly number[]): Row => {
  const { p50, p95, n } = summarise(times);
  return row(name, { value: p50, p95, unit: "ms", n });
};

async function benchFirstLoad(browser: BenchBrowser): Promise<Figures> {
  // A page without data: this measures the program and its fonts.
  await using page = await browser.open("/settings/look");
  await page.page.getByRole("heading", { level: 1 }).waitFor();
  await evaluated(page, "bench.settled()");
  await page.page.evaluate("document.fonts.ready.then(() => undefined)");
  const kb = receivedBytes(page) / 1000;
  const measured = { name: "first load of the console, over the wire", measured: kb, unit: "kB", atMost: 250 } satisfies Target;
  return { rows: [row("first load, over the wire", { value: kb, unit: "kB", n: 1 })], targets: [measured] };
}

/** Returns how many items the page makes of a run, which shows when the last one has arrived. */
function itemsOf(n: number): number {
  const timeline = emptyTimeline();
  const at = new Date(0).toISOString();
  longRun(n, long.get(n) ?? 0).forEach((event, index) => {
    foldEvent(timeline, { ...event, at, seq: index + 1 } as unknown as NumberedEvent);
  });
  return timeline.items.length;
}

async function openLong(browser: BenchBrowser, n: number): Promise<{ page: BenchPage; loadedMs: number }> {
  const page = await browser.open(`/runs/${runIdOf(n)}`);
  const last = `Number(document.querySelector('input[aria-label="Position in the run"]')?.max) === ${itemsOf(n) - 1}`;
  const loadedMs = await evaluated(page, `bench.until(() => ${last}).then(() => bench.settled())`);
  return { page, loadedMs };
}

async function benchLongRun(browser: BenchBrowser): Promise<Figures> {
  const loads: number[] = [];
  const worst: number[] = [];
  const frames: number[] = [];
  for (let at = 0; at < LOADS; at += 1) {
    const { page, loadedMs } = await openLong(browser, 20_001);
    loads.push(loadedMs);
    const times = await scrollThrough(page);
    worst.push(Math.max(...times));
    frames.push(...times);
    await page[Symbol.asyncDispose]();
  }
  return {
    rows: [
      ms("a run of 10,000 events, cold, until all are loaded and the page is idle", loads),
      ms("a frame while scrolling through it", frames),
      ms("the longest frame of one pass", worst),
    ],
    targets: [
      { name: "cold load of a run of 10,000 events", measured: summarise(loads).p50, unit: "ms", atMost: 2_000 },
      { name: "longest frame while scrolling through it", measured: summarise(worst).p50, unit: "ms", atMost: 100 },
    ],
  };
}

/** Scrolls from the first to the last item by the wheel, and returns the times between frames. */
async function scrollThrough({ page }: BenchPage): Promise<number[]> {
  const log = page.getByRole("log", { name: "Timeline" });
  await log.hover();
  await page.evaluate("bench.frames()");
  for (let before = -1; ; ) {
    for (let turn = 0; turn < 8; turn += 1) await page.mouse.wheel(0, WHEEL_PX);
    const at = await log.evaluate((element) => (element as unknown as { scrollTop: number }).scrollTop);
    if (at === before) break;
    before = at;
  }
  return (await page.evaluate("bench.stopFrames()")) as number[];
}

async function benchMemory(browser: BenchBrowser): Promise<Figures> {
  const { page, loadedMs } = await openLong(browser, 20_002);
  await page.page.getByRole("slider", { name: "Position in the run" }).press("End");
  await evaluated(page, "bench.settled()");
  await page.devtools.send("HeapProfiler.collectGarbage");
  const { usedSize } = await page.devtools.send("Runtime.getHeapUsage");
  const mib = (await browser.privateBytesOf(page)) / 2 ** 20;
  await page[Symbol.asyncDispose]();
  return {
    rows: [
      row("a run of 50,000 events, cold", { value: loadedMs, unit: "ms", n: 1 }),
      row("memory of the page's process", { value: mib, unit: "MiB", n: 1 }),
      row("of that, the JavaScript heap", { value: usedSize / 2 ** 20, unit: "MiB", n: 1 }),
    ],
    targets: [{ name: "memory of the page with 50,000 events", measured: mib, unit: "MiB", atMost: 286 }],
  };
}

/** Sends messages to a run that the station drives: each is an event, timed by the log. */
async function benchAppended(setup: { browser: BenchBrowser; station: StationProcess; folder: string }): Promise<Figures> {
  const { client } = setup.station;
  const script = join(setup.folder, "script.json");
  await writeFile(script, JSON.stringify({ turns: [{ calls: [{ tool: "bash", arguments: { command: "sleep 3600" } }] }] }));
  const { run } = await client.runs.start({ task: "Wait", model: `scripted:${script}`, source: { kind: "empty" } });
  const { page } = await openAtWork(setup.browser, run);
  const seen = new Map<string, number>();
  for (let n = 0; n < MESSAGES; n += 1) {
    const text = `message ${n} of the bench`;
    const visible = evaluated(
      page,
      `bench.until(() => document.querySelector('[role="log"]')?.textContent.includes(${JSON.stringify(text)})).then(() => bench.painted()).then(() => Date.now())`,
    );
    await client.runs.send(run, { text, mode: "queue" });
    seen.set(text, await visible);
  }
  const times: number[] = [];
  for await (const event of client.runs.events(run)) {
    const at = event.type === "message.received" ? seen.get(event.data.text) : undefined;
    if (at !== undefined) times.push(at - Date.parse(event.at));
  }
  await page[Symbol.asyncDispose]();
  await client.runs.stop(run);
  return {
    rows: [ms("an event, from its append until painted", times)],
    targets: [{ name: "event appended → visible, p95", measured: summarise(times).p95, unit: "ms", atMost: 150 }],
  };
}

async function openAtWork(browser: BenchBrowser, run: string): Promise<{ page: BenchPage }> {
  const page = await browser.open(`/runs/${run}`);
  await page.page.getByRole("button", { name: /^bash/ }).waitFor();
  await evaluated(page, "bench.settled()");
  return { page };
}

async function benchFilter(browser: BenchBrowser): Promise<Figures> {
  await using page = await browser.open("/runs");
  const box = page.page.getByRole("searchbox");
  await page.page.getByText(`${RUNS + long.size + 1} runs`).waitFor();
  await box.click();
  const times: number[] = [];
  for (const key of TYPED) {
    // The number of listed runs changes with every key, in the same commit as the rows.
    await page.page.evaluate(
      `(() => {
        const shown = () => document.querySelector("main header")?.textContent;
        const before = shown();
        globalThis.painted = new Promise((resolve) => document.addEventListener("keydown", (event) => {
          bench.until(() => shown() !== before).then(() => bench.painted()).then((now) => resolve(now - event.timeStamp));
        }, { once: true, capture: true }));
      })()`,
    );
    await page.page.keyboard.press(key);
    times.push(await evaluated(page, "painted"));
    await evaluated(page, "bench.settled()");
  }
  return {
    rows: [ms("a key in the search box over 10,000 runs, until painted", times)],
    targets: [{ name: "filter keystroke → painted, p95", measured: summarise(times).p95, unit: "ms", atMost: 100 }],
  };
}

async function evaluated({ page }: BenchPage, script: string): Promise<number> {
  return (await page.evaluate(script)) as number;
}
