import { CaissonError } from "../contract/error.ts";
import type { WorkspaceSource } from "../contract/session.ts";
import type { SessionView } from "../contract/session-verbs.ts";
import type { FolderOrigin } from "../contract/upload.ts";
import { defined } from "../lib/defined.ts";
import { applyWork } from "../station/sessions/apply-work.ts";
import { branchWork } from "../station/sessions/branch-work.ts";
import { diffWork, patchWork } from "../station/sessions/diff-work.ts";
import type { SessionVerbs } from "../station/sessions/verbs.ts";
import type { Station } from "../station/station.ts";
import type { CallerMachine } from "./caller-machine.ts";
import type { SendFolder } from "./send-folder.ts";
import { type FoundWork, workAtHome } from "./work-at-home.ts";

export interface CallersSessions {
  machine: CallerMachine;
  places: SendFolder["places"];
  notice: SendFolder["notice"];
  git: { path: string };
  /** Asked before a folder is written that the caller did not name. Throws what refuses it. */
  agree(folder: string): Promise<void>;
  /** Of the commits that `branch` makes. */
  author: { name: string; email: string };
}

type Remote = Pick<Station, "sessions" | "sandboxes">;

/** Sessions elsewhere whose folders are here. What has no folder of this machine is as the station says. */
export function callersSessions(station: Remote, options: CallersSessions): SessionVerbs {
  const { sessions } = station;
  const seen = async <View extends SessionView>(view: View): Promise<View> => {
    return { ...view, source: await sourceHere(view.source, options.machine) };
  };
  const find = async (name: string) => await findWork(name, { station, machine: options.machine });
  const work = (found: FoundWork) => workAtHome(found, { ...options, station });
  return {
    ...sessions,
    get: async (name) => await seen(await sessions.get(name)),
    async list(asked) {
      const { sessions: page, ...rest } = await sessions.list(asked);
      return { sessions: await Promise.all(page.map(seen)), ...rest };
    },
    async diff(name, asked) {
      const found = await find(name);
      return found.source.kind === "folder" ? await diffWork(work(found), asked) : await sessions.diff(name, asked);
    },
    async *patch(name, asked) {
      const found = await find(name);
      yield* found.source.kind === "folder" ? patchWork(async () => work(found), asked) : sessions.patch(name, asked);
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

/** As the station itself finds it: by a session's own name, by that of a run in it, or by a sandbox's. */
async function findWork(name: string, { station, machine }: { station: Remote; machine: CallerMachine }): Promise<FoundWork> {
  const session = await station.sessions.get(name).catch(ifAbsent);
  if (session !== null) {
    const { id, source, commit } = session;
    return { id, kind: "session", source: await ownOrNone(source, machine), commit };
  }
  const sandbox = await station.sandboxes.get(name);
  if (sandbox.labels.session !== undefined) return await findWork(sandbox.labels.session, { station, machine });
  const { workspace } = sandbox;
  const origin = workspace.kind === "folder" ? workspace.origin : undefined;
  const source: WorkspaceSource =
    origin === undefined ? { kind: "empty" } : await ownOrNone({ kind: "upload", upload: "", origin }, machine);
  return { id: sandbox.id, kind: "sandbox", source, commit: null };
}

function ifAbsent(error: unknown): null {
  if (error instanceof CaissonError && (error.code === "not_found" || error.code === "invalid")) return null;
  throw error;
}

async function sourceHere(source: WorkspaceSource, machine: CallerMachine): Promise<WorkspaceSource> {
  return source.kind === "upload" ? ((await folderOf(source.origin, machine)) ?? source) : source;
}

/** A folder of the station's machine is none of ours, whatever it is called. */
async function ownOrNone(source: WorkspaceSource, machine: CallerMachine): Promise<WorkspaceSource> {
  const here = await sourceHere(source, machine);
  return source.kind === "folder" || here.kind === "upload" ? { kind: "empty" } : here;
}

/** Only a folder that was sent from here: a station could name any. */
async function folderOf({ machine: id, folder, hiding }: FolderOrigin, machine: CallerMachine) {
  if (id !== (await machine.id()) || !(await machine.hasSent(folder))) return null;
  return { kind: "folder" as const, path: folder, ...defined({ hiding }) };
}
