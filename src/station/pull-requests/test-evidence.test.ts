import { describe, expect, test } from "vitest";
import { findHiddenTests, findTests, type PlacedRunEvent, passedTests, runsTests } from "./test-evidence.ts";

describe("a command line that runs tests", () => {
  test.each([
    "npm test",
    "npm run test:unit -- --bail",
    "cd app && npm test",
    "CI=1 timeout 60 npx vitest run",
    "python3 -m pytest -q",
    "uv run pytest",
    "go test ./...",
    "cargo test --all",
    "make -j4 check",
    "./test.sh",
    "sh test.sh",
    "bash -c 'npm ci && npm test'",
    "node --test",
    "npm test 2>&1",
    "npm test > out.txt && cat out.txt",
    "set -o pipefail; npm test 2>&1 | tail -30",
    "set -euo pipefail\nnpm test | tee out | tail && echo fine",
  ])("is %s", (line) => expect(runsTests(line)).toBe(true));

  test.each([
    "ls",
    "cat test.sh",
    "echo npm test",
    "npm install",
    "git commit -m 'npm test'",
    // Their exit codes say nothing about the tests.
    "npm test || true",
    "npm test; echo done",
    "npm test | tail -5",
    "npm test &",
    "npm test\necho done",
    "set -o pipefail; npm test | tail; echo done",
    "npm test | tail; set -o pipefail",
  ])("is not %s", (line) => expect(runsTests(line)).toBe(false));

  test("is one that the user names", () => {
    expect(runsTests("./verify --everything")).toBe(false);
    expect(runsTests("./verify --everything", "./verify --everything")).toBe(true);
  });
});

const at = "2026-01-02T03:04:05.000Z";
const run = "run_k3v7q2m5x4ab";
let seq = 0;
const event = (type: string, data: object) => ({ type, version: 1, at, data, seq: ++seq }) as unknown as PlacedRunEvent;
const command = (call: string, text: string, exitCode: number | null) => [
  event("tool.requested", { call, step: 1, name: "bash", arguments: { command: text } }),
  event("tool.ended", { call, outcome: "ok", text: "", durationMs: 1, details: exitCode === null ? {} : { exitCode } }),
];
const changed = (path: string) => event("file.changed", { call: "t1.1", path, kind: "modified", linesAdded: 1, linesRemoved: 1 });

describe("test evidence", () => {
  test("is the last test run, if it passed and nothing changed since", () => {
    const events = [
      changed("a"),
      ...command("t1.1", "npm test", 1),
      changed("a"),
      ...command("t2.1", "npm test", 0),
      ...command("t3.1", "ls", 0),
    ];
    expect(passedTests(findTests(run, events))).toMatchObject({ run, command: "npm test", exitCode: 0 });
  });

  test.each([
    ["nothing ran", [], /no command/],
    ["they failed", command("t1.1", "npm test", 1), /failed/],
    ["they were killed", command("t1.1", "npm test", null), /no command/],
    ["a file changed afterwards", [...command("t1.1", "npm test", 0), changed("src/a.ts")], /"src\/a.ts" was changed after/],
    [
      "its exit code is of another program",
      command("t1.1", "npm test 2>&1 | tail -30", 0),
      /^`npm test 2>&1 \| tail -30` ran, but its exit code is tail's/,
    ],
    ["its output is looked at afterwards", command("t1.1", "npm test > f; tail f", 0), /its exit code is tail's/],
    ["it runs in the background", command("t1.1", "npm test &", 0), /its exit code is the shell's/],
  ] as const)("is missing if %s", (_what, events, why) => {
    expect(() => passedTests(findTests(run, events), { hidden: findHiddenTests(events) })).toThrow(why);
  });

  test("of a piped command counts if the user names the command from the hint", () => {
    const events = command("t1.1", "npm test | tail -30", 0);
    let hint = "";
    try {
      passedTests(null, { hidden: findHiddenTests(events) });
    } catch (error) {
      hint = (error as { hint: string }).hint;
    }
    const named = /--tests '([^']*)'/.exec(hint)?.[1];
    expect(passedTests(findTests(run, events, { named }))).toMatchObject({ command: "npm test | tail -30", exitCode: 0 });
  });
});
