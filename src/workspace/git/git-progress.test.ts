import { expect, test } from "vitest";
import { createGitProgress } from "./git-progress.ts";

/** Git's output for fifteen objects: a line for each step of each phase. */
const phase = (name: string, end: string) =>
  `${Array.from({ length: 15 }, (_, at) => `${name}: ${Math.floor(((at + 1) * 100) / 15)}% (${at + 1}/15)\r`).join("")}${name}: 100% (15/15)${end}\n`;
const CLONE = `Cloning into bare repository '/state/mirrors/x.git'...\nremote: Enumerating objects: 15, done.        \n${phase("remote: Counting objects", ", done.")}${phase("remote: Compressing objects", ", done.")}remote: Total 15 (delta 2), reused 0 (delta 0)\n${phase("Receiving objects", ", 1.20 KiB | 1.20 MiB/s, done.")}${phase("Resolving deltas", ", done.")}`;

test("reports a short clone in one line, however its output is split", () => {
  for (const size of [1, 7, 10_000]) {
    const lines: string[] = [];
    const progress = createGitProgress((line) => lines.push(line), { nowMs: () => 0 });
    for (let at = 0; at < CLONE.length; at += size) progress(CLONE.slice(at, at + size));
    expect(lines).toEqual(["Receiving objects: 100% (15/15), 1.20 KiB | 1.20 MiB/s, done."]);
  }
});

test("reports a long clone every few seconds, and passes warnings on", () => {
  let now = 0;
  const lines: string[] = [];
  const progress = createGitProgress((line) => lines.push(line), { nowMs: () => now });
  for (let percent = 1; percent <= 20; percent++, now += 1000) progress(`Receiving objects: ${percent}% (${percent}/100)\r`);
  progress("warning: redirecting to elsewhere\n");
  expect(lines.map((line) => line.split(" (")[0])).toEqual([
    "Receiving objects: 6%",
    "Receiving objects: 11%",
    "Receiving objects: 16%",
    "warning: redirecting to elsewhere",
  ]);
});
