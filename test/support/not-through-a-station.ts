import { basename } from "node:path";
import { beforeEach } from "vitest";
import { type StationMode, stationMode } from "./station-modes.ts";

/**
 * Tests of the command line that are about the process which does the work, and so say nothing of one that has it done
 * by a station. Everything else must hold through a station as well; whoever adds a line says why.
 */
const about: readonly { file: string; test?: RegExp; mode?: StationMode; reason: string }[] = [
  { file: "apply-crashes.e2e.test.ts", reason: "the command that is killed applies nothing: the station does" },
  { file: "ship-killed.e2e.test.ts", reason: "the command that is killed ships nothing: the station does" },
  {
    file: "runs-control.e2e.test.ts",
    test: /^is answered after the first process was killed|^SIGTERM lets go of a run/,
    reason: "the command that is killed drives nothing: the station does, and the run goes on (tested beside it)",
  },
  {
    file: "workspace-sessions.e2e.test.ts",
    test: /^in use: refused with who and how to unlock/,
    reason: "the command that is killed holds no lock: the station does, and the run goes on",
  },
  {
    file: "runs-recovery.e2e.test.ts",
    test: /^is attached to again|^and whose sandbox dies with the program|^a dead sandbox of a run that nobody goes on with/,
    reason: "the command that is killed drives nothing; what becomes of a station's runs when it is killed is in crash-station.e2e.test.ts",
  },
  {
    file: "runs-network.e2e.test.ts",
    test: /^a network that cannot be served at the moment of `resume`/,
    reason: "the command that is killed drives nothing, so there is nothing to resume",
  },
  {
    file: "network-secrets.e2e.test.ts",
    test: /^a file, a program; what cannot be had/,
    mode: "http",
    reason: "a station at an address is sent nothing of the caller's environment or files (tested beside it)",
  },
  {
    file: "standstill.e2e.test.ts",
    test: /^a stop that is interrupted says so/,
    reason: "the command that is stopped drives nothing: the station obeys at once",
  },
];

/** Why a test is not for this mode, or null. */
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
