import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import type { SandboxConfig } from "../../contract/sandbox/sandbox.ts";
import { ignore } from "../../lib/failures.ts";
import { gitSettingsFile } from "../../sandbox/git-settings.ts";
import { makeInsideFolder } from "../../sandbox/inside-folder.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import { refuseNetwork } from "../../sandbox/sandbox-config.ts";
import { writesToHost } from "../../sandbox/shared-folders.ts";
import { viewState } from "../../sandbox/state-places.ts";
import type { SandboxRecord } from "../../sandbox/store.ts";
import { packFolder } from "../../sandbox/tar/pack-folder.ts";
import { dockerSeccompProfile } from "../hardening/seccomp.ts";
import { accountEntries, guestFolders } from "./accounts.ts";
import { attachSandbox } from "./attach-sandbox.ts";
import { type ContainerRequest, containerConfig, containerName, workspaceInside } from "./container-config.ts";
import { type DockerDetails, runtimeName, workUidFor } from "./details.ts";
import type { DockerContext, ForkSource } from "./docker-context.ts";
import { enforcedLimits } from "./enforced-limits.ts";
import type { Engine } from "./engine.ts";
import { capabilitiesOf, type EngineFacts } from "./engine-facts.ts";
import { type FolderPlan, planFolders, planRepository } from "./folders.ts";
import { guestIdentity, makeSocketFolder, removeTokenInside, socketFolderIn } from "./guest-socket.ts";
import { type EngineImage, findImage } from "./image.ts";
import { placeholders } from "./paths.ts";
import { removeSandbox } from "./remove-sandbox.ts";
import { archiveOf } from "./small-archive.ts";
import { startContainer } from "./start-container.ts";
import { accountFilesOf, uploadArchive } from "./upload-archive.ts";

const ACCOUNT_FILES_MAX = 256;

export interface CreateRequest {
  config: SandboxConfig;
  signal?: AbortSignal | undefined;
  fork?: ForkSource;
}

/** Everything decided before anything is created. */
interface Plan {
  engine: Engine;
  facts: EngineFacts;
  image: EngineImage;
  folders: FolderPlan[];
  record: SandboxRecord;
  details: DockerDetails;
  ownUid: boolean;
}

/** Creates a sandbox and connects to its guest. Leaves nothing behind on failure. Throws as `Runtime.create` does. */
export async function createSandbox(docker: DockerContext, request: CreateRequest): Promise<OwnedSandbox> {
  stopIfAborted(request.signal);
  const plan = await planSandbox(docker, request);
  stopIfAborted(request.signal);
  // Written first: a process that finds this record after a crash knows what may exist.
  await docker.store.write(plan.record);
  try {
    return await build(docker, request, plan);
  } catch (error) {
    await ignore(removeSandbox(docker, plan.record), "the record stays, and the next sweep retries; we throw the first error");
    if (request.signal?.aborted) throw new CaissonError("cancelled", "sandbox creation was cancelled", { cause: error });
    throw error;
  }
}

async function planSandbox(docker: DockerContext, request: CreateRequest): Promise<Plan> {
  const { config, fork } = request;
  const engine = fork?.engine ?? (await docker.engine());
  const facts = await engine.facts();
  const capabilities = capabilitiesOf(facts, { defaultImage: docker.defaultImage });
  const { reasons, paths } = capabilities;
  refuseNetwork(config, capabilities);
  if (!facts.seccomp) {
    throw new CaissonError("unsupported", `the engine on ${engine.socketPath} cannot filter system calls`, {
      hint: "Use an engine with seccomp support, on a kernel that has it; this engine reports none.",
    });
  }
  if (!paths && config.readOnlyPaths.length + config.deniedPaths.length > 0) {
    throw new CaissonError("unsupported", "this engine cannot enforce read-only and denied paths", { hint: reasons.paths ?? "" });
  }
  const { limits, warnings } = enforcedLimits({ config, facts, reasons });
  const image =
    fork?.image ??
    (await findImage({
      engine,
      template: config.template,
      defaultImage: docker.defaultImage,
      stateLabel: docker.stateLabel,
      owner: config.owner,
    }));
  const options = { config, facts, reasons, state: viewState(docker.context.stateDir), forked: fork !== undefined };
  const shared = await planFolders(options);
  const repository = planRepository(shared, options);
  if (repository.problem !== null) warnings.push(`git does not work in this workspace: ${repository.problem}.`);
  const folders = [...shared, ...repository.plans];
  const { records } = await docker.store.list();
  const usedUids = new Set(records.filter((each) => each.runtime === runtimeName).map((each) => workUidOf(each)));
  const id = fork?.id ?? docker.store.newId();
  const ownerUid = folders.map((plan) => (plan.kind === "bound" ? plan.ownerUid : null)).find((uid) => uid !== null) ?? null;
  const workUid = ownerUid ?? image.workUid ?? workUidFor(id, usedUids);
  if (ownerUid === null && usedUids.has(workUid)) {
    warnings.push("This sandbox shares its user id, and so its process count, with the sandbox its files come from.");
  }
  if (config.allowRoot && facts.remappedRoot === null && !facts.rootless) {
    warnings.push(
      "The engine uses no user namespace: root inside is the machine's root, with few capabilities. Enable Docker's userns-remap, or use the oci runtime.",
    );
  }
  const details: DockerDetails = {
    engineSocket: engine.socketPath,
    ownImage: fork?.reference ?? null,
    workUid,
    env: image.env,
    workspace: workspaceKind(folders),
    startedMs: null,
  };
  const record: SandboxRecord = {
    ...{ id, runtime: runtimeName, state: "creating", createdAt: new Date().toISOString() },
    ...{ spec: config, limits, warnings, owner: docker.store.thisProcess(), details },
  };
  return { engine, facts, image, folders, record, details, ownUid: ownerUid === null };
}

function workspaceKind(folders: readonly FolderPlan[]): DockerDetails["workspace"] {
  const plan = folders.find(({ target }) => target === workspaceInside);
  if (plan?.kind !== "bound") return plan?.kind ?? "none";
  return plan.readOnly ? "ro" : "rw";
}

function workUidOf(record: SandboxRecord): number {
  const details = record.details;
  return typeof details === "object" && details !== null && "workUid" in details ? Number(details.workUid) : 0;
}

async function build(docker: DockerContext, request: CreateRequest, plan: Plan): Promise<OwnedSandbox> {
  const { engine, record } = plan;
  const { signal } = request;
  const folder = docker.store.dir(record.id);
  const guest = await guestIdentity({ facts: plan.facts, socketPath: engine.socketPath });
  const { group } = await makeSocketFolder({ sandboxFolder: folder, guest });
  const config = containerConfig({ ...(await containerRequest(docker, plan, folder)), socketGroup: group });
  // Not abortable: we could not tell whether the engine created the container.
  await engine.call(`creating sandbox ${record.id}`, (docker) => docker.createContainer(config));
  stopIfAborted(signal);
  await uploadFiles(docker, plan, signal);
  stopIfAborted(signal);
  await startContainer({ engine, id: record.id, sandboxFolder: folder, signal });
  const running: SandboxRecord = { ...record, state: "running", details: { ...plan.details, startedMs: Date.now() } };
  await docker.store.write(running);
  const sandbox = await attachSandbox(docker, { record: running, engine, fresh: true });
  try {
    await removeTokenInside(folder);
    for (const each of plan.folders) if (each.kind === "bound") await requireReadable(sandbox, each);
    stopIfAborted(signal);
    return sandbox;
  } catch (error) {
    await sandbox.destroy();
    throw error;
  }
}

async function containerRequest(docker: DockerContext, plan: Plan, folder: string): Promise<Omit<ContainerRequest, "socketGroup">> {
  const { record, facts, folders } = plan;
  return {
    id: record.id,
    config: record.spec,
    limits: record.limits,
    facts,
    image: plan.image.id,
    workUid: plan.details.workUid,
    ownUid: plan.ownUid,
    guestPath: guestFor(docker.context.guestPath, facts),
    socketFolder: socketFolderIn(folder),
    insideFolder: makeInsideFolder(folder, gitSettingsFile(docker.context)),
    stateLabel: docker.stateLabel,
    seccomp: await seccompFor(plan, folder),
    binds: folders.flatMap((each) => (each.kind === "bound" ? { ...each, source: each.folder } : [])),
    cgroupParent: docker.cgroupParent,
  };
}

/** Returns the guest binary for the engine's processor. If that differs from ours, the binary is next to ours. */
function guestFor(guestPath: string, facts: EngineFacts): string {
  if (facts.architecture === process.arch) return guestPath;
  return `${guestPath}-${facts.architecture === "x64" ? "x86_64" : "aarch64"}`;
}

/** Docker takes the filter itself, Podman the path of a file that contains it. */
async function seccompFor({ facts, record }: Plan, folder: string): Promise<string> {
  const profile = dockerSeccompProfile({ writesToHost: writesToHost(record.spec) });
  if (facts.kind === "docker") return profile;
  const path = join(folder, "seccomp.json");
  await writeFile(path, profile, { mode: 0o600 });
  return path;
}

/**
 * Packs what must be inside before the start: the guest's folders, accounts, and placeholders for read-only and denied
 * paths.
 */
async function smallFiles(docker: DockerContext, plan: Plan): Promise<Buffer> {
  const { engine, record, folders, details } = plan;
  const container = containerName(record.id);
  const entries = await placeholders({ engine, container, config: record.spec, folders });
  // A snapshot already has them, including any changes made since.
  if (plan.image.workUid === null) {
    const files = docker.accountFiles.get(plan.image.id) ?? (await accountFilesOf({ engine, container }));
    if (docker.accountFiles.size >= ACCOUNT_FILES_MAX) docker.accountFiles.clear();
    docker.accountFiles.set(plan.image.id, files);
    const accounts = accountEntries({ files, workUid: details.workUid, sudo: record.spec.allowRoot });
    // Engines unpack through mounts: a host folder bound there would get our owner and mode.
    const isBound = (path: string) => folders.some(({ kind, target }) => kind === "bound" && target === path);
    entries.unshift(...accounts.filter(({ name }) => !isBound(`/${name}`)));
  }
  const own = { uid: details.workUid, gid: details.workUid };
  for (const { kind, target } of folders)
    if (kind === "staged" && target !== workspaceInside) entries.unshift({ name: target.slice(1), kind: "directory", mode: 0o755, ...own });
  return archiveOf([...guestFolders(), ...entries]);
}

async function uploadFiles(docker: DockerContext, plan: Plan, signal: AbortSignal | undefined): Promise<void> {
  const { engine, record, folders, details } = plan;
  const target = { engine, container: containerName(record.id), signal };
  const small = await smallFiles(docker, plan);
  await uploadArchive({ ...target, folder: "/", archive: [small] });
  const owner = { uid: details.workUid, gid: details.workUid };
  for (const each of folders) {
    if (each.kind !== "staged") continue;
    stopIfAborted(signal);
    await uploadArchive({ ...target, folder: each.target, archive: packFolder(each.folder, { excludePaths: each.exclude, owner }) });
  }
}

async function requireReadable(sandbox: OwnedSandbox, { folder, target }: Pick<FolderPlan, "folder" | "target">): Promise<void> {
  try {
    await sandbox.list(target, { entriesMax: 1 });
  } catch (error) {
    if (!(error instanceof CaissonError) || error.code !== "denied") throw error;
    throw new CaissonError("denied", `the sandbox's user cannot read the folder ${folder}`, {
      hint: "Make the folder readable for others (`chmod o+rx`), or use overlay, which copies it: the sandbox's user does not exist on this machine.",
      cause: error,
    });
  }
}

function stopIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new CaissonError("cancelled", "sandbox creation was cancelled", { cause: signal.reason });
}
