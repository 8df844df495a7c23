import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { branchExceptions, fewBranches } from "./tidy/branches.ts";
import { longClosures, shortClosures } from "./tidy/closures.ts";
import { commentsWrapped } from "./tidy/comments.ts";
import { errorMessages, messagesIn } from "./tidy/error-messages.ts";
import { facesKnowTheInterface, interfaceDeclares } from "./tidy/faces.ts";
import { failuresAreNotSwallowed } from "./tidy/failures.ts";
import { includeDirections, mayInclude, tagsByName } from "./tidy/guest-includes.ts";
import { waitingTestsShare } from "./tidy/lanes.ts";
import { lazyAtBorders, lazyExceptions } from "./tidy/laziness.ts";
import { namesAreNoParticiples } from "./tidy/participles.ts";
import { phrases, plainPhrases, titlesAreShort } from "./tidy/phrases.ts";
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
import { noModuleMocks, noWallClock, testsHaveTime, waitsArePatient } from "./tidy/waits.ts";

const root = join(import.meta.dirname, "..");
const exists = (path: string) => existsSync(join(root, path));

/** Returns the files that git tracks, and new ones that it does not ignore. */
function repository(): SourceFile[] {
  const listed = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], { cwd: root, encoding: "utf8" });
  return listed
    .split("\0")
    .filter((path) => path !== "" && exists(path) && statSync(join(root, path)).isFile() && statSync(join(root, path)).size < 2_000_000)
    .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));
}

const files = repository();
// Without the rules, whose bad examples contain what they forbid.
const notExamples = files.filter((file) => !file.path.startsWith("test/tidy"));

const rules: Record<string, { rule: (files: readonly SourceFile[]) => Violation[]; bad: SourceFile[] }> = {
  "imports follow the table's direction": {
    rule: importDirections,
    bad: [{ path: "src/contract/bad.ts", text: 'import { createStore } from "../sandbox/store.ts";' }],
  },
  "lazy imports follow the table's direction": {
    rule: importDirections,
    bad: [{ path: "src/sandbox/bad.ts", text: 'const { run } = await import("../cli/run.ts");' }],
  },
  "every folder is in the table": {
    rule: importDirections,
    bad: [{ path: "src/elsewhere/new.ts", text: "export {};" }],
  },
  "runtimes do not import each other": {
    rule: runtimesApart,
    bad: [{ path: "src/runtimes/docker/bad.ts", text: 'import { x } from "../oci/runtime.ts";' }],
  },
  "the CLI does not import a runtime": {
    rule: runtimesApart,
    bad: [{ path: "src/cli/bad.ts", text: 'import { x } from "../runtimes/oci/runtime.ts";' }],
  },
  "only runtimes start host processes": {
    rule: childProcessOnlyInRuntimes,
    bad: [{ path: "src/cli/bad.ts", text: 'import { spawn } from "node:child_process";' }],
  },
  "only the composition roots read the environment": {
    rule: environmentOnlyInMain,
    bad: [{ path: "src/sandbox/bad.ts", text: "const home = process.env.HOME;" }],
  },
  "the terminal only gets lines": {
    rule: terminalOnlyByLines,
    bad: [{ path: "src/cli/bad.ts", text: "await context.stdout.writeRaw(Buffer.from(name));" }],
  },
  "the process's own streams get no direct writes": {
    rule: terminalOnlyByLines,
    bad: [{ path: "src/station/bad.ts", text: "process.stderr.write(name);" }],
  },
  "faces import only the contract and the station's interface": {
    rule: facesKnowTheInterface,
    bad: [{ path: "src/cli/bad.ts", text: 'const { createStore } = await import("../sandbox/store.ts");' }],
  },
  "the client imports only the contract and the station's interface": {
    rule: facesKnowTheInterface,
    bad: [{ path: "src/client/bad.ts", text: 'import { createRuns } from "../station/runs/runs.ts";' }],
  },
  "the station's interface contains only declarations": {
    rule: interfaceDeclares,
    bad: [{ path: "src/verbs/runs.ts", text: 'import { createRuns } from "../station/runs/runs.ts";' }],
  },
  "modules load later only at a command or a group of verbs": {
    rule: lazyAtBorders,
    bad: [{ path: "src/station/bad.ts", text: '  const { work } = await import("./work.ts");' }],
  },
  "a reason to load later that a file does not need is removed": {
    rule: lazyAtBorders,
    bad: [{ path: "src/runtimes/docker/engine.ts", text: 'import Dockerode from "dockerode";' }],
  },
  "functions are short": {
    rule: shortClosures,
    bad: [{ path: "src/station/bad.ts", text: `export function create() {\n${"  work();\n".repeat(100)}}\n` }],
  },
  "functions have few branches": {
    rule: fewBranches,
    bad: [{ path: "src/station/bad.ts", text: `export function decide(n: number) {\n${"  if (n > 1 && n < 9) n++;\n".repeat(8)}}\n` }],
  },
  "functions have no unnecessary exceptions": {
    rule: fewBranches,
    bad: [{ path: "src/workspace/render-diff.ts", text: "export function renderSection() {}\n" }],
  },
  "the console imports only the client and the contract": {
    rule: consoleKnowsTheClient,
    bad: [{ path: "console/src/bad.tsx", text: 'import { createRuns } from "../../src/station/runs/runs.ts";' }],
  },
  "components are short": { rule: lengths, bad: [{ path: "console/src/bad.tsx", text: "\n".repeat(251) }] },
  "files are short": { rule: lengths, bad: [{ path: "src/cli/bad.ts", text: "\n".repeat(401) }] },
  "no folder has too large a share of the code": { rule: folderShares, bad: [{ path: "src/network/bad.ts", text: "\n" }] },
  "guest folders include each other in one direction": {
    rule: includeDirections,
    bad: [{ path: "guest/src/wire/bad.c", text: '#include "wire/frame.h"\n#include "processes/process.h"\n' }],
  },
  "guest folders do not include the files that combine them": {
    rule: includeDirections,
    bad: [{ path: "guest/src/files/bad.c", text: '#include "dispatch.h"\n' }],
  },
  "frame fields have names": {
    rule: tagsByName,
    bad: [{ path: "guest/src/files/bad.c", text: 'request_path(worker, request, 1, "read");' }],
  },
  "C files are short": { rule: lengths, bad: [{ path: "guest/src/bad.c", text: "\n".repeat(401) }] },
  "comments are wrapped": {
    rule: commentsWrapped,
    bad: [{ path: "src/cli/bad.ts", text: `export {};\n  /** ${"so many words ".repeat(9)}*/\n` }],
  },
  "comments of several lines are wrapped": {
    rule: commentsWrapped,
    bad: [{ path: "guest/src/bad.c", text: `/* Short.\n * ${"so many words ".repeat(9)}\n */\n` }],
  },
  "colors come from the design": {
    rule: coloursHaveNames,
    bad: [{ path: "console/src/parts/bad.module.css", text: ".bad {\n  color: #ff00ff;\n}\n" }],
  },
  "colors of components come from the design": {
    rule: coloursHaveNames,
    bad: [{ path: "console/src/parts/bad.tsx", text: 'const style = { background: "rgb(0 0 0 / 0.5)" };' }],
  },
  "file names are meaningful": { rule: names, bad: [{ path: "src/lib/utils.ts", text: "" }] },
  "file names are kebab-case": { rule: names, bad: [{ path: "src/lib/badName.ts", text: "" }] },
  "links in pages resolve": { rule: deadLinks(exists), bad: [{ path: "docs/bad.md", text: "[a](nowhere.md)" }] },
  "each dependency is in an ADR": {
    rule: dependenciesDecided,
    bad: [
      { path: "package.json", text: '{"dependencies":{"left-pad":"1"}}' },
      { path: "docs/adr/0001.md", text: "zod" },
    ],
  },
  "error messages begin in lower case": {
    rule: errorMessages,
    bad: [{ path: "src/cli/bad.ts", text: 'throw new CaissonError("not_found", "There is no run r_1");' }],
  },
  "error messages have no full stop": {
    rule: errorMessages,
    bad: [{ path: "src/cli/bad.ts", text: 'throw new CaissonError(\n  code,\n  "there is no run.",\n);' }],
  },
  "error messages are one fragment": {
    rule: errorMessages,
    bad: [{ path: "src/cli/bad.ts", text: 'new CaissonError("busy", `the run $' + '{f("}.")} waits. It has no sandbox`)' }],
  },
  "regular expressions are literals": {
    rule: regularExpressionsAreWritten,
    bad: [{ path: "src/workspace/bad.ts", text: "const all = new RegExp(patterns.join('|'));" }],
  },
  "regular expressions are not quadratic in a line's length": {
    rule: regularExpressionsAreLinear,
    bad: [{ path: "src/workspace/bad.ts", text: "const end = line.replace(/\\s+$/, '');" }],
  },
  "regular expressions are not exponential in a line's length": {
    rule: regularExpressionsAreLinear,
    bad: [{ path: "console/src/bad.tsx", text: "const all = /^(a+)+$/.test(line);" }],
  },
  "functions are not named with a bare participle": {
    rule: namesAreNoParticiples,
    bad: [{ path: "src/cli/bad.ts", text: "export async function told(context: CliContext): Promise<number> {}" }],
  },
  "arrow functions are not named with a bare participle": {
    rule: namesAreNoParticiples,
    bad: [{ path: "console/src/bad.tsx", text: "  const shown = async ({ id }: { id: string }): Promise<View> => {};" }],
  },
  "methods are not named with a bare participle": {
    rule: namesAreNoParticiples,
    bad: [{ path: "src/api/bad.ts", text: "export interface AuditSink {\n  made(call: AuditedCall): Promise<void>;\n}" }],
  },
  "properties that are functions are not named with a bare participle": {
    rule: namesAreNoParticiples,
    bad: [{ path: "console/src/bad.tsx", text: "const sink = { failed: async (call: Call) => append(call) };" }],
  },
  "values are not named with a bare participle": {
    rule: namesAreNoParticiples,
    bad: [{ path: "src/cli/bad.test.ts", text: "  const told = await station.runs.list();" }],
  },
  "files are not named with a bare participle": { rule: namesAreNoParticiples, bad: [{ path: "src/api/begun.ts", text: "" }] },
  "promises do not swallow failures": {
    rule: failuresAreNotSwallowed,
    bad: [{ path: "src/lib/bad.ts", text: 'const text = await readFile(path, "utf8").catch(() => null);' }],
  },
  "promises do not swallow failures with a typed result": {
    rule: failuresAreNotSwallowed,
    bad: [{ path: "src/lib/bad.ts", text: 'const state = await look().catch((): State => "unknown");' }],
  },
  "promises do not drop failures without a reason": {
    rule: failuresAreNotSwallowed,
    bad: [{ path: "src/lib/bad.ts", text: "await handle.close().catch(() => {\n  // It may be closed (or not).\n});" }],
  },
  "the second function of `then` does not swallow failures": {
    rule: failuresAreNotSwallowed,
    bad: [{ path: "src/lib/bad.ts", text: "const isThere = lstat(path).then(\n  (stat) => isFile(stat),\n  () => false,\n);" }],
  },
  "the second function of a one-line `then` does not swallow failures": {
    rule: failuresAreNotSwallowed,
    bad: [{ path: "console/src/bad.tsx", text: "await rest.then(finish, () => {});" }],
  },
  "try statements do not swallow failures": {
    rule: failuresAreNotSwallowed,
    bad: [{ path: "src/lib/bad.ts", text: "try {\n  return parse(text);\n} catch {\n  return undefined;\n}\n" }],
  },
  "waits in tests do not assume a fast machine": {
    rule: waitsArePatient,
    bad: [{ path: "src/api/bad.test.ts", text: "    await vi.waitFor(() => expect(seen).toBe(1));\n" }],
  },
  "tests use the project's timeout": {
    rule: testsHaveTime,
    bad: [{ path: "src/api/bad.test.ts", text: 'test("x", { timeout: 60_000 }, async () => {\n' }],
  },
  "tests do not limit wall-clock time": {
    rule: noWallClock,
    bad: [{ path: "src/api/bad.test.ts", text: "    expect(Date.now() - startedAt).toBeLessThan(20_000);\n" }],
  },
  "tests do not limit wall-clock time in a variable": {
    rule: noWallClock,
    bad: [{ path: "src/api/bad.test.ts", text: "const spent = Date.now() - began;\nexpect(spent / 1000, id).not.toBeGreaterThan(20);\n" }],
  },
  "tests do not limit wall-clock time that a function returns": {
    rule: noWallClock,
    bad: [{ path: "src/api/bad.test.ts", text: "async function time() {\n  await work();\n  return performance.now() - began;\n}\n" }],
  },
  "tests do not limit elapsed times of helpers": {
    rule: noWallClock,
    bad: [{ path: "src/api/bad.test.ts", text: "expect(await tookMs(work)).toBeLessThan(20_000);\n" }],
  },
  "tests do not replace modules": {
    rule: noModuleMocks,
    bad: [{ path: "src/api/bad.test.ts", text: 'vi.mock("node:fs/promises", () => ({}));' }],
  },
  "tests of the waiting lane share the machine": {
    rule: waitingTestsShare,
    bad: [{ path: "test/e2e/bad.wait.e2e.test.ts", text: 'import { ordinaryUser } from "../support/ordinary-user.ts";' }],
  },
  "imports of waiting-lane tests share the machine": {
    rule: waitingTestsShare,
    bad: [
      { path: "test/e2e/bad.wait.e2e.test.ts", text: 'import { rig } from "../support/rig.ts";' },
      { path: "test/support/rig.ts", text: 'import { useDockerEngine } from "./docker-engine.ts";' },
    ],
  },
  "pages, comments, messages and test titles use plain phrases": {
    rule: plainPhrases,
    bad: [{ path: "src/cli/bad.ts", text: "/**\n * The run goes\n * on.\n */" }],
  },
  "test titles are short": {
    rule: titlesAreShort,
    bad: [{ path: "src/cli/bad.test.ts", text: `test("${"starts a run and ".repeat(5)}ends it", () => {});` }],
  },
  "no paths of a developer's machine": { rule: noMachinePaths, bad: [{ path: "docs/bad.md", text: "see /home/someuser/project/x" }] },
};

describe("tidy rules", () => {
  test.each(Object.entries(rules))("%s", (_name, { rule, bad }) => {
    expect(rule(bad), "the rule finds the bad example").not.toEqual([]);
    expect(rule(notExamples)).toEqual([]);
  });

  test.each(phrases)("plain phrases: $bad", ({ bad, pattern }) => {
    expect(bad).toMatch(pattern);
    expect(plainPhrases([{ path: "docs/bad.md", text: bad }])).toHaveLength(1);
  });

  // The rules ignore an exception for a missing file, because their bad examples are small sets of files.
  test("exceptions name files that exist", () => {
    const functions = branchExceptions.map(({ function: name }) => name.split(" ")[0] as string);
    const named = [...functions, ...Object.keys(lazyExceptions), ...Object.keys(longClosures)];
    expect(named.filter((path) => !exists(path))).toEqual([]);
  });

  test("the rules saw the whole repository", () => {
    for (const folder of Object.keys(mayImport)) {
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
