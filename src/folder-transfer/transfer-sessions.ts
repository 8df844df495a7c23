import { CaissonError } from "../contract/error/error.ts";
import type { WorkspaceSource } from "../contract/session/session.ts";
import type { SessionView } from "../contract/session/session-verbs.ts";
import type { FolderOrigin } from "../contract/upload/upload.ts";
import { defined } from "../lib/defined.ts";
import { applyWork } from "../station/sessions/apply-work.ts";
import { branchWork } from "../station/sessions/branch-work.ts";
import { diffWork, patchWork } from "../station/sessions/diff-work.ts";
import type { SessionVerbs } from "../verbs/sessions.ts";
import type { Station } from "../verbs/station.ts";
import type { CallerMachine } from "./caller-machine.ts";
import { type FoundWork, toLocalWork } from "./local-changes.ts";
import type { SendFolder } from "./send-folder.ts";

export interface ClientSideSessionOptions {
  machine: CallerMachine;
  places: SendFolder["places"];
  notice: SendFolder["notice"];
  git: { path: string };
  /** Called before we write to a folder that the caller did not name. Throws to refuse. */
  agree(folder: string): Promise<void>;
  /** The author of commits that `branch` creates. */
  author: { name: string; email: string };
}

type Remote = Pick<Station, "sessions" | "sandboxes">;

/**
 * Wraps a remote station's sessions for a caller with local folders. Sessions without a folder on this machine pass
 * through unchanged.
 */
export function wrapSessions(station: Remote, options: ClientSideSessionOptions): SessionVerbs {
  const { sessions } = station;
  const withLocalSource = async <View extends SessionView>(view: View): Promise<View> => {
    return { ...view, source: await sourceHere(view.source, options.machine) };
  };
  const find = async (name: string) => await findWork(name, { station, machine: options.machine });
  const work = (found: FoundWork) => toLocalWork(found, { ...options, station });
  return {
    ...sessions,
    get: async (name) => await withLocalSource(await sessions.get(name)),
    async list(query) {
      const { sessions: page, ...rest } = await sessions.list(query);
      return { sessions: await Promise.all(page.map(withLocalSource)), ...rest };
    },
    async diff(name, query) {
      const found = await find(name);
      return found.source.kind === "folder" ? await diffWork(work(found), query) : await sessions.diff(name, query);
    },
    async *patch(name, query) {
      const found = await find(name);
      yield* found.source.kind === "folder" ? patchWork(async () => work(found), query) : sessions.patch(name, query);
    },
    async apply(name, request = {}) {
      const found = await find(name);
      if (request.folder === undefined && found.source.kind === "folder") await options.agree(found.source.path);
      return await applyWork(work(found), request, options.places);
    },
    async branch(name, request = {}) {
      const found = await find(name);
      if (request.repository === undefined && found.source.kind === "folder") await options.agree(found.source.path);
      return await branchWork(work(found), request, { ...options, stateDir: options.places.stateDir });
    },
  };
}

/** Finds work as the station does: by the name of a session, of a run in it, or of a sandbox. */
async function findWork(name: string, { station, machine }: { station: Remote; machine: CallerMachine }): Promise<FoundWork> {
  const session = await station.sessions.get(name).catch(ifAbsent);
  if (session !== null) {
    const { id, source, commit } = session;
    return { id, kind: "session", source: await localSourceOrEmpty(source, machine), commit };
  }
  const sandbox = await station.sandboxes.get(name);
  if (sandbox.labels.session !== undefined) return await findWork(sandbox.labels.session, { station, machine });
  const { workspace } = sandbox;
  const origin = workspace.kind === "folder" ? workspace.origin : undefined;
  const source: WorkspaceSource =
    origin === undefined ? { kind: "empty" } : await localSourceOrEmpty({ kind: "upload", upload: "", origin }, machine);
  return { id: sandbox.id, kind: "sandbox", source, commit: null };
}

function ifAbsent(error: unknown): null {
  if (error instanceof CaissonError && (error.code === "not_found" || error.code === "invalid")) return null;
  throw error;
}

async function sourceHere(source: WorkspaceSource, machine: CallerMachine): Promise<WorkspaceSource> {
  return source.kind === "upload" ? ((await folderOf(source.origin, machine)) ?? source) : source;
}

/** A folder of the station's machine is not ours, even if the path is the same. */
async function localSourceOrEmpty(source: WorkspaceSource, machine: CallerMachine): Promise<WorkspaceSource> {
  const here = await sourceHere(source, machine);
  return source.kind === "folder" || here.kind === "upload" ? { kind: "empty" } : here;
}

/** Accepts only a folder that was sent from here: a station could name any folder. */
async function folderOf({ machine: id, folder, hiding }: FolderOrigin, machine: CallerMachine) {
  if (id !== (await machine.id()) || !(await machine.hasSent(folder))) return null;
  return { kind: "folder" as const, path: folder, ...defined({ hiding }) };
}
