import { createWriteStream } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout as pause } from "node:timers/promises";
import { CaissonError } from "../../contract/error/error.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import { packFolder } from "../../sandbox/tar/pack-folder.ts";
import type { SandboxVerbs } from "../../verbs/sandboxes.ts";

/**
 * Entries that are left out: they are created again when needed, belong to running processes, or are copied separately.
 */
const leftOut = new Set([
  ...["sandboxes", "station", "station.log", "probes.json", "told.json", "empty"],
  ...["templates", "mirror", "mirrors", "git"],
]);
const FILES = "files.tar";
/** The frozen layers of sessions and snapshots. */
const LAYERS = "layers";
/** Attempts to pack a session in which sandboxes keep starting or ending, or whose sandbox another process copies. */
const ATTEMPTS_MAX = 8;
const ATTEMPT_PAUSE_MS = 250;
/** Idle sessions per archive. */
const TOGETHER_MAX = 500;

export interface PackedState {
  stateDir: string;
  /** The runtime that can pack files owned by sandboxes; null if this machine has no such runtime. */
  runtime: Runtime | null;
  sandboxes: Pick<SandboxVerbs, "list">;
  /** Names of files that are copied separately. */
  databases: readonly string[];
  attemptPauseMs?: number;
  /** Aborted when the disk runs out of space. */
  signal: AbortSignal;
}

type FilesRuntime = Runtime & { packFiles: NonNullable<Runtime["packFiles"]> };

/**
 * Packs the files of a state folder into archives in `draft`. Each session is packed as of a moment in which nothing in
 * it changed. All other files are packed together, and may change during the copy, because each is written once or
 * replaced as a whole. Throws `busy` for a session that keeps changing.
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
  const plain = names.filter((name) => name !== "sessions" && name !== LAYERS);
  await runtime.packFiles({ folder: stateDir, names: plain, file: join(draft, FILES), still: [] });
  const sessions = names.includes("sessions") ? await readdir(join(stateDir, "sessions")) : [];
  const parts = { ...state, draft, runtime };
  const working = await sessionsAtWork(state);
  for (const session of sessions.filter((each) => working.has(each))) await packSession(session, parts);
  const idle = sessions.filter((each) => !working.has(each));
  for (let at = 0; at < idle.length; at += TOGETHER_MAX) await packIdle(idle.slice(at, at + TOGETHER_MAX), parts);
  // After the sessions, which refer to layers; a layer does not change once it exists.
  if (names.includes(LAYERS)) await runtime.packFiles({ folder: stateDir, names: [LAYERS], file: join(draft, `${LAYERS}.tar`), still: [] });
}

type SessionParts = PackedState & { draft: string; runtime: FilesRuntime };

/**
 * Packs many sessions into one archive, since there may be thousands. If one of them changed, packs each half again.
 */
async function packIdle(sessions: readonly string[], parts: SessionParts): Promise<void> {
  const [first = "", ...others] = sessions;
  parts.signal.throwIfAborted();
  if (others.length === 0) return packSession(first, parts);
  const { hasChanged } = await parts.runtime.packFiles({ ...archiveOf(sessions, parts), still: [] });
  const working = await sessionsAtWork(parts);
  if (!hasChanged && !sessions.some((each) => working.has(each))) return;
  const middle = Math.ceil(sessions.length / 2);
  // The first half overwrites the archive of all.
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

/** Packs a session until nothing changed during the copy: its sandboxes are frozen, and none started or ended. */
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
      // One of its sandboxes has just ended, or another process is copying it.
      if (attempt < ATTEMPTS_MAX && error instanceof CaissonError && (error.code === "not_found" || error.code === "busy")) return null;
      throw error;
    });
    const isSame = packed !== null && still.join() === (await running()).join();
    // While the sandboxes are frozen, only the session's own records change, and each is replaced as a whole.
    if (isSame && (still.length > 0 || !packed.hasChanged)) return;
    await pause(attemptPauseMs * attempt);
  }
  throw new CaissonError("busy", `the session ${session} changed during every attempt to pack it`, { hint: "Try again." });
}
