import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { CaissonError } from "../../contract/error/error.ts";
import { HostProcess } from "../../contract/process-identity.ts";
import type { Session } from "../../contract/session/session.ts";
import type { Crashpoint } from "../../lib/crashpoint.ts";
import { ABSENT, ifErrno, ignore, isErrno, jsonOrNull } from "../../lib/failures.ts";
import { holdLease } from "../../log/hold-lease.ts";
import type { Log } from "../../log/log.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import { ifUnusable, type NewSession, removeFolder, type SessionStore } from "../../workspace/sessions.ts";
import { runStream } from "../vocabulary/station-names.ts";
import { removeKeptFiles } from "./remove-session.ts";
import { noteCleanup, removeOverdueSessions } from "./session-cleanup.ts";
import { GONE_PREFIX, MAKING_PREFIX } from "./session-folders.ts";

const Announced = z.object({
  run: z.string(),
  session: z.string(),
  maker: HostProcess,
});
type Announced = z.infer<typeof Announced>;

const SWEEP_MS_MAX = 10_000;
const SWEEP_POLL_MS = 20;

export interface SessionCreation {
  stateDir: string;
  log: Log;
  sessions: SessionStore;
  identity: Announced["maker"];
  alive: (holder: Announced["maker"]) => boolean;
  /** Returns every runtime that may have files of a session. */
  runtimes: () => Promise<readonly Runtime[]>;
}

/**
 * Creates a session and the thing that needs it. We write a note of both first, so that if this process dies, the next
 * one finds and removes the remains. `note` is the id of the run, or another unique name.
 */
export async function createSession<Result>(
  creation: SessionCreation & { crashpoint: Crashpoint },
  { session, note: name }: { session: NewSession; note: string },
  make: (session: Session) => Promise<Result>,
): Promise<Result> {
  const folder = join(creation.stateDir, "sessions");
  const note = join(folder, `${MAKING_PREFIX}${name}`);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const announced: Announced = { run: name, session: session.id, maker: creation.identity };
  await writeFile(note, JSON.stringify(announced), { mode: 0o600, flush: true });
  creation.crashpoint("session.announced:after");
  try {
    const createdSession = await creation.sessions.create(session);
    if (session.cleanup !== "never") await noteCleanup(session.id, creation);
    creation.crashpoint("session.created:after");
    return await make(createdSession);
  } catch (error) {
    const isTaken = error instanceof CaissonError && error.code === "exists";
    if (!isTaken) await ignore(removeUnused(creation, announced), "the next sweep removes it; the first error is thrown");
    throw error;
  } finally {
    await rm(note, { force: true });
  }
}

/** Removes sessions whose process died before it created their run. Usually reads only one, empty folder. */
export async function sweepUnfinished(creation: SessionCreation): Promise<void> {
  const folder = join(creation.stateDir, "sessions");
  for (const note of await listUnfinished(creation.stateDir)) {
    const text = await ifErrno(readFile(note, "utf8"), ABSENT, null);
    if (text === null) continue;
    const announced = parse(text);
    if (announced === null) await rm(note, { force: true });
    else if (announced.maker.host === creation.identity.host && !creation.alive(announced.maker)) await sweepOne(creation, announced, note);
  }
  // These are sessions whose removal was interrupted.
  const names = await ifErrno(readdir(folder), ABSENT, []);
  for (const name of names.filter((each) => each.startsWith(GONE_PREFIX))) await removeFolder(join(folder, name));
  await ignore(removeOverdueSessions(creation), "the next start tries again; this one has other work");
}

/** Returns the notes of sessions that are being created, or whose process died. */
async function listUnfinished(stateDir: string): Promise<string[]> {
  const folder = join(stateDir, "sessions");
  const names = await ifErrno(readdir(folder), ABSENT, []);
  return names.filter((name) => name.startsWith(MAKING_PREFIX)).map((name) => join(folder, name));
}

/**
 * Sweeps under a lease: a slow sweeper must not remove what another process created under the same name after a faster
 * sweep.
 */
async function sweepOne(creation: SessionCreation, announced: Announced, note: string): Promise<void> {
  const { log, identity } = creation;
  await using held = await holdLease(log, `sweep/${announced.session}`, {
    holder: JSON.stringify(identity),
    ttlMs: SWEEP_MS_MAX,
    holderGone: (owner) => !creation.alive(JSON.parse(owner) as Announced["maker"]),
  });
  if (!held) {
    for (let waitedMs = 0; waitedMs < SWEEP_MS_MAX && existsSync(note); waitedMs += SWEEP_POLL_MS) await delay(SWEEP_POLL_MS);
    return;
  }
  try {
    if (!existsSync(note)) return;
    if ((await log.lastSeq(runStream(announced.run))) === 0) await removeUnused(creation, announced);
    await rm(note, { force: true });
  } finally {
    await ignore(log.remove(held.lease.stream), "an empty stream is harmless");
  }
}

async function removeUnused(creation: SessionCreation, announced: Announced): Promise<void> {
  // The run never had a sandbox on it, so the session contains only what its creation put there.
  const session = await creation.sessions.get(announced.session).catch(ifUnusable);
  if (session !== null && session.runtime !== null)
    await removeKeptFiles(session, { sessions: creation.sessions, runtimes: await creation.runtimes() });
  const folder = join(creation.stateDir, "sessions");
  const trashFolder = join(folder, `${GONE_PREFIX}${announced.run}`);
  await rename(join(folder, announced.session), trashFolder).catch((error: unknown) => {
    if (!isErrno(error, "ENOENT")) throw error;
  });
  await removeFolder(trashFolder);
  await creation.log.remove(`session/${announced.session}`).catch((error: unknown) => {
    if (!(error instanceof CaissonError) || error.code !== "not_found") throw error;
  });
}

function parse(text: string): Announced | null {
  // Null means that the process died while writing the note, before it created anything else.
  return Announced.safeParse(jsonOrNull(text)).data ?? null;
}
