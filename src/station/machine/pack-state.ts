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
/** Sessions in one archive, in which nobody works. */
const TOGETHER_MAX = 500;

export interface PackedState {
  stateDir: string;
  /** The one that knows whose files sandboxes own; null where none does. */
  runtime: Runtime | null;
  sandboxes: Pick<SandboxVerbs, "list">;
  /** Names of files that are copied in their own way. */
  databases: readonly string[];
  attemptPauseMs?: number;
  /** Fires where the disk has no more room. */
  signal: AbortSignal;
}

type FilesRuntime = Runtime & { packFiles: NonNullable<Runtime["packFiles"]> };

/**
 * Packs the files of a state folder into archives in `draft`: sessions, each as it was while nothing moved in it, and
 * all the rest together. Of the rest every file is written once or replaced as a whole, so that any of them
 * may change meanwhile. Throws `busy` for a session that would not keep still.
 */
export async function packState(draft: string, state: PackedState): Promise<void> {
  const { stateDir, runtime, databases, signal } = state;
  signal.throwIfAborted();
  const isKept = (name: string) => !leftOut.has(name) && !name.startsWith(".") && !databases.some((each) => name.startsWith(each));
  const names = (await readdir(stateDir)).filter(isKept);
  if (!canPack(runtime)) {
    const excludePaths = (await readdir(stateDir)).filter((name) => !names.includes(name));
    await pipeline(Readable.from(packFolder(stateDir, { excludePaths })), createWriteStream(join(draft, FILES), { mode: 0o600 }), {
      signal,
    });
    return;
  }
  const plain = names.filter((name) => name !== "sessions");
  await runtime.packFiles({ folder: stateDir, names: plain, file: join(draft, FILES), still: [] });
  const sessions = names.includes("sessions") ? await readdir(join(stateDir, "sessions")) : [];
  const parts = { ...state, draft, runtime };
  const working = await sessionsAtWork(state);
  for (const session of sessions.filter((each) => working.has(each))) await packSession(session, parts);
  const idle = sessions.filter((each) => !working.has(each));
  for (let at = 0; at < idle.length; at += TOGETHER_MAX) await packIdle(idle.slice(at, at + TOGETHER_MAX), parts);
}

type SessionParts = PackedState & { draft: string; runtime: FilesRuntime };

/** Many in one archive, since there may be thousands of them; halves of those among which something moved. */
async function packIdle(sessions: readonly string[], parts: SessionParts): Promise<void> {
  const [first = "", ...others] = sessions;
  parts.signal.throwIfAborted();
  if (others.length === 0) return packSession(first, parts);
  const { hasChanged } = await parts.runtime.packFiles({ ...archiveOf(sessions, parts), still: [] });
  const working = await sessionsAtWork(parts);
  if (!hasChanged && !sessions.some((each) => working.has(each))) return;
  const middle = Math.ceil(sessions.length / 2);
  // The first half has the archive of all.
  for (const half of [sessions.slice(0, middle), sessions.slice(middle)]) await packIdle(half, parts);
}

async function sessionsAtWork({ sandboxes }: Pick<PackedState, "sandboxes">): Promise<Set<string>> {
  const { sandboxes: running } = await sandboxes.list({ sweep: false, state: ["running"] });
  return new Set(running.flatMap(({ labels }) => labels.session ?? []));
}

const archiveOf = (sessions: readonly string[], { stateDir, draft }: Pick<SessionParts, "stateDir" | "draft">) => ({
  folder: stateDir,
  names: sessions.map((session) => join("sessions", session)),
  file: join(draft, `session-${sessions[0]}.tar`),
});

const canPack = (runtime: Runtime | null): runtime is FilesRuntime => runtime?.packFiles !== undefined;

/** Until nothing moved in it: in its sandboxes because they are held still, and beside them because nobody came. */
async function packSession(session: string, parts: SessionParts): Promise<void> {
  const { sandboxes, runtime, signal, attemptPauseMs = ATTEMPT_PAUSE_MS } = parts;
  signal.throwIfAborted();
  const request = archiveOf([session], parts);
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
