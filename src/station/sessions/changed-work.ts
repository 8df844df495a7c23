import type { Session, WorkspaceSource } from "../../contract/session.ts";
import type { NewSessionEvent } from "../../contract/session-event.ts";
import { keepAppliedDiff } from "../../workspace/applied-diffs.ts";
import type { Change, Changes } from "../../workspace/change.ts";
import type { IgnoredFiles } from "../../workspace/ignore-rules.ts";
import { type ChangesOptions, changesOf } from "./session-changes.ts";
import type { KeptFiles } from "./step-files.ts";

/** What has changes that can be shown, applied or made a branch of: a session, or a sandbox. */
export interface ChangedWork {
  id: string;
  kind: "session" | "sandbox";
  /** What it is called in messages. */
  what: string;
  source: WorkspaceSource;
  /** The commit that a git workspace began at. */
  commit: string | null;
  /** `at`: as it was after so many steps. */
  changes(asked?: IgnoredFiles & { at?: number }): Promise<Changes>;
  /** Git's names of what was brought to the folder that it began from, by path. */
  applied(): Promise<ReadonlyMap<string, string>>;
  /**
   * Whether what is applied is noted before the first effect: a kill then loses no note. A station elsewhere is told
   * afterwards, since it counts what is noted as applied.
   */
  notesBefore: boolean;
  /** Empty for a file that was removed there. */
  noteApplied(files: ReadonlyMap<string, string>): Promise<void>;
  /** What was brought to a folder, to be looked at later. */
  keepApplied(applied: { folder: string; changes: readonly Change[] }): Promise<void>;
  /** Into its history, where there is one. */
  record(event: NewSessionEvent): Promise<void>;
}

export function workOfSession(
  session: Session,
  options: ChangesOptions & { filesAfter: (step: number) => Promise<KeptFiles> },
): ChangedWork {
  const { id, source, commit } = session;
  return {
    id,
    kind: "session",
    what: `the session ${id}`,
    source,
    commit,
    notesBefore: true,
    async changes({ at, ...ignoring } = {}) {
      return await changesOf(session, { ...options, ignoring, ...(at !== undefined && { kept: await options.filesAfter(at) }) });
    },
    applied: () => options.sessions.applied(id),
    noteApplied: (files) => options.sessions.noteApplied(id, files),
    keepApplied: (applied) => keepAppliedDiff(options.sessions.paths(session).dir, { ...applied, at: new Date().toISOString() }),
    record: (event) => options.sessions.record(id, event),
  };
}
