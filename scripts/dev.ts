import { type ChildProcess, spawn } from "node:child_process";
import { watch } from "node:fs";
import { join } from "node:path";
import { chosenTests, distances, readImporters } from "./related.ts";

/**
 * Watches the sources. After each change, the compiler checks all types again, and the unit tests nearest to the saved
 * files run. Ctrl-C ends both.
 */

/** Within this time, an editor finishes saving a file, and git finishes changing many. */
const SETTLED_MS = 150;

const root = join(import.meta.dirname, "..");
const folders = ["src", "test", "bench", "guest", "console", "scripts"];
const env = { ...process.env, PATH: `${join(root, "node_modules", ".bin")}:${process.env.PATH}` };

const changed = new Set<string>();
let tests: ChildProcess | null = null;
let timer: NodeJS.Timeout | undefined;

/** One run at a time: files that are saved during a run are tested after it. */
function runTests(): void {
  if (tests !== null || changed.size === 0) return;
  const { chosen, leftOut } = chosenTests(distances([...changed], readImporters()), { isAll: false });
  const what = [...changed].join(", ");
  changed.clear();
  if (chosen.length === 0) {
    console.log(`dev: no nearby unit test imports ${what}`);
    return;
  }
  console.log(`dev: ${what}: ${chosen.length} test files${leftOut === 0 ? "" : `, ${leftOut} left to npm run related -- --all`}`);
  const child = spawn("vitest", ["run", "--project", "unit", "--reporter=dot", ...chosen], {
    cwd: root,
    env,
    stdio: ["ignore", "inherit", "inherit"],
  });
  tests = child;
  child.on("close", () => {
    tests = null;
    runTests();
  });
}

function onChange(path: string): void {
  if (!/\.tsx?$/.test(path) || path.includes("/build/")) return;
  changed.add(path);
  clearTimeout(timer);
  timer = setTimeout(runTests, SETTLED_MS);
}

for (const folder of folders) {
  watch(join(root, folder), { recursive: true }, (_event, name) => onChange(join(folder, String(name))));
}
const types = spawn("tsc", ["--watch", "--preserveWatchOutput"], { cwd: root, env, stdio: ["ignore", "inherit", "inherit"] });
types.on("close", (code) => process.exit(code ?? 1));
// A terminal also signals the children; a signal to this process alone is passed on to them.
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => {
    for (const child of [types, tests]) child?.kill(signal);
    process.exit(130);
  });
}
console.log("dev: watching; save a file to run its tests, Ctrl-C to end");
