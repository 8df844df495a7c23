import { CaissonError } from "../contract/error.ts";
import type { RunView, StartRunInput } from "../contract/run-verbs.ts";
import type { FolderMount, SandboxInfo } from "../contract/sandbox.ts";
import type { CreateSandbox } from "../contract/sandbox-verbs.ts";
import type { FolderOrigin } from "../contract/upload.ts";
import type { UploadedMount } from "../contract/upload-verbs.ts";
import type { HidingRules } from "../contract/workspace-guard.ts";
import { defined } from "../lib/defined.ts";
import type { RunVerbs } from "../station/runs/verbs.ts";
import type { SandboxVerbs } from "../station/sandboxes/verbs.ts";
import type { Station } from "../station/station.ts";
import { realFolder } from "./caller-machine.ts";
import { type CallersSessions, callersSessions } from "./callers-sessions.ts";
import { type SendFolder, type SentFolder, sendFolder } from "./send-folder.ts";

export interface CallersFolders extends Omit<SendFolder, "uploads">, Omit<CallersSessions, "machine" | "places" | "notice"> {}

/**
 * A station elsewhere, for somebody whose folders are here: what is to be worked on is sent there, and what became of
 * it is brought home by the same code, and with the same checks, as if the station were here.
 */
export function withCallersFolders<Remote extends Station>(station: Remote, options: CallersFolders): Remote {
  const sending = { ...options, uploads: station.uploads };
  return {
    ...station,
    runs: callersRuns(station.runs, sending),
    sandboxes: callersSandboxes(station.sandboxes, sending),
    sessions: callersSessions(station, options),
  };
}

function callersRuns(runs: RunVerbs, options: SendFolder): RunVerbs {
  const seen = async (view: RunView) => await runSeenHere(view, options);
  return {
    ...runs,
    async start(request, asked) {
      return await seen(await runs.start(await withSentFolders(request, { ...options, ...defined({ signal: asked?.signal }) }), asked));
    },
    get: async (run) => await seen(await runs.get(run)),
    async list({ folder, ...asked } = {}) {
      const where = folder === undefined ? {} : { folder: await realFolder(folder), machine: await options.machine.id() };
      const list = await runs.list({ ...asked, ...where });
      return { ...list, runs: await Promise.all(list.runs.map(seen)) };
    },
    wait: async (run, asked) => await seen(await runs.wait(run, asked)),
    resume: async (run, asked) => await seen(await runs.resume(run, asked)),
    continue: async (run, request, asked) => await seen(await runs.continue(run, request, asked)),
  };
}

/** Its folder is the caller's own again. */
async function runSeenHere(view: RunView, { machine }: Pick<SendFolder, "machine">): Promise<RunView> {
  const { origin } = view;
  return origin !== null && origin.machine === (await machine.id()) ? { ...view, folder: origin.folder } : view;
}

async function withSentFolders(request: StartRunInput, options: SendFolder & { signal?: AbortSignal }): Promise<StartRunInput> {
  const { source, settings = {}, sourceNamed = true } = request;
  const { mounts = [], mountGuard, ...others } = settings;
  const uploadedMounts = await sentMounts(mounts.map(whole), { ...options, hiding: mountGuard && rulesOf(mountGuard) });
  const sentSettings = { ...others, uploadedMounts };
  if (source?.kind !== "folder") return { ...request, settings: sentSettings };
  const hiding = source.hiding && rulesOf(source.hiding);
  const sent = await sendFolder(source.path, { ...options, hiding, isNamed: sourceNamed, option: "repo" });
  return { ...request, settings: sentSettings, source: { kind: "upload", ...sent }, sourceNamed: true };
}

const whole = (mount: { path: string; target: string; access?: FolderMount["access"] | undefined }): FolderMount => ({
  ...mount,
  access: mount.access ?? "ro",
});

const rulesOf = ({ hide = [], show = [] }: { hide?: string[] | undefined; show?: string[] | undefined }): HidingRules => ({ hide, show });

async function sentMounts(
  mounts: readonly FolderMount[],
  options: SendFolder & { hiding?: HidingRules | undefined; signal?: AbortSignal },
): Promise<UploadedMount[]> {
  const sent: UploadedMount[] = [];
  for (const { path, target, access } of mounts) {
    if (access === "rw") throw notWritable(path);
    // A mount is always named.
    const { upload } = await sendFolder(path, { ...options, isNamed: true, option: "mount" });
    sent.push({ upload, target, access });
  }
  return sent;
}

function notWritable(folder: string): CaissonError {
  return new CaissonError("unsupported", `${folder} cannot be given read-write: the station is elsewhere, and gets a copy`, {
    hint: "Leave :rw out; `caisson diff` and `caisson apply` bring home what changed in the workspace.",
  });
}

function callersSandboxes(sandboxes: SandboxVerbs, options: SendFolder): SandboxVerbs {
  const seen = async (info: SandboxInfo): Promise<SandboxInfo> => {
    const { workspace } = info;
    const origin: FolderOrigin | undefined = workspace.kind === "folder" ? workspace.origin : undefined;
    if (workspace.kind !== "folder" || origin === undefined || origin.machine !== (await options.machine.id())) return info;
    return { ...info, workspace: { ...workspace, path: origin.folder } };
  };
  return {
    ...sandboxes,
    create: async (request, asked) =>
      await sandboxes.create(await withSentWorkspace(request, { ...options, ...defined({ signal: asked?.signal }) }), asked),
    get: async (id) => await seen(await sandboxes.get(id)),
    async list(asked) {
      const list = await sandboxes.list(asked);
      return { ...list, sandboxes: await Promise.all(list.sandboxes.map(seen)) };
    },
  };
}

async function withSentWorkspace(request: CreateSandbox, options: SendFolder & { signal?: AbortSignal }): Promise<CreateSandbox> {
  const { guard, spec, ...others } = request;
  const hiding = guard && rulesOf(guard);
  const uploadedMounts = await sentMounts(spec.mounts, { ...options, hiding });
  const plain = {
    ...others,
    spec: { ...spec, mounts: [] },
    ...defined({ uploadedMounts: uploadedMounts.length > 0 ? uploadedMounts : undefined }),
  };
  if (spec.workspace.kind !== "folder") return plain;
  const { path, access } = spec.workspace;
  if (access === "rw") throw notWritable(path);
  const sent: SentFolder = await sendFolder(path, { ...options, hiding, isNamed: guard?.named ?? true, option: "workspace" });
  return { ...plain, spec: { ...plain.spec, workspace: { kind: "empty" } }, uploaded: { ...sent, access } };
}
