import type { Session, WorkspaceSource } from "../../contract/session/session.ts";
import type { NewSessionEvent } from "../../contract/session/session-event.ts";
import { keepAppliedDiff } from "../../workspace/applied-diffs.ts";
import type { Change, Changes } from "../../workspace/change.ts";
import { changesBetween } from "../../workspace/changes-between.ts";
import type { IgnoredFiles } from "../../workspace/ignore-rules.ts";
import { type ChangesOptions, changesOf } from "./session-changes.ts";
import type { PointFiles } from "./step-files.ts";

/** A session or sandbox whose changes can be shown, applied or committed to a branch. */
export interface ChangedWork {
  id: string;
  kind: "session" | "sandbox";
  /** Its name in messages. */
  what: string;
  source: WorkspaceSource;
  /** The commit that a git workspace started from. */
  commit: string | null;
  /** Returns the changes; with `at`, as of this step; with `since`, only those after that step. */
  changes(options?: IgnoredFiles & { at?: number | undefined; since?: number | undefined }): Promise<Changes>;
  /** Returns git's blob ids of the files applied to the original folder, by path. */
  readApplied(): Promise<ReadonlyMap<string, string>>;
  /**
   * Whether an apply is noted before its first effect, so that a kill loses no note. A remote station gets the note
   * afterwards, because it counts noted files as applied.
   */
  notesBefore: boolean;
  /** The blob id is empty for a file that the apply removed. */
  noteApplied(files: ReadonlyMap<string, string>): Promise<void>;
  /** Stores the applied changes for later viewing. */
  keepApplied(applied: { folder: string; changes: readonly Change[] }): Promise<void>;
  /** Appends to the history, if there is one. */
  record(event: NewSessionEvent): Promise<void>;
}

export function workOfSession(
  session: Session,
  options: ChangesOptions & { filesAfter: (step: number) => Promise<PointFiles> },
): ChangedWork {
  const { id, source, commit } = session;
  return {
    id,
    kind: "session",
    what: `the session ${id}`,
    source,
    commit,
    notesBefore: true,
    async changes({ at, since, ...ignoring } = {}) {
      const changesAt = async (step: number | undefined) =>
        await changesOf(session, { ...options, ignoring, ...(step !== undefined && { version: await options.filesAfter(step) }) });
      return since === undefined ? await changesAt(at) : changesBetween(await changesAt(since), await changesAt(at));
    },
    readApplied: () => options.sessions.readApplied(id),
    noteApplied: (files) => options.sessions.noteApplied(id, files),
    keepApplied: (applied) => keepAppliedDiff(options.sessions.paths(session).dir, { ...applied, at: new Date().toISOString() }),
    record: (event) => options.sessions.record(id, event),
  };
}
