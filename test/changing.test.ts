import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

const root = join(import.meta.dirname, "..");
const folder = join(root, "docs", "changing");

const PRODUCT_FILES_MAX = 4;
const things = ["event", "field", "page", "runtime", "tool", "verb"];

const pages = readdirSync(folder)
  .filter((name) => name.endsWith(".md"))
  .map((name) => ({ name: name.replace(/\.md$/, ""), text: readFileSync(join(folder, name), "utf8") }));

const tracked = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], { cwd: root, encoding: "utf8" })
  .split("\n")
  .filter((path) => path !== "" && existsSync(join(root, path)));

/**
 * A path from the root that ends in an extension or a slash: `src/verbs/<group>.ts`, `test/console/`, `CHANGELOG.md`.
 */
const FILE = /^(?:(?:src|console|guest|docs|test|bench|scripts|examples)\/[\w./<>*-]*(?:\.\w+|\/)|[A-Z]+\.md)$/;

/** Returns the files that a page names in backticks. Skips code blocks, which are examples. */
function filesIn(text: string): string[] {
  const prose = text.replaceAll(/^```[\s\S]*?^```$/gm, "");
  return [...prose.matchAll(/`([^`\n]+)`/g)].map(([, quoted = ""]) => quoted).filter((quoted) => FILE.test(quoted));
}

/** Returns the files that a page tells its reader to change: those that begin a list item or a table row. */
function listedIn(text: string): string[] {
  const lines = text.split("\n").filter((line) => /^(?:\d+\.|[-*]|\|) +`/.test(line));
  return lines.flatMap((line) => filesIn(/^[^:]*/.exec(line.replace(/^\| +([^|]*)\|.*$/, "$1"))?.[0] ?? ""));
}

function isProduct(path: string): boolean {
  return /^(src|console|guest)\//.test(path) && !/\.test\.tsx?$|\/testing[^/]*$|\/golden\/|^guest\/test\//.test(path);
}

/** Returns whether the repository has a file of this name. `<group>` and `*` match any part of a name. */
function isThere(named: string): boolean {
  const pattern = named
    .replaceAll(/<[\w-]+>/g, "*")
    .replaceAll(/[.+]/g, "\\$&")
    .replaceAll("*", "[^/]+");
  const known = new RegExp(`^${pattern}${named.endsWith("/") ? "" : "$"}`);
  return tracked.some((path) => known.test(path));
}

const missingIn = (text: string) => [...new Set(filesIn(text))].filter((path) => !isThere(path));

describe("the pages of docs/changing", () => {
  test("cover the things that people add", () => {
    expect(pages.map(({ name }) => name).sort()).toEqual([...things].sort());
  });

  test.each(pages)("$name.md names files that exist", ({ text }) => {
    expect(filesIn(text).length).toBeGreaterThan(2);
    expect(missingIn(text)).toEqual([]);
  });

  test.each(pages)(`$name.md lists at most ${PRODUCT_FILES_MAX} product files`, ({ text }) => {
    const listed = [...new Set(listedIn(text).filter(isProduct))];
    expect(listed.length).toBeGreaterThan(0);
    expect(listed.length, listed.join(", ")).toBeLessThanOrEqual(PRODUCT_FILES_MAX);
  });
});

describe("the page checks", () => {
  const page = [
    "1. `src/gone.ts`: a file",
    "2. `src/runtimes/<name>/runtime.ts` and `src/runtimes/<name>/gone.ts`: a pattern",
    "3. `test/changing.test.ts`: a test. See `src/main.ts`.",
    "| `docs/changing/` | a folder |",
    "```ts\n`src/example.ts`\n```",
  ].join("\n");

  test("report files that do not exist", () => {
    expect(missingIn(page)).toEqual(["src/gone.ts", "src/runtimes/<name>/gone.ts"]);
  });

  test("count only the product files that begin a list item", () => {
    expect(listedIn(page).filter(isProduct)).toEqual(["src/gone.ts", "src/runtimes/<name>/runtime.ts", "src/runtimes/<name>/gone.ts"]);
  });
});
