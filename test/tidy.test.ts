import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { shortClosures } from "./tidy/closures.ts";
import { commentsWrapped } from "./tidy/comments.ts";
import { errorMessages, messagesIn } from "./tidy/error-messages.ts";
import { facesKnowTheInterface, interfaceIsTypes } from "./tidy/faces.ts";
import { includeDirections, mayInclude, tagsByName } from "./tidy/guest-includes.ts";
import { regularExpressionsAreLinear, regularExpressionsAreWritten } from "./tidy/regular-expressions.ts";
import {
  childProcessOnlyInRuntimes,
  coloursHaveNames,
  consoleKnowsTheClient,
  deadLinks,
  dependenciesDecided,
  environmentOnlyInMain,
  folderShares,
  importDirections,
  importsOf,
  lengths,
  mayImport,
  names,
  noMachinePaths,
  runtimesApart,
  type SourceFile,
  terminalOnlyByLines,
  type Violation,
} from "./tidy/rules.ts";
import { testsHaveTime, waitsArePatient } from "./tidy/waits.ts";

const root = join(import.meta.dirname, "..");
const exists = (path: string) => existsSync(join(root, path));

/** What git knows of, and what is new and not ignored. */
function repository(): SourceFile[] {
  const listed = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], { cwd: root, encoding: "utf8" });
  return listed
    .split("\0")
    .filter((path) => path !== "" && exists(path) && statSync(join(root, path)).isFile() && statSync(join(root, path)).size < 2_000_000)
    .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));
}

const files = repository();
// The rules and their bad examples name what they forbid.
const notExamples = files.filter((file) => !file.path.startsWith("test/tidy"));

const rules: Record<string, { rule: (files: readonly SourceFile[]) => Violation[]; bad: SourceFile[] }> = {
  "imports go in the direction of the table": {
    rule: importDirections,
    bad: [{ path: "src/contract/bad.ts", text: 'import { createStore } from "../sandbox/store.ts";' }],
  },
  "lazy imports go in the direction of the table, too": {
    rule: importDirections,
    bad: [{ path: "src/sandbox/bad.ts", text: 'const { run } = await import("../cli/run.ts");' }],
  },
  "a folder that the table does not know is refused": {
    rule: importDirections,
    bad: [{ path: "src/elsewhere/new.ts", text: "export {};" }],
  },
  "runtimes do not reach into each other": {
    rule: runtimesApart,
    bad: [{ path: "src/runtimes/docker/bad.ts", text: 'import { x } from "../oci/runtime.ts";' }],
  },
  "the CLI does not reach into a runtime": {
    rule: runtimesApart,
    bad: [{ path: "src/cli/bad.ts", text: 'import { x } from "../runtimes/oci/runtime.ts";' }],
  },
  "only runtimes start processes of the host": {
    rule: childProcessOnlyInRuntimes,
    bad: [{ path: "src/cli/bad.ts", text: 'import { spawn } from "node:child_process";' }],
  },
  "only the composition roots read the environment": {
    rule: environmentOnlyInMain,
    bad: [{ path: "src/sandbox/bad.ts", text: "const home = process.env.HOME;" }],
  },
  "nobody writes to the terminal past its lines": {
    rule: terminalOnlyByLines,
    bad: [{ path: "src/cli/bad.ts", text: "await context.stdout.writeRaw(Buffer.from(name));" }],
  },
  "nobody writes to the process's own streams": {
    rule: terminalOnlyByLines,
    bad: [{ path: "src/station/bad.ts", text: "process.stderr.write(name);" }],
  },
  "faces know the contract and the station's interface": {
    rule: facesKnowTheInterface,
    bad: [{ path: "src/cli/bad.ts", text: 'const { createStore } = await import("../sandbox/store.ts");' }],
  },
  "so does the client, which stands for a station": {
    rule: facesKnowTheInterface,
    bad: [{ path: "src/client/bad.ts", text: 'import { createRuns } from "../station/runs/runs.ts";' }],
  },
  "the station's interface is types alone": {
    rule: interfaceIsTypes,
    bad: [{ path: "src/station/runs/verbs.ts", text: 'import { createRuns } from "./runs.ts";' }],
  },
  "functions are short": {
    rule: shortClosures,
    bad: [{ path: "src/station/bad.ts", text: `export function create() {\n${"  work();\n".repeat(100)}}\n` }],
  },
  "the console knows the client and the contract": {
    rule: consoleKnowsTheClient,
    bad: [{ path: "console/src/bad.tsx", text: 'import { createRuns } from "../../src/station/runs/runs.ts";' }],
  },
  "components are short": { rule: lengths, bad: [{ path: "console/src/bad.tsx", text: "\n".repeat(251) }] },
  "files are short": { rule: lengths, bad: [{ path: "src/cli/bad.ts", text: "\n".repeat(301) }] },
  "tests are not long either": { rule: lengths, bad: [{ path: "test/bad.test.ts", text: "\n".repeat(301) }] },
  "no folder is most of the code": { rule: folderShares, bad: [{ path: "src/network/bad.ts", text: "\n" }] },
  "the guest's folders include in one direction": {
    rule: includeDirections,
    bad: [{ path: "guest/src/wire/bad.c", text: '#include "wire/frame.h"\n#include "processes/process.h"\n' }],
  },
  "the guest's folders include nothing of what puts them together": {
    rule: includeDirections,
    bad: [{ path: "guest/src/files/bad.c", text: '#include "dispatch.h"\n' }],
  },
  "fields of frames have names": {
    rule: tagsByName,
    bad: [{ path: "guest/src/files/bad.c", text: 'request_path(worker, request, 1, "read");' }],
  },
  "C files are short": { rule: lengths, bad: [{ path: "guest/src/bad.c", text: "\n".repeat(301) }] },
  "comments are wrapped": {
    rule: commentsWrapped,
    bad: [{ path: "src/cli/bad.ts", text: `export {};\n  /** ${"so many words ".repeat(9)}*/\n` }],
  },
  "comments of several lines, too": {
    rule: commentsWrapped,
    bad: [{ path: "guest/src/bad.c", text: `/* Short.\n * ${"so many words ".repeat(9)}\n */\n` }],
  },
  "colours are values of the design": {
    rule: coloursHaveNames,
    bad: [{ path: "console/src/parts/bad.module.css", text: ".bad {\n  color: #ff00ff;\n}\n" }],
  },
  "colours of components, too": {
    rule: coloursHaveNames,
    bad: [{ path: "console/src/parts/bad.tsx", text: 'const style = { background: "rgb(0 0 0 / 0.5)" };' }],
  },
  "file names say something": { rule: names, bad: [{ path: "src/lib/utils.ts", text: "" }] },
  "file names are kebab-case": { rule: names, bad: [{ path: "src/lib/badName.ts", text: "" }] },
  "links in pages lead somewhere": { rule: deadLinks(exists), bad: [{ path: "docs/bad.md", text: "[a](nowhere.md)" }] },
  "each dependency is in an ADR": {
    rule: dependenciesDecided,
    bad: [
      { path: "package.json", text: '{"dependencies":{"left-pad":"1"}}' },
      { path: "docs/adr/0001.md", text: "zod" },
    ],
  },
  "messages of errors begin in lower case": {
    rule: errorMessages,
    bad: [{ path: "src/cli/bad.ts", text: 'throw new CaissonError("not_found", "There is no run r_1");' }],
  },
  "messages of errors have no full stop": {
    rule: errorMessages,
    bad: [{ path: "src/cli/bad.ts", text: 'throw new CaissonError(\n  code,\n  "there is no run.",\n);' }],
  },
  "messages of errors are one fragment": {
    rule: errorMessages,
    bad: [{ path: "src/cli/bad.ts", text: 'new CaissonError("busy", `the run $' + '{f("}.")} waits. It has no sandbox`)' }],
  },
  "regular expressions are written, not made from text": {
    rule: regularExpressionsAreWritten,
    bad: [{ path: "src/workspace/bad.ts", text: "const all = new RegExp(patterns.join('|'));" }],
  },
  "regular expressions take no square of a line's length": {
    rule: regularExpressionsAreLinear,
    bad: [{ path: "src/workspace/bad.ts", text: "const end = line.replace(/\\s+$/, '');" }],
  },
  "nor more": {
    rule: regularExpressionsAreLinear,
    bad: [{ path: "console/src/bad.tsx", text: "const all = /^(a+)+$/.test(line);" }],
  },
  "waits of tests make no claim on speed": {
    rule: waitsArePatient,
    bad: [{ path: "src/api/bad.test.ts", text: "    await vi.waitFor(() => expect(seen).toBe(1));\n" }],
  },
  "tests have the time that the project gives them": {
    rule: testsHaveTime,
    bad: [{ path: "src/api/bad.test.ts", text: 'test("x", { timeout: 60_000 }, async () => {\n' }],
  },
  "no path of somebody's machine": { rule: noMachinePaths, bad: [{ path: "docs/bad.md", text: "see /home/someuser/project/x" }] },
};

describe("the repository is tidy", () => {
  test.each(Object.entries(rules))("%s", (_name, { rule, bad }) => {
    expect(rule(bad), "the rule sees a bad example").not.toEqual([]);
    expect(rule(notExamples)).toEqual([]);
  });

  test("the rules saw the repository", () => {
    for (const folder of Object.keys(mayImport).filter(exists)) {
      expect(files.filter((file) => file.path.startsWith(`src/${folder}/`)).length, folder).toBeGreaterThan(1);
    }
    const sources = files.filter((file) => file.path.startsWith("src/"));
    expect(sources.length).toBeGreaterThan(40);
    expect(sources.flatMap(importsOf).length).toBeGreaterThan(100);
    expect(sources.flatMap(({ text }) => messagesIn(text)).length).toBeGreaterThan(300);
    expect(files.filter((file) => file.path.endsWith(".md")).length).toBeGreaterThan(5);
    for (const folder of Object.keys(mayInclude)) {
      expect(files.filter((file) => file.path.startsWith(`guest/src/${folder}/`)).length, folder).toBeGreaterThan(1);
    }
  });
});
