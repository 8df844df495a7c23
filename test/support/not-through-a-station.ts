import { basename } from "node:path";
import { beforeEach } from "vitest";
import { type StationMode, stationMode } from "./station-modes.ts";

/**
 * Tests of the process that does the work, which do not apply if a station does it. Every other test of the command
 * line must pass through a station as well. Each line gives a reason.
 */
const about: readonly { file: string; test?: RegExp; mode?: StationMode; reason: string }[] = [
  { file: "apply-crashes.wait.e2e.test.ts", reason: "the station applies, so killing the command interrupts nothing" },
  { file: "ship-killed.wait.e2e.test.ts", reason: "the station ships, so killing the command interrupts nothing" },
  {
    file: "runs-control.wait.e2e.test.ts",
    test: /^can be answered after kill -9 of the first process|^can resume a run and its command after SIGTERM/,
    reason: "the station drives the run, which continues when the command is killed (tested beside it)",
  },
  {
    file: "workspace-sessions.wait.e2e.test.ts",
    test: /^in use name their user and how to unlock them/,
    reason: "the station holds the lock, and the run continues when the command is killed",
  },
  {
    file: "runs-recovery.wait.e2e.test.ts",
    test: /^is attached to again|^is lost if its sandbox died with the driver|^a dead sandbox of an abandoned run/,
    reason: "the station drives the run; crash-station.wait.e2e.test.ts tests killed stations",
  },
  {
    file: "runs-network.wait.e2e.test.ts",
    test: /^a network that fails at `resume`/,
    reason: "the station drives the run, so there is nothing to resume when the command is killed",
  },
  {
    file: "network-secrets.e2e.test.ts",
    test: /^is a file or a program, and fails early/,
    mode: "http",
    reason: "a station at an address gets nothing from the caller's environment or files (tested beside it)",
  },
  {
    file: "standstill.wait.e2e.test.ts",
    test: /^an interrupted stop reports/,
    reason: "the station drives the run, and stops it even if the command is suspended",
  },
];

/** Returns why a test does not apply to this mode, or null. */
function reasonAgainst(path: string, test: string): string | null {
  const found = about.find(
    (each) => each.file === basename(path) && (each.test?.test(test) ?? true) && (each.mode === undefined || each.mode === stationMode),
  );
  return found?.reason ?? null;
}

if (stationMode !== "none") {
  beforeEach(({ task, skip }) => {
    const reason = reasonAgainst(task.file.filepath, task.name);
    if (reason !== null) skip(reason);
  });
}
