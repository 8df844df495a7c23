import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { CaissonError } from "../../contract/error.ts";
import { HostProcess } from "../../contract/process-identity.ts";
import type { Session } from "../../contract/session.ts";
import { isErrno } from "../../lib/is-errno.ts";
import { holdLease } from "../../log/hold-lease.ts";
import type { Log } from "../../log/log.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import { ifUnusable, type NewSession, removeFolder, type SessionStore } from "../../workspace/sessions.ts";
import type { Crashpoint } from "../crashpoint.ts";
import { removeKeptFiles } from "../sessions/remove-session.ts";
import { runStream } from "./head-of-run.ts";
import type { NewRun, Runs } from "./runs.ts";

const Announced = z.object({
  run: z.string(),
  session: z.string(),
  maker: HostProcess,
});
type Announced = z.infer<typeof Announced>;

/**
 * In the sessions folder, under a name that no session can have: a session is being made for a run that is not there
 * yet.
 */
const PREFIX = ".making-";
const GONE = ".gone-";
const SWEEP_MS_MAX = 10_000;
const SWEEP_POLL_MS = 20;

export interface RunCreation {
  stateDir: string;
  log: Log;
  sessions: SessionStore;
  identity: Announced["maker"];
  alive: (owner: Announced["maker"]) => boolean;
  /** Every runtime in which a session may have left something. */
  runtimes: () => Promise<readonly Runtime[]>;
}

/** Makes a session and the run it is for. `fill` gives the session files of another before its run is there. */
export async function createRunInNewSession(
  creation: RunCreation & { runs: Runs; crashpoint: Crashpoint },
  request: { session: NewSession; run: Omit<NewRun, "session"> & { id: string }; fill?: (session: Session) => Promise<void> },
): Promise<string> {
  return await createSession(creation, { session: request.session, note: request.run.id }, async (session) => {
    await request.fill?.(session);
    return await creation.runs.create({ ...request.run, session: session.id });
  });
}

/**
 * Makes a session, and what it is for. What is going to be made is written down first, so that a process that dies in
 * between leaves nothing that the next one does not find and remove. `note` is the run that it is for, or another name
 * that nobody else has.
 */
export async function createSession<Result>(
  creation: RunCreation & { crashpoint: Crashpoint },
  { session, note: name }: { session: NewSession; note: string },
  make: (session: Session) => Promise<Result>,
): Promise<Result> {
  const folder = join(creation.stateDir, "sessions");
  const note = join(folder, `${PREFIX}${name}`);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const announced: Announced = { run: name, session: session.id, maker: creation.identity };
  await writeFile(note, JSON.stringify(announced), { mode: 0o600, flush: true });
  creation.crashpoint("session.announced:after");
  try {
    const made = await creation.sessions.create(session);
    creation.crashpoint("session.created:after");
    return await make(made);
  } catch (error) {
    const taken = error instanceof CaissonError && error.code === "exists";
    if (!taken) await removeUnused(creation, announced).catch(() => undefined);
    throw error;
  } finally {
    await rm(note, { force: true });
  }
}

/** Removes sessions whose maker died before their run was there. One look into a folder when there is none. */
export async function sweepUnfinished(creation: RunCreation): Promise<void> {
  const folder = join(creation.stateDir, "sessions");
  for (const note of await unfinished(creation.stateDir)) {
    const text = await readFile(note, "utf8").catch(() => null);
    if (text === null) continue;
    const announced = parse(text);
    if (announced === null) await rm(note, { force: true });
    else if (announced.maker.host === creation.identity.host && !creation.alive(announced.maker)) await sweepOne(creation, announced, note);
  }
  // Sessions whose removal was interrupted.
  const names = await readdir(folder).catch(() => [] as string[]);
  for (const name of names.filter((each) => each.startsWith(GONE))) await removeFolder(join(folder, name));
}

/** Notes of sessions that are being made, or whose maker died over it. */
async function unfinished(stateDir: string): Promise<string[]> {
  const folder = join(stateDir, "sessions");
  const names = await readdir(folder).catch(() => [] as string[]);
  return names.filter((name) => name.startsWith(PREFIX)).map((name) => join(folder, name));
}

/** One sweeper at a time: a slower one must not remove what somebody made under the same name after a faster one. */
async function sweepOne(creation: RunCreation, announced: Announced, note: string): Promise<void> {
  const { log, identity } = creation;
  await using held = await holdLease(log, `sweep/${announced.session}`, {
    owner: JSON.stringify(identity),
    ttlMs: SWEEP_MS_MAX,
    ownerGone: (owner) => !creation.alive(JSON.parse(owner) as Announced["maker"]),
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
    await log.remove(held.lease.stream).catch(() => undefined);
  }
}

async function removeUnused(creation: RunCreation, announced: Announced): Promise<void> {
  // No sandbox of a run's was ever on it, so it holds nothing but what its making put there.
  const session = await creation.sessions.get(announced.session).catch(ifUnusable);
  if (session !== null && session.runtime !== null)
    await removeKeptFiles(session, { sessions: creation.sessions, runtimes: await creation.runtimes() });
  const folder = join(creation.stateDir, "sessions");
  const gone = join(folder, `${GONE}${announced.run}`);
  await rename(join(folder, announced.session), gone).catch((error: unknown) => {
    if (!isErrno(error, "ENOENT")) throw error;
  });
  await removeFolder(gone);
  await creation.log.remove(`session/${announced.session}`).catch((error: unknown) => {
    if (!(error instanceof CaissonError) || error.code !== "not_found") throw error;
  });
}

function parse(text: string): Announced | null {
  try {
    return Announced.parse(JSON.parse(text));
  } catch {
    // Its maker died while writing it, before anything else was made.
    return null;
  }
}
