import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { SandboxInfo } from "../../contract/sandbox.ts";
import type { ParsedArguments } from "../command.ts";
import { type Line, line } from "../terminal/line.ts";

const AGAIN_AFTER_MS = 24 * 3_600_000;
const REMEMBERED_MAX = 100;

/**
 * What a sandbox lacks that it has elsewhere. That is mostly the machine's doing and the same for each sandbox, so each
 * is told once a day, by whichever command comes first. Only that there is no wall at all is told every time. What was
 * told cannot always be known (the file is damaged, the clock was set back): then it is told once more.
 */
export async function printSandboxWarnings(
  context: { stateDir: string; stderr: { print(line: Line): Promise<void> } },
  info: Pick<SandboxInfo, "runtime" | "warnings">,
  nowMs = Date.now(),
): Promise<void> {
  if (info.warnings.length === 0) return;
  const file = join(context.stateDir, "told.json");
  const told = info.runtime === "host" ? {} : readTold(file, nowMs);
  const news = info.warnings.filter((warning) => told[warning] === undefined);
  for (const warning of news) await context.stderr.print(line`caisson: ${warning}`);
  if (info.runtime === "host" || news.length === 0) return;
  const all = { ...told, ...Object.fromEntries(news.map((warning) => [warning, nowMs])) };
  writeTold(context.stateDir, file, Object.fromEntries(Object.entries(all).slice(-REMEMBERED_MAX)));
}

/**
 * A sandbox from a snapshot has the workspace that belongs to it; who stands in a folder may have expected that one.
 */
export async function tellSnapshotWorkspace(
  context: { stderr: { print(line: Line): Promise<void> } },
  given: ParsedArguments,
  { workspace }: Pick<SandboxInfo, "workspace">,
): Promise<void> {
  if (!given.flag("snapshot") || given.flag("workspace") || given.flag("no-workspace")) return;
  const whose = workspace.kind === "folder" ? `the snapshot's own, over ${workspace.path}` : "the snapshot's own";
  await context.stderr.print(line`caisson: /workspace is ${whose} (--workspace . takes this folder instead)`);
}

function readTold(file: string, nowMs: number): Record<string, number> {
  try {
    const told: unknown = JSON.parse(readFileSync(file, "utf8"));
    const isRecent = (atMs: unknown) => typeof atMs === "number" && atMs <= nowMs && nowMs - atMs < AGAIN_AFTER_MS;
    return Object.fromEntries(Object.entries(told ?? {}).filter(([, atMs]) => isRecent(atMs)));
  } catch {
    return {};
  }
}

function writeTold(stateDir: string, file: string, told: Record<string, number>): void {
  try {
    mkdirSync(stateDir, { recursive: true, mode: 0o700 });
    const draft = `${file}.${process.pid}`;
    writeFileSync(draft, JSON.stringify(told), { mode: 0o600 });
    renameSync(draft, file);
  } catch {
    // A full disk costs a repeated line.
  }
}
