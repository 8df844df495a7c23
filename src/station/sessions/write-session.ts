import type { Session } from "../../contract/session/session.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import { snapshotName } from "../vocabulary/station-names.ts";
import type { ChangesOptions } from "./session-changes.ts";
import { dropSnapshot } from "./stored-points.ts";
import { configOfWriter } from "./view-config.ts";

/** Changes the files of a session through a separate sandbox. Throws `conflict` while a run works in the session. */
export async function writeSession<Result>(
  { id, runtime: name }: Session,
  options: ChangesOptions,
  work: (sandbox: Sandbox) => Promise<Result>,
): Promise<Result> {
  const { sessions } = options;
  const runtime = await options.runtime(name ?? undefined);
  const { workspaceLayer } = await runtime.capabilities();
  await using _ = await sessions.edit(id);
  const session = await sessions.get(id);
  if (session.runtime === null) await sessions.update(id, { runtime: runtime.name });
  let result: Result;
  {
    await using sandbox = await runtime.create(await configOfWriter(session, { sessions, runtime }));
    result = await work(sandbox);
    if (!workspaceLayer) {
      const snapshot = await sandbox.snapshot({ name: snapshotName(id) });
      await sessions.update(id, { snapshot: { id: snapshot, runtime: runtime.name } });
    }
  }
  // We could not drop the old snapshot earlier, because the sandbox was based on it.
  if (!workspaceLayer && session.snapshot !== null) await dropSnapshot(session.snapshot.id, id, { sessions, runtime });
  return result;
}
