import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { HostProcess, type ProcessIdentity } from "../../contract/process-identity.ts";
import { ABSENT, ifErrno, jsonOrNull } from "../../lib/failures.ts";
import { replaceFile, sweepTemporaries } from "../../lib/replace-file.ts";

const RewindNote = z.object({ run: z.string(), maker: HostProcess });

/** Prefix of notes in the sessions folder, each about a run that is being rewound. No session can have such a name. */
const PREFIX = ".rewinding-";

interface NoteOptions {
  stateDir: string;
  identity: HostProcess;
  alive: (process: ProcessIdentity) => boolean;
}

/**
 * Notes that this process is about to rewind a run, until disposed of. If the process dies, the next one finds the note
 * without reading the log.
 */
export async function noteRewind(run: string, { stateDir, identity }: NoteOptions): Promise<AsyncDisposable> {
  const folder = join(stateDir, "sessions");
  await replaceFile(folder, `${PREFIX}${run}`, JSON.stringify({ run, maker: identity }));
  return { [Symbol.asyncDispose]: () => removeNote(run, { stateDir }) };
}

export async function removeNote(run: string, { stateDir }: Pick<NoteOptions, "stateDir">): Promise<void> {
  await rm(join(stateDir, "sessions", `${PREFIX}${run}`), { force: true });
}

/** Returns the runs whose rewind was interrupted because its process died. */
export async function interruptedRewinds({ stateDir, identity, alive }: NoteOptions): Promise<string[]> {
  const folder = join(stateDir, "sessions");
  const all = (await ifErrno(readdir(folder), ABSENT, [])).filter((name) => name.startsWith(PREFIX));
  const names = all.filter((name) => !name.endsWith(".tmp"));
  // A process died while it wrote a note, before it changed anything.
  if (names.length < all.length) await sweepTemporaries(folder);
  const runs: string[] = [];
  for (const name of names) {
    const text = await ifErrno(readFile(join(folder, name), "utf8"), ABSENT, null);
    const note = RewindNote.safeParse(jsonOrNull(text ?? "")).data;
    if (note === undefined) continue;
    if (note.maker.host === identity.host && !alive(note.maker)) runs.push(note.run);
  }
  return runs;
}
