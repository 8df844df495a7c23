import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { SandboxInfo } from "../../contract/sandbox/sandbox.ts";
import { ignoring, jsonOrNull } from "../../lib/failures.ts";
import type { ParsedArguments } from "../command.ts";
import { type Line, line } from "../terminal/line.ts";

const AGAIN_AFTER_MS = 24 * 3_600_000;
const REMEMBERED_MAX = 100;

/**
 * Prints what a sandbox lacks on this machine. This is mostly the same for every sandbox, so only the first command of
 * a day prints it, except for missing isolation, which is always printed. If the record is unreliable (a damaged file,
 * a clock set back), the warning is printed once more.
 */
export async function printSandboxWarnings(
  context: { stateDir: string; stderr: { print(line: Line): Promise<void> } },
  info: Pick<SandboxInfo, "runtime" | "warnings">,
  nowMs = Date.now(),
): Promise<void> {
  if (info.warnings.length === 0) return;
  const file = join(context.stateDir, "told.json");
  const warningTimes = info.runtime === "host" ? {} : readWarningTimes(file, nowMs);
  const news = info.warnings.filter((warning) => warningTimes[warning] === undefined);
  for (const warning of news) await context.stderr.print(line`caisson: ${warning}`);
  if (info.runtime === "host" || news.length === 0) return;
  const all = { ...warningTimes, ...Object.fromEntries(news.map((warning) => [warning, nowMs])) };
  writeWarningTimes(context.stateDir, file, Object.fromEntries(Object.entries(all).slice(-REMEMBERED_MAX)));
}

/**
 * Prints that a sandbox from a snapshot has the snapshot's workspace, because the user may expect the current folder.
 */
export async function tellSnapshotWorkspace(
  context: { stderr: { print(line: Line): Promise<void> } },
  args: ParsedArguments,
  { workspace }: Pick<SandboxInfo, "workspace">,
): Promise<void> {
  if (!args.flag("snapshot") || args.flag("workspace") || args.flag("no-workspace")) return;
  const whose = workspace.kind === "folder" ? `the snapshot's own, over ${workspace.path}` : "the snapshot's own";
  await context.stderr.print(line`caisson: /workspace is ${whose} (use --workspace . for this folder)`);
}

function readWarningTimes(file: string, nowMs: number): Record<string, number> {
  const text = ignoring("a lost file costs a repeated line", () => readFileSync(file, "utf8"));
  const isRecent = (atMs: unknown) => typeof atMs === "number" && atMs <= nowMs && nowMs - atMs < AGAIN_AFTER_MS;
  return Object.fromEntries(Object.entries(jsonOrNull(text ?? "") ?? {}).filter(([, atMs]) => isRecent(atMs)));
}

function writeWarningTimes(stateDir: string, file: string, warningTimes: Record<string, number>): void {
  ignoring("a full disk costs a repeated line", () => {
    mkdirSync(stateDir, { recursive: true, mode: 0o700 });
    const draft = `${file}.${process.pid}`;
    writeFileSync(draft, JSON.stringify(warningTimes), { mode: 0o600 });
    renameSync(draft, file);
  });
}
