import { mkdir, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Session } from "../../contract/session/session.ts";
import { ABSENT, ifErrno } from "../../lib/failures.ts";
import { randomLetters } from "../../lib/new-id.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import type { SessionStore } from "../../workspace/sessions.ts";
import type { PointFiles } from "./step-files.ts";
import { COPY_BYTES_MAX } from "./stored-points.ts";
import { configOfView, type MakeViewConfig } from "./view-config.ts";

/** The subfolder of a session with layers copied from stored points, each for one view. */
const VIEWS = "views";
/** A view older than this belongs to a dead process. */
const VIEW_AGE_MS_MAX = 60 * 60_000;

/** The session as of a point, and a store that finds its files for this view. */
export interface PointView {
  session: Session;
  sessions: SessionStore;
}

/**
 * Opens a sandbox on a session's files as they were stored. It does not touch the session, in which a run may be
 * working.
 */
export async function withPointView<Result>(
  session: Session,
  files: Exclude<PointFiles, null>,
  options: { sessions: SessionStore; runtime: Runtime; makeConfig?: MakeViewConfig },
  work: (sandbox: Sandbox, seen: PointView) => Promise<Result>,
): Promise<Result> {
  const { sessions, runtime, makeConfig = configOfView } = options;
  if (files.kind === "snapshot") {
    const then = { ...session, snapshot: files.id === null ? null : { id: files.id, runtime: runtime.name } };
    await using sandbox = await runtime.create(await makeConfig(then, options));
    return await work(sandbox, { session: then, sessions });
  }
  const paths = sessions.paths(session);
  const layer = await newView(join(paths.dir, VIEWS), runtime);
  try {
    await runtime.forkLayer?.(paths.layer, layer, { copy: files.copy, bytesMax: COPY_BYTES_MAX });
    const there = { ...sessions, paths: () => ({ ...paths, layer }) };
    // Everything in the layer was copied just now, even if the session is old.
    const forked = { from: session.id, at: new Date().toISOString(), since: session.forked?.since ?? session.createdAt };
    const then = { ...session, forked };
    await using sandbox = await runtime.create(await makeConfig(then, { sessions: there, runtime }));
    return await work(sandbox, { session: then, sessions: there });
  } finally {
    await removeView(layer, runtime);
  }
}

async function newView(folder: string, runtime: Runtime): Promise<string> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  for (const name of await readdir(folder)) {
    const { mtimeMs } = (await ifErrno(stat(join(folder, name)), ABSENT, null)) ?? { mtimeMs: Date.now() };
    if (Date.now() - mtimeMs > VIEW_AGE_MS_MAX) await removeView(join(folder, name), runtime);
  }
  const layer = join(folder, randomLetters(12));
  await mkdir(layer, { mode: 0o755 });
  return layer;
}

async function removeView(layer: string, runtime: Runtime): Promise<void> {
  await runtime.removeLayer?.(layer);
  await rm(layer, { recursive: true, force: true });
}

/** Removes the views of dead processes from a session that is being removed. */
export async function removeViews(dir: string, runtime: Runtime): Promise<void> {
  for (const name of await ifErrno(readdir(join(dir, VIEWS)), ABSENT, [])) await removeView(join(dir, VIEWS, name), runtime);
}
