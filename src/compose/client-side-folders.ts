import { existsSync } from "node:fs";
import type { RemoteStation } from "../client/remote/remote-station.ts";
import { CaissonError } from "../contract/error/error.ts";
import { stationFolder } from "../contract/station-note.ts";
import { once } from "../lib/once.ts";
import { realPathOrNull } from "../lib/paths.ts";
import type { RunVerbs } from "../verbs/runs.ts";
import type { SandboxVerbs } from "../verbs/sandboxes.ts";
import type { SessionVerbs } from "../verbs/sessions.ts";
import type { Caller } from "./caller.ts";
import { lazyGroup } from "./lazy-verbs.ts";

/**
 * Wraps a station at an address so that it works on the caller's folders, which are sent to it
 * (`src/folder-transfer/`). A station that serves our own state folder reads them itself.
 */
export function clientSideFolders(
  remote: RemoteStation,
  { caller, url, ask }: { caller: Caller; url: string; ask: AskYes | null },
): RemoteStation {
  const chosen = once(async () => {
    if (await isOwnStation(url, caller)) return remote;
    const [{ withClientSideFolders }, { createCallerMachine }] = await Promise.all([
      import("../folder-transfer/transfer-folders.ts"),
      import("../folder-transfer/caller-machine.ts"),
    ]);
    const { stateDir, configDir, home, path, config, say } = caller;
    return withClientSideFolders(remote, {
      machine: createCallerMachine({ stateDir, station: url }),
      places: { home, stateDir, configDir },
      notice: say,
      agree: (folder) => agreeTo(folder, { cwd: caller.cwd, url, ask }),
      git: { path },
      author: config.author,
    });
  });
  return {
    ...remote,
    runs: lazyGroup<RunVerbs>("runs", async () => (await chosen()).runs),
    sandboxes: lazyGroup<SandboxVerbs>("sandboxes", async () => (await chosen()).sandboxes),
    sessions: lazyGroup<SessionVerbs>("sessions", async () => (await chosen()).sessions),
  };
}

/** Null if there is no terminal to ask on. */
export type AskYes = (folder: string) => Promise<boolean>;

/**
 * Asks the caller before we write to a folder that the station named, unless it is the caller's current folder. Throws
 * `conflict` if the caller declines.
 */
async function agreeTo(folder: string, { cwd, url, ask }: { cwd: string; url: string; ask: AskYes | null }): Promise<void> {
  const here = realPathOrNull(cwd) ?? cwd;
  if (here === folder || here.startsWith(`${folder}/`) || (await ask?.(folder)) === true) return;
  throw new CaissonError("conflict", `the station at ${url} says that this work belongs to ${folder}, which is not the current folder`, {
    hint: `If that is right, name the folder with --to ${folder}, or change to it: cd ${folder}`,
  });
}

/**
 * Returns whether the address belongs to the station of our state folder. We ask that station over its socket, which
 * only this user can open; we do not trust what the station at the address says about itself.
 */
async function isOwnStation(url: string, { stateDir }: Pick<Caller, "stateDir">): Promise<boolean> {
  if (!existsSync(stationFolder(stateDir).socketPath)) return false;
  const { ownStationUrl } = await import("./server.ts");
  const own = await ownStationUrl(stateDir);
  return own !== null && addressOf(own) === addressOf(url);
}

/** Normalizes an address: all spellings of this machine become the same. */
function addressOf(url: string): string {
  const { protocol, hostname, port } = new URL(url);
  return `${protocol}//${/^(?:localhost|127\.[\d.]+|\[::1\])$/.test(hostname) ? "loopback" : hostname}:${port}`;
}
