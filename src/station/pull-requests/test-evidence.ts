import { shellCommands } from "../../agent/shell-commands.ts";
import { CaissonError } from "../../contract/error/error.ts";
import type { RunEvent } from "../../contract/run/run-event.ts";
import type { TestEvidence } from "../../contract/ship/ship.ts";

/** Patterns for the beginning of commands that run a project's tests. */
const testing: readonly RegExp[] = [
  /^(?:npm|pnpm|yarn|bun)(?: run)? (?:test|check|verify)(?:[ :]|$)/,
  /^(?:npm|yarn) t(?: |$)/,
  /^(?:npx |pnpm |yarn |bunx )?(?:vitest|jest|mocha|ava|tap|playwright test|cypress run)(?: |$)/,
  /^node (?:.* )?--test(?: |$|=)/,
  /^(?:deno|bun|go|cargo|dotnet|swift|zig build|mix|dart|flutter|sbt|rake|rails|lein|stack|cabal|gleam) test(?: |$)/,
  /^cargo nextest(?: |$)/,
  /^(?:python[0-9.]*|uv run|poetry run|pipenv run)(?: .*)? ?-m (?:pytest|unittest|nose2?)(?: |$)/,
  /^(?:uv run |poetry run |pipenv run )?(?:pytest|py\.test|tox|nox|nose2)(?: |$)/,
  /^(?:make|gmake|ninja|just|task|rake|bazel|gradle|gradlew|mvn|mvnw|ant|meson)(?: .*)? (?:test|tests|check|verify)(?: |$)/,
  /^(?:ctest|rspec|phpunit|bats|prove|busted|minitest|nimble test)(?: |$)/,
  /^bundle exec (?:rspec|rake test)(?: |$)/,
  /^(?:[^ ]*\/)?(?:test|tests|run[-_]tests?|check)(?:\.(?:sh|py|js|mjs|ts|rb|pl))?(?: |$)/,
  /^(?:sh|bash|dash|zsh|node|python[0-9.]*|ruby|perl) (?:-[a-z]+ )*(?:[^ ]*\/)?(?:tests?|run[-_]tests?|check)(?:\.\w+)?(?: |$)/,
];
const COMMAND_CHARACTERS_MAX = 500;

/** A run event with its position in the log. */
export type PlacedRunEvent = RunEvent & { seq: number };

export interface FoundTests {
  evidence: Extract<TestEvidence, { kind: "ran" }>;
  /** A file that a tool changed after the tests, or null. */
  changedAfter: string | null;
}

/** A command that ran tests, but whose exit code does not come from them. */
export interface HiddenTests {
  command: string;
  /** The program that the exit code belongs to; null for the shell. */
  program: string | null;
}

/**
 * Returns the last command that ran tests and how it ended, according to the run's events, or null if no command did.
 * `named` is a command that the user declares to be the tests. A command whose exit code says nothing about its tests
 * (`npm test || true`, `npm test | tail` without pipefail) does not count.
 */
export function findTests(
  run: string,
  events: readonly PlacedRunEvent[],
  { named }: { named?: string | undefined } = {},
): FoundTests | null {
  const requests = new Map<string, { command: string; seq: number }>();
  let evidence: FoundTests["evidence"] | null = null;
  let changedAfter: string | null = null;
  for (const event of events) {
    if (event.type === "tool.requested") {
      const command = commandOf(event.data.arguments);
      if (event.data.name === "bash" && command !== null && runsTests(command, named))
        requests.set(event.data.call, { command, seq: event.seq });
    } else if (event.type === "tool.ended") {
      const request = requests.get(event.data.call);
      const exitCode = exitCodeOf(event.data.details);
      if (request === undefined || exitCode === null) continue;
      const command = request.command.slice(0, COMMAND_CHARACTERS_MAX);
      evidence = { kind: "ran", run, requestedSeq: request.seq, endedSeq: event.seq, command, exitCode, at: event.at };
      changedAfter = null;
    } else if (event.type === "file.changed") changedAfter = event.data.path;
  }
  return evidence === null ? null : { evidence, changedAfter };
}

/** Returns the last command that ran tests but has another program's exit code. */
export function findHiddenTests(events: readonly PlacedRunEvent[]): HiddenTests | null {
  const commands = events.flatMap((event) => {
    const command = event.type === "tool.requested" && event.data.name === "bash" ? commandOf(event.data.arguments) : null;
    return command !== null && outcomeOf(command).tests === "hidden" ? [command] : [];
  });
  const command = commands.at(-1);
  return command === undefined ? null : { command: command.slice(0, COMMAND_CHARACTERS_MAX), program: outcomeOf(command).program };
}

/** Describes the tests for readers of a pull request. */
export function testsText(tests: TestEvidence): string {
  if (tests.kind !== "ran") return `Shipped without tests: ${tests.reason}`;
  return `Tests ran: \`${tests.command.replaceAll("`", "'").split("\n", 1)[0]}\` (exit code ${tests.exitCode}).`;
}

/** Throws `conflict` unless the tests passed and nothing changed after them. `details.tests` says what is wrong. */
export function passedTests(
  found: FoundTests | null,
  { session = "SESSION", hidden = null }: { session?: string; hidden?: HiddenTests | null } = {},
): Extract<TestEvidence, { kind: "ran" }> {
  const refuse = (why: string, tests: "missing" | "failed" | "outdated" = "missing") =>
    new CaissonError("conflict", why, {
      hint: `Have an agent run them: caisson run "run the tests" --session ${session}. Or give a reason to ship without: --without-tests REASON.`,
      details: { tests },
    });
  if (hidden !== null && (found === null || found.changedAfter !== null)) throw refuseHidden(hidden);
  if (found === null) throw refuse("the run's events show no command that ran tests");
  const { evidence, changedAfter } = found;
  if (evidence.exitCode !== 0) throw refuse(`the tests failed when the run last ran them (exit code ${evidence.exitCode})`, "failed");
  if (changedAfter !== null) throw refuse(`${JSON.stringify(changedAfter.slice(0, 200))} was changed after the tests ran`, "outdated");
  return evidence;
}

function refuseHidden({ command, program }: HiddenTests): CaissonError {
  const [line = ""] = command.split("\n", 1);
  const whose = program === null ? "the shell's" : `${program}'s`;
  return new CaissonError("conflict", `\`${line}\` ran, but its exit code is ${whose}, not that of the tests`, {
    hint: `If the tests passed, declare this command to be the tests: --tests ${quotedWord(command)}. Or put \`set -o pipefail\` before the pipe, which makes its exit code count.`,
    details: { tests: "hidden", command },
  });
}

/** Quotes text as one shell word. */
const quotedWord = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

/** Returns whether the exit code of this line is that of tests. */
export function runsTests(line: string, named?: string): boolean {
  return (named !== undefined && line.trim() === named.trim()) || outcomeOf(line).tests === "ran";
}

/**
 * Classifies what the exit code of a line says about its tests. If the exit code comes from another program, `program`
 * is its name.
 */
function outcomeOf(line: string): { tests: "none" | "hidden" | "ran"; program: string | null } {
  const parts = partsOf(line);
  const isTests = (text: string) => shellCommands(text).commands.some((command) => testing.some((pattern) => pattern.test(command)));
  const last = parts.findLastIndex(({ text }) => isTests(text));
  if (last === -1) return { tests: "none", program: null };
  // With pipefail, a pipe has the exit code of the program in it that failed.
  const isPipefail = parts.slice(0, last).some(({ text }) => /^\s*set\s+-(?:[a-z]*o)\s+pipefail\b/.test(text));
  const isKept = (joint: string) => joint === "&&" || joint === "" || (isPipefail && (joint === "|" || joint === "|&"));
  if (parts.slice(last).every(({ joint }) => isKept(joint))) return { tests: "ran", program: null };
  const end = parts.at(-1);
  const [command = ""] = end === undefined || end.joint === "&" ? [] : shellCommands(end.text).commands;
  return { tests: "hidden", program: command.split(" ", 1)[0] || null };
}

/** Splits a line into commands and the operators that join them. Operators in quotes do not count. */
function partsOf(line: string): { text: string; joint: string }[] {
  const blank = line.replace(/'[^']*'|"(?:\\.|[^"\\])*"|\\./gs, (quoted) => "x".repeat(quoted.length)).trimEnd();
  const parts: { text: string; joint: string }[] = [];
  let from = 0;
  for (const { 0: join, index } of blank.matchAll(/&&|\|\||\|&?|;|\n|(?<![<>&])&(?![>&])/g)) {
    parts.push({ text: line.slice(from, index), joint: join });
    from = index + join.length;
  }
  parts.push({ text: line.slice(from), joint: "" });
  return parts.filter(({ text }) => text.trim() !== "");
}

function commandOf(args: unknown): string | null {
  const { command, background } = (args ?? {}) as { command?: unknown; background?: unknown };
  return typeof command === "string" && background !== true ? command : null;
}

function exitCodeOf(details: unknown): number | null {
  const { exitCode } = (details ?? {}) as { exitCode?: unknown };
  return typeof exitCode === "number" && Number.isInteger(exitCode) ? exitCode : null;
}
