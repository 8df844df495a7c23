import { readFileSync } from "node:fs";
import { realpath } from "node:fs/promises";
import type { RemoteStation } from "../client/station/remote-station.ts";
import type { StationStatus } from "../contract/api/station-routes.ts";
import { CaissonError } from "../contract/error.ts";
import { readStationNote, stationFolder } from "../contract/station-note.ts";
import { isProcessRunning } from "../lib/process-stat.ts";
import type { RunVerbs } from "../station/runs/verbs.ts";
import type { SandboxVerbs } from "../station/sandboxes/verbs.ts";
import type { SessionVerbs } from "../station/sessions/verbs.ts";
import type { Caller } from "./caller.ts";
import { lazyVerbs } from "./lazy-verbs.ts";
import { runKinds, sandboxKinds, sessionKinds } from "./verb-kinds.ts";

/**
 * A station at an address, which works on the folders of whoever stands here: they are sent to it (`src/remote/`). One
 * that serves our own state folder sees them itself.
 */
export function callersFolders(
  remote: RemoteStation,
  { caller, url, status, ask }: { caller: Caller; url: string; status: () => Promise<StationStatus>; ask: AskYes | null },
): RemoteStation {
  let choosing: Promise<Pick<RemoteStation, "runs" | "sandboxes" | "sessions">> | undefined;
  const chosen = () => {
    choosing ??= choose().catch((error: unknown) => {
      // The next call tries again.
      choosing = undefined;
      throw error;
    });
    return choosing;
  };
  const choose = async () => {
    if (isOwnStation(await status(), caller)) return remote;
    const [{ withCallersFolders }, { createCallerMachine }] = await Promise.all([
      import("../remote/callers-folders.ts"),
      import("../remote/caller-machine.ts"),
    ]);
    const { stateDir, configDir, home, path, config, say } = caller;
    return withCallersFolders(remote, {
      machine: createCallerMachine({ stateDir, station: url }),
      places: { home, stateDir, configDir },
      notice: say,
      agree: (folder) => agreeTo(folder, { cwd: caller.cwd, url, ask }),
      git: { path },
      author: config.author,
    });
  };
  return {
    ...remote,
    runs: lazyVerbs<RunVerbs>(runKinds, async () => (await chosen()).runs),
    sandboxes: lazyVerbs<SandboxVerbs>(sandboxKinds, async () => (await chosen()).sandboxes),
    sessions: lazyVerbs<SessionVerbs>(sessionKinds, async () => (await chosen()).sessions),
  };
}

/** Null without a terminal to ask on. */
export type AskYes = (folder: string) => Promise<boolean>;

/**
 * The station says which folder its work is of. Where the caller stands somewhere else, the caller decides. Throws
 * `conflict`.
 */
async function agreeTo(folder: string, { cwd, url, ask }: { cwd: string; url: string; ask: AskYes | null }): Promise<void> {
  const here = await realpath(cwd).catch(() => cwd);
  if (here === folder || here.startsWith(`${folder}/`) || (await ask?.(folder)) === true) return;
  throw new CaissonError("conflict", `the station at ${url} says that this is work on ${folder}, which is not the current folder`, {
    hint: `If it is, name the folder: --to ${folder}. Or do it there: cd ${folder}`,
  });
}

/** By the note that the station of a state folder leaves there. */
function isOwnStation({ pid, version }: StationStatus, { stateDir }: Pick<Caller, "stateDir">): boolean {
  const note = readStationNote(textOf(stationFolder(stateDir).notePath));
  return note !== null && note.pid === pid && note.version === version && isProcessRunning(pid);
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
