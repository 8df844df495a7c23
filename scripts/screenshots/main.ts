/**
 * Pictures of every page of the console, on a desk and on a phone, light and dark, over a station with scripted runs:
 *   npm run screenshots [-- FOLDER] [--only NAME]
 */
import { mkdir, mkdtempDisposable } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Browser, chromium } from "playwright-core";
import { startStationProcess } from "../../bench/station-process.ts";
import { signedIn } from "../../test/support/signed-in.ts";
import { makeThings, type Shown } from "./scripted-runs.ts";
import { makeWork, type ShownWork } from "./scripted-work.ts";

const root = join(import.meta.dirname, "..", "..");
/** Debian's Chromium. */
const CHROMIUM = "/usr/bin/chromium";
const PATIENCE_MS = 60_000;
/** Added after the page has its data: a chart, a terminal or an editor draws itself a moment later. */
const DRAWN_MS = 1_500;

const looks = [
  { name: "desktop-light", phone: false, dark: false },
  { name: "desktop-dark", phone: false, dark: true },
  { name: "phone-light", phone: true, dark: false },
  { name: "phone-dark", phone: true, dark: true },
] as const;

const pagesOf = ({ run, fork, sandbox }: Shown, work: ShownWork): Readonly<Record<string, string>> => ({
  ...{
    runs: "/runs",
    "runs-none": "/runs?q=nothing+like+this",
    sandboxes: "/sandboxes",
    inbox: "/inbox",
    start: "/start",
    welcome: "/welcome",
  },
  ...{
    work: "/work",
    "work-none": "/work?q=nothing+like+this",
    workflow: `/workflows/${work.workflow}`,
    "workflow-step": `/workflows/${work.failed}?step=check`,
    "workflow-events": `/workflows/${work.workflow}?tab=events`,
    "workflow-definition": `/workflows/${work.workflow}?tab=definition`,
    "spec-gate": `/specs/${work.gate}`,
    merge: `/merges/${work.merge}`,
    ship: `/ships/${work.ship}`,
    best: `/bests/${work.best}`,
    "run-steps": `/runs/${run}?tab=steps&step=2`,
    "run-forks": `/runs/${run}?tab=forks`,
    compare: `/compare/${run}/${fork}`,
  },
  ...Object.fromEntries(
    ["phases", "document", "versions", "tasks", "coverage"].map((tab) => [`spec-${tab}`, `/specs/${work.spec}?tab=${tab}`]),
  ),
  ...Object.fromEntries(["timeline", "changes", "files", "details"].map((tab) => [`run-${tab}`, `/runs/${run}?tab=${tab}`])),
  ...Object.fromEntries(
    ["terminal", "files", "processes", "ports", "network", "resources", "snapshots", "details"].map((tab) => [
      `sandbox-${tab}`,
      `/sandboxes/${sandbox}?tab=${tab}`,
    ]),
  ),
  ...Object.fromEntries(
    ["look", "tokens", "secrets", "agents", "doctor", "isolation", "storage", "audit", "shortcuts"].map((part) => [
      `settings-${part}`,
      `/settings/${part}`,
    ]),
  ),
});

const { values, positionals } = parseArgs({ allowPositionals: true, options: { only: { type: "string", multiple: true } } });
const folder = positionals[0] ?? join(root, "build", "screenshots");
await mkdir(folder, { recursive: true });
await using work = await mkdtempDisposable(join(tmpdir(), "caisson-screenshots-"));
await using station = await startStationProcess({ ready: 0 });
process.stderr.write("creating runs, a sandbox and work …\n");
const place = { root, folder: work.path };
const [shownThings, shownWork] = [await makeThings(station.client, place), await makeWork(station.client, place)];
await using browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
for (const look of looks) await takeAll(browser, look);
await station.client.sandboxes.remove(shownThings.sandbox);
for (const { run, status } of (await station.client.runs.list()).runs) if (status !== "ended") await station.client.runs.stop(run);

async function takeAll(from: Browser, { name, phone, dark }: (typeof looks)[number]): Promise<void> {
  const context = await from.newContext({
    viewport: phone ? { width: 390, height: 844 } : { width: 1360, height: 860 },
    hasTouch: phone,
    colorScheme: dark ? "dark" : "light",
    reducedMotion: "reduce",
    storageState: signedIn(station.url, station.token),
  });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  await page.goto(`${station.url}/settings/look`);
  await page.getByRole("heading", { level: 1 }).waitFor();
  for (const [part, path] of Object.entries(pagesOf(shownThings, shownWork))) {
    if (values.only && !values.only.some((each) => part.startsWith(each))) continue;
    process.stderr.write(`${name} ${part}\n`);
    await page.goto(`${station.url}${path}`);
    await page.getByRole("heading", { level: 1 }).waitFor();
    await page.waitForTimeout(DRAWN_MS);
    await page.getByRole("status", { name: "Loading" }).first().waitFor({ state: "hidden" });
    await page.screenshot({ path: join(folder, `${part}.${name}.png`) });
  }
  await context.close();
}
