import { expect, test } from "vitest";
import { createGitProgress } from "./git-progress.ts";

/** As git writes it for fifteen objects: a line for every step of every phase. */
const phase = (name: string, end: string) =>
  `${Array.from({ length: 15 }, (_, at) => `${name}: ${Math.floor(((at + 1) * 100) / 15)}% (${at + 1}/15)\r`).join("")}${name}: 100% (15/15)${end}\n`;
const CLONE = `Cloning into bare repository '/state/mirrors/x.git'...\nremote: Enumerating objects: 15, done.        \n${phase("remote: Counting objects", ", done.")}${phase("remote: Compressing objects", ", done.")}remote: Total 15 (delta 2), reused 0 (delta 0)\n${phase("Receiving objects", ", 1.20 KiB | 1.20 MiB/s, done.")}${phase("Resolving deltas", ", done.")}`;

test("a short clone is one line, in whatever pieces it comes", () => {
  for (const size of [1, 7, 10_000]) {
    const told: string[] = [];
    const progress = createGitProgress((line) => told.push(line), { nowMs: () => 0 });
    for (let at = 0; at < CLONE.length; at += size) progress(CLONE.slice(at, at + size));
    expect(told).toEqual(["Receiving objects: 100% (15/15), 1.20 KiB | 1.20 MiB/s, done."]);
  }
});

test("a long one says every few seconds how far it is; warnings are told", () => {
  let now = 0;
  const told: string[] = [];
  const progress = createGitProgress((line) => told.push(line), { nowMs: () => now });
  for (let percent = 1; percent <= 20; percent++, now += 1000) progress(`Receiving objects: ${percent}% (${percent}/100)\r`);
  progress("warning: redirecting to elsewhere\n");
  expect(told.map((line) => line.split(" (")[0])).toEqual([
    "Receiving objects: 6%",
    "Receiving objects: 11%",
    "Receiving objects: 16%",
    "warning: redirecting to elsewhere",
  ]);
});
