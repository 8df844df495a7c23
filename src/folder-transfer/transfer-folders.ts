import { CaissonError } from "../contract/error/error.ts";
import type { RunView, StartRunInput } from "../contract/run/run-verbs.ts";
import type { SandboxInfo } from "../contract/sandbox/sandbox.ts";
import type { FolderMount, UploadedMount } from "../contract/sandbox/sandbox-fields.ts";
import type { CreateSandbox } from "../contract/sandbox/sandbox-verbs.ts";
import type { FolderOrigin } from "../contract/upload/upload.ts";
import type { HidingRules } from "../contract/workspace/workspace-guard.ts";
import { defined } from "../lib/defined.ts";
import type { RunVerbs } from "../verbs/runs.ts";
import type { SandboxVerbs } from "../verbs/sandboxes.ts";
import type { Station } from "../verbs/station.ts";
import type { TemplateVerbs } from "../verbs/templates.ts";
import { realFolder } from "./caller-machine.ts";
import { type SendFolder, type SentFolder, sendFolder } from "./send-folder.ts";
import { type ClientSideSessionOptions, wrapSessions } from "./transfer-sessions.ts";

export interface ClientSideFolderOptions
  extends Omit<SendFolder, "uploads">,
    Omit<ClientSideSessionOptions, "machine" | "places" | "notice"> {}

/**
 * Wraps a remote station for a caller with local folders. Folders to work on are sent to the station, and changes come
 * back through the same code and checks as for a local station.
 */
export function withClientSideFolders<Remote extends Station>(station: Remote, options: ClientSideFolderOptions): Remote {
  const sending = { ...options, uploads: station.uploads };
  return {
    ...station,
    runs: wrapRuns(station.runs, sending),
    sandboxes: wrapSandboxes(station.sandboxes, sending),
    templates: wrapTemplates(station.templates, sending),
    sessions: wrapSessions(station, options),
  };
}

/** Sends the folder that a build reads. Files that look like credentials stay here, as in every folder that is sent. */
function wrapTemplates(templates: TemplateVerbs, options: SendFolder): TemplateVerbs {
  return {
    ...templates,
    async *build({ context, ...request }) {
      if (context === undefined) {
        yield* templates.build(request);
        return;
      }
      const { hide = [], show = [] } = request.hiding ?? {};
      const sent = await sendFolder(context, {
        ...options,
        ...defined({ signal: request.signal }),
        hiding: { hide, show },
        isNamed: true,
        option: "template",
      });
      yield* templates.build({ ...request, uploaded: sent });
    },
  };
}

function wrapRuns(runs: RunVerbs, options: SendFolder): RunVerbs {
  const toLocalView = async (view: RunView) => await withLocalFolder(view, options);
  return {
    ...runs,
    async start(request, choices) {
      return await toLocalView(
        await runs.start(await withSentFolders(request, { ...options, ...defined({ signal: choices?.signal }) }), choices),
      );
    },
    get: async (run) => await toLocalView(await runs.get(run)),
    async list({ folder, ...rest } = {}) {
      const where = folder === undefined ? {} : { folder: await realFolder(folder), machine: await options.machine.id() };
      const list = await runs.list({ ...rest, ...where });
      return { ...list, runs: await Promise.all(list.runs.map(toLocalView)) };
    },
    wait: async (run, waitOptions) => await toLocalView(await runs.wait(run, waitOptions)),
    resume: async (run, request) => await toLocalView(await runs.resume(run, request)),
    continue: async (run, request, choices) => await toLocalView(await runs.continue(run, request, choices)),
  };
}

/** Replaces the station's folder with the caller's own. */
async function withLocalFolder(view: RunView, { machine }: Pick<SendFolder, "machine">): Promise<RunView> {
  const { origin } = view;
  return origin !== null && origin.machine === (await machine.id()) ? { ...view, folder: origin.folder } : view;
}

async function withSentFolders(request: StartRunInput, options: SendFolder & { signal?: AbortSignal }): Promise<StartRunInput> {
  const { source, settings = {}, sourceNamed = true } = request;
  const { mounts = [], mountGuard, ...others } = settings;
  const uploadedMounts = await sendMounts(mounts.map(whole), { ...options, hiding: mountGuard && rulesOf(mountGuard) });
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

async function sendMounts(
  mounts: readonly FolderMount[],
  options: SendFolder & { hiding?: HidingRules | undefined; signal?: AbortSignal },
): Promise<UploadedMount[]> {
  const sent: UploadedMount[] = [];
  for (const { path, target, access } of mounts) {
    if (access === "rw") throw notWritable(path);
    // Mounts are always named explicitly.
    const { upload } = await sendFolder(path, { ...options, isNamed: true, option: "mount" });
    sent.push({ upload, target, access });
  }
  return sent;
}

function notWritable(folder: string): CaissonError {
  return new CaissonError("unsupported", `${folder} cannot be mounted read-write: the station is remote and gets a copy`, {
    hint: "Leave out :rw, and bring workspace changes back with `caisson diff` and `caisson apply`.",
  });
}

function wrapSandboxes(sandboxes: SandboxVerbs, options: SendFolder): SandboxVerbs {
  const toLocalInfo = async (info: SandboxInfo): Promise<SandboxInfo> => {
    const { workspace } = info;
    const origin: FolderOrigin | undefined = workspace.kind === "folder" ? workspace.origin : undefined;
    if (workspace.kind !== "folder" || origin === undefined || origin.machine !== (await options.machine.id())) return info;
    return { ...info, workspace: { ...workspace, path: origin.folder } };
  };
  return {
    ...sandboxes,
    create: async (request, choices) =>
      await sandboxes.create(await withSentWorkspace(request, { ...options, ...defined({ signal: choices?.signal }) }), choices),
    get: async (id) => await toLocalInfo(await sandboxes.get(id)),
    async list(query) {
      const list = await sandboxes.list(query);
      return { ...list, sandboxes: await Promise.all(list.sandboxes.map(toLocalInfo)) };
    },
  };
}

async function withSentWorkspace(request: CreateSandbox, options: SendFolder & { signal?: AbortSignal }): Promise<CreateSandbox> {
  const { guard, spec: config, ...others } = request;
  const hiding = guard && rulesOf(guard);
  const uploadedMounts = await sendMounts(config.mounts, { ...options, hiding });
  const plain = {
    ...others,
    spec: { ...config, mounts: [] },
    ...defined({ uploadedMounts: uploadedMounts.length > 0 ? uploadedMounts : undefined }),
  };
  if (config.workspace.kind !== "folder") return plain;
  const { path, access } = config.workspace;
  if (access === "rw") throw notWritable(path);
  const sent: SentFolder = await sendFolder(path, { ...options, hiding, isNamed: guard?.named ?? true, option: "workspace" });
  return { ...plain, spec: { ...plain.spec, workspace: { kind: "empty" } }, uploaded: { ...sent, access } };
}
