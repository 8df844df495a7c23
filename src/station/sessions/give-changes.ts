import { CaissonError } from "../../contract/error/error.ts";
import { parseRequest } from "../../contract/error/parse-request.ts";
import { NoteSession } from "../../contract/session/session-verbs.ts";
import { ignore } from "../../lib/failures.ts";
import type { SessionVerbs } from "../../verbs/sessions.ts";
import { packChanges } from "../../workspace/changes-archive.ts";
import { withoutSecret } from "../../workspace/git/address.ts";
import type { ChangedWork } from "./changed-work.ts";

type ChangesQuery = NonNullable<Parameters<SessionVerbs["changes"]>[1]>;

/** See `SessionVerbs.changes`. */
export async function* changesArchive(
  find: () => Promise<ChangedWork>,
  { signal, base = false, ...ignoring }: ChangesQuery = {},
): AsyncGenerator<Uint8Array, void, void> {
  const work = await find();
  const { id, kind, commit } = work;
  const changes = await work.changes(ignoring);
  const described = { id, kind, source: withoutSecret(work.source), commit };
  for await (const piece of packChanges(described, changes, { base, applied: await work.readApplied() })) {
    if (signal?.aborted) throw new CaissonError("cancelled", "the download of the changes was abandoned");
    yield piece;
  }
}

/** See `SessionVerbs.note`. */
export async function noteWork(work: ChangedWork, request: NoteSession): Promise<void> {
  const { applied, event } = parseRequest(NoteSession, request, "a note");
  // The station reads a folder on its own machine directly.
  if (work.source.kind === "folder" && applied !== undefined)
    throw new CaissonError("conflict", `${work.what} works on a folder on the station's own machine`);
  if (applied !== undefined) await work.noteApplied(new Map(Object.entries(applied)));
  if (event !== undefined) await work.record(event);
  if (event?.type === "session.applied")
    await ignore(keepBrought(work, event.data), "the changes are applied, even if their diff cannot be stored");
}

/**
 * Stores the changes that a client applied to its own folder. Takes them from the session, because we cannot see that
 * folder from here.
 */
async function keepBrought(work: ChangedWork, { folder, paths }: { folder: string; paths: readonly string[] }): Promise<void> {
  const appliedPaths = new Set(paths);
  const { changes } = await work.changes({ includeIgnored: true });
  await work.keepApplied({ folder, changes: changes.filter(({ path }) => appliedPaths.has(path)) });
}
