import { describe, expect, test } from "vitest";
import { ansiSpans } from "../console/src/parts/ansi-spans.ts";
import { visibleLines, visibleTitle } from "../console/src/parts/visible-text.ts";
import { parseAgentFile } from "../src/agent/file/parse-agent-file.ts";
import { canMatchTheSame } from "../src/agent/rights/permission-rights.ts";
import { shellCommands } from "../src/agent/shell-commands.ts";
import { htmlText } from "../src/agent/tools/html-text.ts";
import { parsePatch } from "../src/agent/tools/patch-format.ts";
import { createRedactor } from "../src/api/observe/log-line.ts";
import { cutToWidth, displayWidth, plainText, visibleText, wrapText } from "../src/cli/terminal/plain-text.ts";
import { parseGitPlace } from "../src/contract/git-address.ts";
import { parseImageReference } from "../src/contract/image-reference.ts";
import { parseModelName } from "../src/contract/model-name.ts";
import { parseRule, parseSecret } from "../src/contract/network-text.ts";
import { bytesFrom, durationFrom } from "../src/lib/quantity.ts";
import { parseTraceparent } from "../src/lib/trace-ids.ts";
import { visible } from "../src/lib/visible.ts";
import { matchesStars } from "../src/lib/wildcards.ts";
import { parseAuthority, parseTargetHost } from "../src/network/address/target-host.ts";
import { parseRequestHead, parseResponseHead } from "../src/network/http/head.ts";
import { testCounts } from "../src/station/guardian/seen-call.ts";
import { parseCursor } from "../src/station/pages.ts";
import { slugOf } from "../src/station/ships/branch-name.ts";
import { runsTests } from "../src/station/ships/test-evidence.ts";
import { earsForm } from "../src/station/specs/ears.ts";
import { expressionProblem, expressionsIn } from "../src/workflow/expression.ts";
import { parseIgnorePatterns } from "../src/workspace/ignore-patterns.ts";
import { hashLines } from "../src/workspace/line-hashes.ts";
import { whyHeldBack } from "../src/workspace/protected-files.ts";
import { diffText, newDiffBudget } from "../src/workspace/text-diff.ts";
import { cpuMs } from "./support/cpu-time.ts";

/** What reads text that callers, models, repositories, agents and other stations wrote. A new one belongs here. */
const parsers: Readonly<Record<string, (text: string) => unknown>> = {
  "a line of a .gitignore": parseIgnorePatterns,
  "a .gitignore of many lines": (text) => parseIgnorePatterns(text.replaceAll(/(.{40})/g, "$1\n")),
  "a name that wildcards match": (text) => matchesStars("*a*ab*b*", text),
  "a permission's pattern": (text) => canMatchTheSame(text.slice(0, 2000), "bash:git push*"),
  "a path that may be protected": whyHeldBack,
  // The library's YAML is slow, so less of it.
  "an agent's file": (text) => {
    const short = text.slice(0, text.length / 10);
    return parseAgentFile("x.prompt", `---\nname: x\ndescription: ${short}\n---\n${text}`);
  },
  "a line of shell": shellCommands,
  "a line of shell that may run tests": (text) => runsTests(text),
  "what tests printed": testCounts,
  "a page of HTML": htmlText,
  "a patch": (text) => parsePatch(`*** Begin Patch\n*** Update File: a\n@@\n ${text}\n-${text}\n+x\n*** End Patch`),
  "a unified diff": (text) => parsePatch(`--- a/x\n+++ b/x\n@@ -1,1 +1,1 @@ ${text}\n-${text}\n+x\n`),
  "the lines of a diff": (text) => diffText(Buffer.from(`${text}\n`), Buffer.from(`x${text}\n`), newDiffBudget()),
  "lines that are compared for renames": (text) => hashLines(Buffer.from(text)),
  "a line of the station's log": createRedactor(["sk-secret", "aaaa"]),
  "output in a terminal": plainText,
  "a text for a terminal": visibleText,
  "a text for a log": visible,
  "the width of a line": displayWidth,
  "a line that is cut": (text) => cutToWidth(text, 80),
  "a text that is wrapped": (text) => wrapText(text, 80),
  "output in the console": ansiSpans,
  "a text in the console": visibleLines,
  "a title in the console": visibleTitle,
  "the head of a request": (text) => parseRequestHead(Buffer.from(`GET / HTTP/1.1\r\nhost: x\r\nx: ${text}\r\n\r\n`)),
  "the head of an answer": (text) => parseResponseHead(Buffer.from(`HTTP/1.1 200 ${text}\r\nx: ${text}\r\n\r\n`)),
  "a host": parseTargetHost,
  "a host with a port": (text) => parseAuthority(text, 80),
  "a rule of a network": parseRule,
  "a secret's description": parseSecret,
  "an image's reference": parseImageReference,
  "a model's name": parseModelName,
  "a place of repositories": parseGitPlace,
  "a trace": parseTraceparent,
  "a size": bytesFrom,
  "a duration": durationFrom,
  "a cursor": (text) => parseCursor(text, "things"),
  "a branch's name": slugOf,
  "a requirement": earsForm,
  "an expression": expressionProblem,
  "a text with expressions": (text) => expressionsIn(text),
};

/** One line of each kind of character, and of what begins something that never ends. */
const lines = [
  "a",
  "A1",
  "0",
  " ",
  "\t",
  "\r",
  "\n",
  ".",
  "-",
  "/",
  "\\",
  "*",
  "?",
  "[",
  "(",
  "{",
  "${",
  "<",
  "<a ",
  "&",
  "'",
  '"',
  "`",
  "$(",
  ";",
].concat([
  "|",
  ":",
  "=",
  "#",
  "@",
  "%",
  ",",
  "é",
  "🙂",
  "\u001b[",
  "\u001b]",
  "\u202e",
  "a ",
  " a",
  "a=",
  "a/",
  "\\ ",
  "**/",
  "--- ",
  "@@ ",
]);

/** The least of some tries: what else the machine does only adds to it. */
function cost(read: (text: string) => unknown, text: string): number {
  let least = Number.POSITIVE_INFINITY;
  for (let tries = 0; tries < 3; tries += 1) {
    const startMs = cpuMs();
    try {
      read(text);
    } catch {
      // That it is refused is well; that it takes long would not be.
    }
    least = Math.min(least, cpuMs() - startMs);
  }
  return least;
}

const SHORT = 10_000;
const TIMES = 8;
/** Below this, a processor's moods are larger than what is measured. */
const NOISE_MS = 6;

describe("the cost of foreign text grows with its length", () => {
  test.each(Object.entries(parsers))("%s", (_, read) => {
    for (const line of lines) {
      const text = (characters: number) => line.repeat(Math.ceil(characters / line.length));
      const long = cost(read, text(SHORT * TIMES));
      if (long < TIMES * NOISE_MS) continue;
      // A square would be 64 times as high.
      const short = Math.max(cost(read, text(SHORT)), NOISE_MS / 2);
      expect(long / short, `${JSON.stringify(line)}: ${short} ms, then ${long} ms`).toBeLessThan(TIMES * 3);
    }
  });
});
