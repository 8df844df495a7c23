import { CaissonError } from "../contract/error/error.ts";
import type { ManifestSide } from "../contract/session/changes-manifest.ts";
import type { WorkspaceSource } from "../contract/session/session.ts";
import { HidingRules } from "../contract/workspace/workspace-guard.ts";
import { defined } from "../lib/defined.ts";
import type { ChangedWork } from "../station/sessions/changed-work.ts";
import type { Station } from "../verbs/station.ts";
import { lookAtFolder } from "../workspace/apply-recovery.ts";
import { type Changes, type FileSide, pathsBelow, sameSide } from "../workspace/change.ts";
import { readChanges } from "../workspace/changes.ts";
import { digestOf, type ReadChangesArchive, readChangesArchive, sideFrom } from "../workspace/changes-archive.ts";
import { FolderTree } from "../workspace/folder-tree.ts";
import { type IgnoredFiles, type IgnoreRules, openIgnoreRules } from "../workspace/ignore-rules.ts";
import { readLower } from "../workspace/read-side.ts";
import { blobOf } from "../workspace/render-diff.ts";
import { hiddenHere, type SendFolder } from "./send-folder.ts";

/** The starting point of a session or sandbox on a remote station, as this machine sees it. */
export interface FoundWork {
  id: string;
  kind: "session" | "sandbox";
  /** A source of kind `folder` only if the folder is on this machine. */
  source: WorkspaceSource;
  commit: string | null;
}

/**
 * Returns the changes of a remote session or sandbox as work that can be applied to local folders under the usual
 * rules. The old side is the folder's current state, the new side comes from the station. The station's data is
 * untrusted: see `readChangesArchive`.
 */
export function toLocalWork(
  found: FoundWork,
  options: { station: Pick<Station, "sessions">; places: SendFolder["places"]; notice: SendFolder["notice"] },
): ChangedWork {
  const { id, kind, source, commit } = found;
  const { sessions } = options.station;
  /** Local changes stand even if the report to the station fails. */
  const tell = async (note: Parameters<typeof sessions.note>[1]) => {
    await sessions.note(id, note).catch((error: unknown) => {
      options.notice(`could not report to the station: ${error instanceof Error ? error.message : String(error)}`);
    });
  };
  /** Files that are already applied but unknown to the station: an apply was killed before it could report them. */
  let broughtBefore: ReadonlyMap<string, string> = new Map();
  return {
    id,
    kind,
    what: `the ${kind} ${id}`,
    source,
    commit,
    notesBefore: false,
    async changes(ignoring = {}) {
      const own = source.kind === "folder";
      const archive = await readChangesArchive(sessions.changes(id, { ...ignoring, base: !own }));
      if (!own) return await readRemoteChanges(archive);
      const contents = await archive.contents();
      const compare = () => compareWithFolder(source, { ...archive, contents }, { ...options, ignoring });
      const compared = await lookAtFolder(source.path, options.places, compare);
      broughtBefore = compared.broughtBefore;
      return compared.changes;
    },
    readApplied: async () => new Map(),
    noteApplied: (files) => tell({ applied: Object.fromEntries([...broughtBefore, ...files]) }),
    // The station stores the files when it receives the report.
    keepApplied: async () => undefined,
    record: async (event) => {
      if (event.type === "session.applied" || event.type === "session.branched") await tell({ event });
    },
  };
}

/** Compares the station's files with the folder's current state. */
async function compareWithFolder(
  { path: folder, hiding }: Extract<WorkspaceSource, { kind: "folder" }>,
  { manifest, contents }: Pick<ReadChangesArchive, "manifest"> & { contents: ReadonlyMap<string, Buffer> },
  options: { places: SendFolder["places"]; ignoring: IgnoredFiles },
): Promise<{ changes: Changes; broughtBefore: Map<string, string> }> {
  using lower = openFolder(folder);
  using rules = openIgnoreRules(folder);
  const { all } = await hiddenHere(folder, { places: options.places, hiding: checkedRules(hiding) });
  const isHidden = pathsBelow(all);
  const isSeen = (path: string) => !isHidden(path);
  const files = new Map(manifest.files.filter(({ path }) => isSeen(path)).map((file) => [file.path, file]));
  const found = await readChanges({
    candidates: [...files.keys()],
    leftOut: manifest.leftOut.filter(({ path }) => isSeen(path)),
    rules,
    ignoring: options.ignoring,
    before: (path) => readLower(lower, path),
    after: async (path) => sideFrom(files.get(path)?.after ?? null, contents),
    async changedOutside(path, now) {
      const file = files.get(path);
      return !isStill(now, file?.before ?? null) && file?.applied !== blobOf(now.content);
    },
  });
  const changed = new Set(found.changes.flatMap(({ path, from }) => (from === null ? [path] : [path, from])));
  const broughtBefore = new Map<string, string>();
  for (const { path, after, applied } of files.values()) {
    const side = sideFrom(after, contents);
    const blob = side === null ? "" : blobOf(side.content);
    if (changed.has(path) || applied === blob) continue;
    if (sameSide(await readLower(lower, path), side)) broughtBefore.set(path, blob);
  }
  return { changes: { ...found, ignored: found.ignored + manifest.ignored }, broughtBefore };
}

/** Throws `invalid` if the rules exceed the contract's bounds: they come from an untrusted station. */
function checkedRules(hiding: HidingRules | undefined): HidingRules | undefined {
  const parsed = HidingRules.optional().safeParse(hiding);
  if (parsed.success) return parsed.data;
  throw new CaissonError("invalid", "the station sent invalid hiding rules", {
    hint: "Ask the station's operator, or log in to another station: caisson login URL",
  });
}

const isStill = (now: FileSide, before: ManifestSide | null) =>
  before !== null && now.kind === before.kind && now.mode === before.mode && digestOf(now.content) === before.digest;

/** For work without a folder on this machine. Both sides come from the station. */
async function readRemoteChanges(archive: ReadChangesArchive): Promise<Changes> {
  const { manifest } = archive;
  const contents = await archive.contents();
  const files = new Map(manifest.files.map((file) => [file.path, file]));
  const found = await readChanges({
    candidates: [...files.keys()],
    leftOut: [...manifest.leftOut],
    rules: noRules,
    before: async (path) => sideFrom(files.get(path)?.before ?? null, contents),
    after: async (path) => sideFrom(files.get(path)?.after ?? null, contents),
  });
  return { ...found, ignored: manifest.ignored };
}

const noRules: IgnoreRules = { ignores: async () => false, ignoresFolder: async () => false };

function openFolder(path: string): FolderTree {
  try {
    return new FolderTree(path);
  } catch (cause) {
    throw new CaissonError("not_found", `the folder ${path} no longer exists or is not accessible`, defined({ cause }));
  }
}
