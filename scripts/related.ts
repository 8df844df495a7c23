import { execFileSync, spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import { relativeImportsOf } from "../test/tidy/rules.ts";

/**
 * Checks what a change can break: types, format and lint of the changed files, and the unit tests that import one of
 * them, nearest first. If the command names no files, all files that differ from main count as changed, committed or
 * not.
 */

const usage = `npm run related -- [--all] [--e2e] [FILE…]

Checks types, format, lint and the unit tests that import a changed file.

  --all  run every related unit test, even many, and those of the slow lane
  --e2e  run the related end-to-end tests too (most need root)
`;

/** More tests would take longer than a developer waits after saving a file. */
const TESTS_MAX = 8;

const root = join(import.meta.dirname, "..");
const sources = /^(?:src|test|bench|guest|console|scripts|examples)\/.*\.tsx?$/;
const isE2e = (path: string) => path.endsWith(".e2e.test.ts");
const isUnit = (path: string) => /\.test\.tsx?$/.test(path) && !isE2e(path);
const isSlow = (path: string) => path.endsWith(".slow.test.ts");

/** Returns how many imports are between a changed file and each file that it can break. */
export function distances(changed: readonly string[], importers: ReadonlyMap<string, readonly string[]>): Map<string, number> {
  const found = new Map(changed.map((path) => [path, 0]));
  for (const [path, distance] of found) {
    for (const importer of importers.get(path) ?? []) if (!found.has(importer)) found.set(importer, distance + 1);
  }
  return found;
}

/** Returns the relative imports that exist at run time. The compiler checks the others, which import only types. */
export function importedBy(path: string, text: string): string[] {
  const code = text.replaceAll(/\b(?:import|export) type\b[^"';]*?\bfrom\s*"[^"]+"/g, "");
  return relativeImportsOf({ path, text: code });
}

/**
 * Returns the unit tests to run, nearest first, and how many others the change can break. Unless `isAll` is set,
 * includes slow tests only if they are next to a changed file.
 */
export function chosenTests(found: ReadonlyMap<string, number>, { isAll }: { isAll: boolean }): { chosen: string[]; leftOut: number } {
  const related = [...found].filter(([path]) => isUnit(path)).sort((one, other) => one[1] - other[1]);
  if (isAll) return { chosen: related.map(([path]) => path), leftOut: 0 };
  const folders = new Set([...found].flatMap(([path, distance]) => (distance === 0 ? [dirname(path)] : [])));
  const isNear = (path: string, distance: number) => !isSlow(path) || (distance < 2 && folders.has(dirname(path)));
  const near = related.filter(([path, distance]) => isNear(path, distance)).slice(0, TESTS_MAX);
  return { chosen: near.map(([path]) => path), leftOut: related.length - near.length };
}

export function changedFiles(): string[] {
  const base = gitLines("merge-base", "HEAD", gitLines("branch", "--list", "main").length > 0 ? "main" : "HEAD")[0] ?? "HEAD";
  const changed = gitLines("diff", "--name-only", "--diff-filter=d", base);
  return [...new Set([...changed, ...gitLines("ls-files", "--others", "--exclude-standard")])];
}

/** Returns the importers of each file. */
export function readImporters(): Map<string, string[]> {
  const files = gitLines("ls-files", "--cached", "--others", "--exclude-standard").filter((path) => sources.test(path));
  const importers = new Map<string, string[]>();
  for (const path of files.filter((each) => existsSync(join(root, each)))) {
    for (const imported of importedBy(path, readFileSync(join(root, path), "utf8"))) {
      importers.set(imported, [...(importers.get(imported) ?? []), path]);
    }
  }
  return importers;
}

/**
 * Runs a program and prints its output if it fails. Prints only at the end, so that parallel programs do not mix lines.
 */
async function step(name: string, argv: readonly [string, ...string[]]): Promise<boolean> {
  const began = Date.now();
  const [program, ...args] = argv;
  const path = `${join(root, "node_modules", ".bin")}:${process.env.PATH}`;
  const child = spawn(program, args, { cwd: root, env: { ...process.env, PATH: path }, stdio: ["ignore", "pipe", "pipe"] });
  const output: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => output.push(chunk));
  const code = await new Promise<number | null>((ended) => child.on("close", ended).on("error", () => ended(null)));
  if (code !== 0) process.stdout.write(Buffer.concat(output));
  console.log(`related: ${name} ${code === 0 ? "ok" : "FAILED"}, ${((Date.now() - began) / 1000).toFixed(1)} s`);
  return code === 0;
}

function gitLines(...argv: string[]): string[] {
  const options = { cwd: root, encoding: "utf8", maxBuffer: 64 << 20 } as const;
  return execFileSync("git", argv, options)
    .split("\n")
    .filter((line) => line !== "");
}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { all: { type: "boolean" }, e2e: { type: "boolean" }, help: { type: "boolean" } },
  });
  if (values.help) {
    process.stdout.write(usage);
    return 0;
  }
  const named = positionals.map((path) => relative(root, resolve(path)));
  const changed = named.length > 0 ? named : changedFiles();
  if (changed.length === 0) {
    console.log("related: nothing differs from main");
    return 0;
  }
  const found = distances(changed, readImporters());
  const { chosen, leftOut } = chosenTests(found, { isAll: values.all === true });
  const rest = leftOut === 0 ? "" : `; ${leftOut} more import it from further away or are slow (--all runs them)`;
  console.log(`related: ${changed.length} changed, ${chosen.length} test files${rest}`);
  const linted = changed.filter((path) => /\.(tsx?|json|css|cjs|mjs)$/.test(path) && existsSync(join(root, path)));
  const isOfConsole = changed.some((path) => /^(console|src\/(contract|client|verbs|lib))\//.test(path));
  const steps = [
    step("types", ["tsc", "--checkers", "2"]),
    ...(isOfConsole ? [step("the console's types", ["tsc", "-p", "console", "--checkers", "2"])] : []),
    ...(linted.length > 0
      ? [step("format and lint", ["biome", "check", "--error-on-warnings", "--no-errors-on-unmatched", ...linted])]
      : []),
    step("tests", ["vitest", "run", "--project", "unit", "--reporter=dot", "test/tidy.test.ts", ...chosen]),
  ];
  const results = await Promise.all(steps);
  const e2e = [...found.keys()].filter(isE2e);
  if (values.e2e && e2e.length > 0) results.push(await step("end-to-end tests", ["vitest", "run", "--project", "e2e", ...e2e]));
  else if (e2e.length > 0) console.log(`related: ${e2e.length} end-to-end test files import it (--e2e runs them)`);
  return results.every(Boolean) ? 0 : 1;
}

if (import.meta.main) process.exitCode = await main();
