import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Change, FileSide } from "../src/workspace/change.ts";
import { pairRenames } from "../src/workspace/renames.ts";
import { diffStat, renderSections } from "../src/workspace/render-diff.ts";
import type { Figures } from "./report.ts";

const FILES = 30;
const FILE_BYTES = 500_000;
const LINE_BYTES = 40;

/** Measures a diff in which all files were replaced by others: nothing can be shared, moved or skipped. */
export async function benchDiff(): Promise<Figures> {
  const dir = mkdtempSync(join(tmpdir(), "caisson-bench-diff-"));
  try {
    const changes = replacedFiles(dir);
    const summaryMs = await timed(async () => void (await diffStat(pairRenames(changes))));
    let bytes = 0;
    const diffMs = await timed(async () => {
      for (const section of renderSections(pairRenames(changes))) bytes += section.length;
    });
    const memoryMiB = process.memoryUsage().rss / 2 ** 20;
    const git = (...args: string[]) =>
      timed(
        async () =>
          void spawnSync("git", ["diff", "--no-index", "-M", ...args, "before", "after"], {
            cwd: dir,
            stdio: "ignore",
            env: { PATH: process.env.PATH },
          }),
      );
    const group = "a diff of 30 files of 500 KB replaced by 30 others";
    return {
      rows: [
        { group, name: "the summary after a run (`diff --stat`)", value: summaryMs, unit: "ms", n: 1 },
        { group, name: "`git diff --no-index -M --stat`", value: await git("--stat"), unit: "ms", n: 1 },
        { group, name: `the diff itself (${Math.round(bytes / 2 ** 20)} MiB)`, value: diffMs, unit: "ms", n: 1 },
        { group, name: "`git diff --no-index -M`", value: await git(), unit: "ms", n: 1 },
        { group, name: "memory of the whole process", value: memoryMiB, unit: "MiB", n: 1 },
      ],
      targets: [{ name: "the summary of 30 files of 500 KB replaced by 30 others", measured: summaryMs, unit: "ms", atMost: 3000 }],
    };
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function replacedFiles(dir: string): Change[] {
  const sideIn = (folder: string, name: string, seed: number): FileSide => {
    const content = text(seed);
    mkdirSync(join(dir, folder), { recursive: true });
    writeFileSync(join(dir, folder, name), content);
    return { kind: "file", mode: 0o644, content };
  };
  return Array.from({ length: FILES }, (_, at): Change[] => [
    { path: `old-${at}`, from: null, before: sideIn("before", `old-${at}`, at), after: null, changedOutside: false },
    { path: `new-${at}`, from: null, before: null, after: sideIn("after", `new-${at}`, FILES + at), changedOutside: false },
  ]).flat();
}

/** Returns letters that depend only on the seed. */
function text(seed: number): Buffer {
  const bytes = Buffer.alloc(FILE_BYTES);
  let state = seed + 1;
  for (let at = 0; at < bytes.length; at++) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    bytes[at] = at % LINE_BYTES === LINE_BYTES - 1 ? 0x0a : 0x61 + ((state >>> 16) % 26);
  }
  return bytes;
}

async function timed(work: () => Promise<void>): Promise<number> {
  const startMs = performance.now();
  await work();
  return performance.now() - startMs;
}
