import { CaissonError } from "../../contract/error.ts";
import { parseRequest } from "../../contract/parse-request.ts";
import { NoteSession } from "../../contract/session-verbs.ts";
import { packChanges } from "../../workspace/changes-archive.ts";
import { withoutSecret } from "../../workspace/git/address.ts";
import type { ChangedWork } from "./changed-work.ts";
import type { SessionVerbs } from "./verbs.ts";

type Asked = NonNullable<Parameters<SessionVerbs["changes"]>[1]>;

/** See `SessionVerbs.changes`. */
export async function* changesArchive(
  find: () => Promise<ChangedWork>,
  { signal, base = false, ...ignoring }: Asked = {},
): AsyncGenerator<Uint8Array, void, void> {
  const work = await find();
  const { id, kind, commit } = work;
  const changes = await work.changes(ignoring);
  const described = { id, kind, source: withoutSecret(work.source), commit };
  for await (const piece of packChanges(described, changes, { base, applied: await work.applied() })) {
    if (signal?.aborted) throw new CaissonError("cancelled", "nobody wants the changes any more");
    yield piece;
  }
}

/** See `SessionVerbs.note`. */
export async function noteWork(work: ChangedWork, request: NoteSession): Promise<void> {
  const { applied, event } = parseRequest(NoteSession, request, "a note");
  // What lies in a folder of this machine is seen there.
  if (work.source.kind === "folder" && applied !== undefined)
    throw new CaissonError("conflict", `${work.what} works on a folder of the station's own machine`);
  if (applied !== undefined) await work.noteApplied(new Map(Object.entries(applied)));
  if (event !== undefined) await work.record(event);
  if (event?.type === "session.applied") await keepBrought(work, event.data).catch(() => undefined);
}

/** What somebody brought to a folder of theirs, as it is in the session: the folder itself cannot be seen from here. */
async function keepBrought(work: ChangedWork, { folder, paths }: { folder: string; paths: readonly string[] }): Promise<void> {
  const brought = new Set(paths);
  const { changes } = await work.changes({ includeIgnored: true });
  await work.keepApplied({ folder, changes: changes.filter(({ path }) => brought.has(path)) });
}
