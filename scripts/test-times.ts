import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";

/**
 * Prints how long the lanes of the last `npm test` took, with their slowest files and tests, from vitest's reports in
 * build/test-results (or those that the command names).
 */

const FILES_MAX = 25;
const TESTS_MAX = 25;

interface Report {
  testResults: {
    name: string;
    startTime: number;
    endTime: number;
    assertionResults: { fullName: string; duration?: number | null }[];
  }[];
}

const root = join(import.meta.dirname, "..");
const results = join(root, "build", "test-results");
const named = process.argv.slice(2);
const reports = named.length > 0 ? named : readdirSync(results).flatMap((name) => (name.endsWith(".json") ? [join(results, name)] : []));

const seconds = (ms: number) => `${(ms / 1000).toFixed(1).padStart(7)} s`;

const files: { lane: string; name: string; ms: number; tests: number }[] = [];
const tests: { name: string; ms: number }[] = [];
for (const path of reports) {
  const lane = /([^/]+)\.json$/.exec(path)?.[1] ?? path;
  const { testResults }: Report = JSON.parse(readFileSync(path, "utf8"));
  for (const { name, startTime, endTime, assertionResults } of testResults) {
    const file = relative(root, name);
    files.push({ lane, name: file, ms: endTime - startTime, tests: assertionResults.length });
    tests.push(...assertionResults.map(({ fullName, duration }) => ({ name: `${file}: ${fullName}`, ms: duration ?? 0 })));
  }
  const own = files.filter((each) => each.lane === lane);
  const sum = own.reduce((all, { ms }) => all + ms, 0);
  const began = Math.min(...testResults.map(({ startTime }) => startTime));
  const ended = Math.max(...testResults.map(({ endTime }) => endTime));
  console.log(`${lane}: ${own.length} files,${seconds(ended - began)} from first to last,${seconds(sum)} in all files combined`);
}
console.log("\nslowest files");
for (const { lane, name, ms, tests: count } of slowest(files, FILES_MAX)) console.log(`${seconds(ms)}  ${lane}  ${name} (${count} tests)`);
console.log("\nslowest tests");
for (const { name, ms } of slowest(tests, TESTS_MAX)) console.log(`${seconds(ms)}  ${name}`);

function slowest<Each extends { ms: number }>(all: readonly Each[], max: number): Each[] {
  return [...all].sort((one, other) => other.ms - one.ms).slice(0, max);
}
