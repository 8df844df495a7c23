import { existsSync } from "node:fs";
import { realpath } from "node:fs/promises";
import type { RemoteStation } from "../client/station/remote-station.ts";
import { CaissonError } from "../contract/error.ts";
import { stationFolder } from "../contract/station-note.ts";
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
  { caller, url, ask }: { caller: Caller; url: string; ask: AskYes | null },
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
    if (await isOwnStation(url, caller)) return remote;
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

/**
 * Whether the address leads to the station of our own state folder. That one says so itself, over the socket that only
 * this user can open; what the station at the address says of itself is not asked for.
 */
async function isOwnStation(url: string, { stateDir }: Pick<Caller, "stateDir">): Promise<boolean> {
  if (!existsSync(stationFolder(stateDir).socketPath)) return false;
  const { ownStationUrl } = await import("./server.ts");
  const own = await ownStationUrl(stateDir);
  return own !== null && addressOf(own) === addressOf(url);
}

/** One name for the machine itself, however it is written. */
function addressOf(url: string): string {
  const { protocol, hostname, port } = new URL(url);
  return `${protocol}//${/^(?:localhost|127\.[\d.]+|\[::1\])$/.test(hostname) ? "loopback" : hostname}:${port}`;
}
