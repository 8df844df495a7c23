import { CaissonError } from "../contract/error.ts";
import type { Session } from "../contract/session.ts";
import type { Runtime } from "../sandbox/runtime.ts";
import { removeFolder, type SessionStore } from "../workspace/sessions.ts";

/** Ends what still runs in a session and removes it with everything it kept. Throws `conflict` while somebody works in it, unless forced. */
export async function removeSession(
  session: Session,
  options: { sessions: SessionStore; runtimes: readonly Runtime[]; force: boolean },
): Promise<void> {
  await options.sessions.breakLock(session.id, { force: options.force });
  for (const runtime of options.runtimes) {
    const infos = await runtime.list().catch((error: unknown) => {
      // A runtime that is not there on this machine has no sandbox of ours.
      if (error instanceof CaissonError && (error.code === "unavailable" || error.code === "unsupported")) return [];
      throw error;
    });
    for (const info of infos.filter((each) => each.labels.session === session.id)) {
      const sandbox = await runtime.open(info.id).catch(() => null);
      if (sandbox) await sandbox.destroy();
      else await runtime.sweep();
    }
    if (session.snapshot?.runtime === runtime.name) await runtime.removeSnapshot(session.snapshot.id).catch(() => undefined);
  }
  await removeFolder(options.sessions.paths(session).dir);
}
