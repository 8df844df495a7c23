import { mkdir, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Session } from "../../contract/session.ts";
import { randomLetters } from "../../lib/new-id.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import type { SessionStore } from "../../workspace/sessions.ts";
import { COPY_BYTES_MAX } from "./restore-points.ts";
import type { KeptFiles } from "./step-files.ts";
import { type MakeViewSpec, viewSpec } from "./view-spec.ts";

/** In a session's folder: layers with copies of what was kept, each for one look at it. */
const VIEWS = "views";
/** Whoever made one that is older died over it. */
const VIEW_AGE_MS_MAX = 60 * 60_000;

/** The session as it was then, and where its files are for this look. */
export interface SeenSession {
  session: Session;
  sessions: SessionStore;
}

/**
 * Through a sandbox on a session's files as they were kept. The session itself is left alone: somebody may work in it
 * meanwhile.
 */
export async function withKeptFiles<Result>(
  session: Session,
  kept: Exclude<KeptFiles, null>,
  options: { sessions: SessionStore; runtime: Runtime; spec?: MakeViewSpec },
  work: (sandbox: Sandbox, seen: SeenSession) => Promise<Result>,
): Promise<Result> {
  const { sessions, runtime, spec = viewSpec } = options;
  if (kept.kind === "snapshot") {
    const then = { ...session, snapshot: kept.id === null ? null : { id: kept.id, runtime: runtime.name } };
    await using sandbox = await runtime.create(await spec(then, options));
    return await work(sandbox, { session: then, sessions });
  }
  const paths = sessions.paths(session);
  const layer = await newView(join(paths.dir, VIEWS), runtime);
  try {
    await runtime.forkLayer?.(paths.layer, layer, { copy: kept.copy, bytesMax: COPY_BYTES_MAX });
    const there = { ...sessions, paths: () => ({ ...paths, layer }) };
    // Everything in it was copied just now, whenever it was made.
    const forked = { from: session.id, at: new Date().toISOString(), since: session.forked?.since ?? session.createdAt };
    const then = { ...session, forked };
    await using sandbox = await runtime.create(await spec(then, { sessions: there, runtime }));
    return await work(sandbox, { session: then, sessions: there });
  } finally {
    await removeView(layer, runtime);
  }
}

async function newView(folder: string, runtime: Runtime): Promise<string> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  for (const name of await readdir(folder)) {
    const { mtimeMs } = (await stat(join(folder, name)).catch(() => null)) ?? { mtimeMs: Date.now() };
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

/** Those whose makers died, of a session that is being removed. */
export async function removeViews(dir: string, runtime: Runtime): Promise<void> {
  for (const name of await readdir(join(dir, VIEWS)).catch(() => [])) await removeView(join(dir, VIEWS, name), runtime);
}
