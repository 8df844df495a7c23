import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Session } from "../../contract/session/session.ts";
import { ABSENT, ifErrno } from "../../lib/failures.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import type { SessionStore } from "../../workspace/sessions.ts";
import type { PointFiles } from "./step-files.ts";
import { pointName } from "./stored-points.ts";
import { configOfView, type MakeViewConfig } from "./view-config.ts";

/** The session as of a point, and the point's name if the session's files are in a layer. */
export interface PointView {
  session: Session;
  point: string | null;
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
  const { runtime, makeConfig = configOfView } = options;
  if (files.kind === "snapshot") {
    const then = { ...session, snapshot: files.id === null ? null : { id: files.id, runtime: runtime.name } };
    await using sandbox = await runtime.create(await makeConfig(then, options));
    return await work(sandbox, { session: then, point: null });
  }
  const point = pointName(files);
  // Everything in the point's layers was copied, even if the session is old.
  const then = { ...session, restoredAt: new Date().toISOString() };
  await using sandbox = await runtime.create(
    await makeConfig(then, { ...options, ...(point === null ? { asBegun: true } : { at: point }) }),
  );
  return await work(sandbox, { session: then, point });
}

/** Removes what views of earlier versions left in a session that is being removed. */
export async function removeViews(dir: string, runtime: Runtime): Promise<void> {
  const folder = join(dir, "views");
  for (const name of await ifErrno(readdir(folder), ABSENT, [])) {
    await runtime.removeLayer?.(join(folder, name));
    await rm(join(folder, name), { recursive: true, force: true });
  }
}
