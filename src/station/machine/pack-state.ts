import { createWriteStream } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout as pause } from "node:timers/promises";
import { CaissonError } from "../../contract/error.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import { packFolder } from "../../sandbox/tar/pack-folder.ts";
import type { SandboxVerbs } from "../sandboxes/verbs.ts";

/** What is made again when it is needed, belongs to what lives right now, or is copied in its own way. */
const leftOut = new Set([
  ...["sandboxes", "station", "station.log", "probes.json", "told.json", "empty"],
  ...["templates", "mirror", "mirrors", "git"],
]);
const FILES = "files.tar";
/** Of a session in which work begins or ends each time, or whose sandbox is being copied by somebody. */
const ATTEMPTS_MAX = 8;
const ATTEMPT_PAUSE_MS = 250;

export interface PackedState {
  stateDir: string;
  /** The one that knows whose files sandboxes own; null where none does. */
  runtime: Runtime | null;
  sandboxes: Pick<SandboxVerbs, "list">;
  /** Names of files that are copied in their own way. */
  databases: readonly string[];
  attemptPauseMs?: number;
}

type FilesRuntime = Runtime & { packFiles: NonNullable<Runtime["packFiles"]> };

/**
 * Packs the files of a state folder into archives in `draft`: sessions one by one, each as it was while nothing moved
 * in it, and all the rest together. Of the rest every file is written once or replaced as a whole, so that any of them
 * may change meanwhile. Throws `busy` for a session that would not keep still.
 */
export async function packState(draft: string, state: PackedState): Promise<void> {
  const { stateDir, runtime, databases } = state;
  const isKept = (name: string) => !leftOut.has(name) && !name.startsWith(".") && !databases.some((each) => name.startsWith(each));
  const names = (await readdir(stateDir)).filter(isKept);
  if (!canPack(runtime)) {
    const excludePaths = (await readdir(stateDir)).filter((name) => !names.includes(name));
    await pipeline(Readable.from(packFolder(stateDir, { excludePaths })), createWriteStream(join(draft, FILES), { mode: 0o600 }));
    return;
  }
  const plain = names.filter((name) => name !== "sessions");
  await runtime.packFiles({ folder: stateDir, names: plain, file: join(draft, FILES), still: [] });
  const sessions = names.includes("sessions") ? await readdir(join(stateDir, "sessions")) : [];
  for (const session of sessions) await packSession(session, { ...state, draft, runtime });
}

const canPack = (runtime: Runtime | null): runtime is FilesRuntime => runtime?.packFiles !== undefined;

/** Until nothing moved in it: in its sandboxes because they are held still, and beside them because nobody came. */
async function packSession(session: string, state: PackedState & { draft: string; runtime: FilesRuntime }): Promise<void> {
  const { stateDir, sandboxes, draft, runtime, attemptPauseMs = ATTEMPT_PAUSE_MS } = state;
  const request = { folder: stateDir, names: [join("sessions", session)], file: join(draft, `session-${session}.tar`) };
  const running = async () => {
    const found = await sandboxes.list({ sweep: false, label: [`session=${session}`], state: ["running"] });
    return found.sandboxes.map(({ id }) => id).sort();
  };
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    const still = await running();
    const packed = await runtime.packFiles({ ...request, still }).catch((error: unknown) => {
      // One of its sandboxes has just ended, or somebody else copies it right now.
      if (attempt < ATTEMPTS_MAX && error instanceof CaissonError && (error.code === "not_found" || error.code === "busy")) return null;
      throw error;
    });
    const isSame = packed !== null && still.join() === (await running()).join();
    // While its sandboxes are still, only the session's own records change, each as a whole.
    if (isSame && (still.length > 0 || !packed.hasChanged)) return;
    await pause(attemptPauseMs * attempt);
  }
  throw new CaissonError("busy", `work in the session ${session} began or ended each time it was packed`, { hint: "Try again." });
}
