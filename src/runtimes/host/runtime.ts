import { realpathSync, statSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { userInfo } from "node:os";
import { join, resolve } from "node:path";
import { z } from "zod";
import { CaissonError } from "../../contract/error/error.ts";
import type { SandboxId } from "../../contract/ids.ts";
import type { SandboxConfig } from "../../contract/sandbox/sandbox.ts";
import { ignore } from "../../lib/failures.ts";
import { realPathOrNull } from "../../lib/paths.ts";
import { connectGuest, type GuestConnection } from "../../sandbox/guest/connection.ts";
import { createGuestSandbox } from "../../sandbox/guest-sandbox.ts";
import { makeGuestToken, readGuestToken } from "../../sandbox/guest-token.ts";
import { seenProcesses } from "../../sandbox/host-processes.ts";
import { WORKSPACE } from "../../sandbox/path.ts";
import { conditionOfProcess } from "../../sandbox/process-identity.ts";
import type { Probe, Runtime, RuntimeContext } from "../../sandbox/runtime.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import { parseSandboxConfig } from "../../sandbox/sandbox-config.ts";
import { emitCreated } from "../../sandbox/sandbox-events.ts";
import { viewState } from "../../sandbox/state-places.ts";
import { createStore, ifRemoved, infoOf, isOrphan, type SandboxRecord, type Store } from "../../sandbox/store.ts";
import type { Wall } from "../../sandbox/wall.ts";
import { hostCapabilities, hostLimits, hostWarnings, refuseUnenforceable } from "./capabilities.ts";
import { guestAlive, killEverything, processesOf, SANDBOX_MARK, SOCKET_NAME, startGuest } from "./guest-process.ts";

const NAME = "host";
const CONNECT_TIMEOUT_MS = 10_000;
const SHUTDOWN_GRACE_MS = 500;
const SHUTDOWN_PATIENCE_MS = 3_000;

/** What the parts of this runtime share. */
interface HostContext extends RuntimeContext {
  store: Store;
}

/**
 * Creates the runtime for commands on this machine itself, without any isolation, for users who request it by name.
 * Paths of the contract still work: `/workspace` means the workspace's folder, translated here and nowhere else.
 * Commands see the machine's real paths.
 */
export function createHostRuntime(context: RuntimeContext): Runtime {
  const host: HostContext = { ...context, store: createStore(context) };
  const { store } = host;
  const runtime: Runtime = {
    name: NAME,
    capabilities: async () => hostCapabilities,
    async probe() {
      return probe(runtime);
    },
    create: (config, options = {}) => create(host, config, options),
    async open(id) {
      const record = await store.read(id);
      if (record.runtime !== NAME) throw new CaissonError("not_found", `sandbox ${id} belongs to the ${record.runtime} runtime`);
      if (record.state !== "running") throw new CaissonError("lost", `sandbox ${id} is ${record.state}`);
      const token = readGuestToken(store.dir(id));
      const connection = await connectGuest({ socketPath: join(store.dir(id), SOCKET_NAME), token, timeoutMs: CONNECT_TIMEOUT_MS });
      return sandboxOver(host, record, connection);
    },
    async look(id) {
      const guest = z.object({ guestPid: z.int().positive() }).safeParse((await store.read(id)).details);
      const condition = guest.success ? conditionOfProcess({ pid: guest.data.guestPid }) : "unknown";
      return { condition, stats: null, processes: seenProcesses(processesOf(realPath(store.dir(id)), id)) };
    },
    kill: async (id) => killEverything(realPath(store.dir(id)), id),
    async list() {
      const { records } = await store.list();
      return records
        .filter((record) => record.runtime === NAME)
        .map((record) =>
          infoOf(record.state === "running" && !guestAlive(realPath(store.dir(record.id))) ? { ...record, state: "failed" } : record),
        );
    },
    async sweep() {
      const removed: SandboxId[] = [];
      for (const record of (await store.list()).records) {
        if (record.runtime !== NAME || !isForSweep(record, store.isHolderAlive(record.owner))) continue;
        await destroy(host, record.id, null);
        removed.push(record.id);
      }
      return removed;
    },
    discard: (id) => destroy(host, id, null),
    snapshots: async () => [],
    async removeSnapshot(id) {
      throw new CaissonError("not_found", `there is no snapshot ${id}`, { hint: "The host runtime does not create snapshots." });
    },
    async [Symbol.asyncDispose]() {},
  };
  return runtime;
}

async function create(host: HostContext, requestedConfig: SandboxConfig, options: { signal?: AbortSignal }): Promise<OwnedSandbox> {
  const { store } = host;
  const config = resolveConfig(requestedConfig, host);
  if (options.signal?.aborted) throw cancelledError(options.signal.reason);
  const holder = store.thisProcess();
  const record: SandboxRecord = {
    id: store.newId(),
    runtime: NAME,
    state: "creating",
    createdAt: new Date().toISOString(),
    spec: config,
    limits: hostLimits(config),
    warnings: hostWarnings,
    owner: holder,
    details: {},
  };
  const { id } = record;
  const dir = store.dir(id);
  await store.write(record);
  let connection: GuestConnection | null = null;
  try {
    if (config.workspace.kind === "empty") await mkdir(join(dir, "workspace"));
    const { uid, gid, homedir } = userInfo();
    const token = makeGuestToken(dir);
    const guest = startGuest({ guestPath: host.guestPath, dir: realPath(dir), id, uid, gid, home: homedir });
    const connecting = connectGuest({ socketPath: join(dir, SOCKET_NAME), token, timeoutMs: CONNECT_TIMEOUT_MS, waitForSocket: true });
    void ignore(connecting, "awaited below");
    connection = await Promise.race([connecting, guest.failed, rejectOnAbort(options.signal)]);
    const running: SandboxRecord = { ...record, state: "running", owner: config.keep ? null : holder, details: { guestPid: guest.pid } };
    await store.write(running);
    options.signal?.throwIfAborted();
    emitCreated(host.onEvent, infoOf(running));
    return sandboxOver(host, running, connection);
  } catch (error) {
    connection?.close();
    await destroy(host, id, null);
    throw options.signal?.aborted ? cancelledError(error) : error;
  }
}

function sandboxOver(host: HostContext, record: SandboxRecord, connection: GuestConnection): OwnedSandbox {
  const { id, spec: config } = record;
  const { username, homedir } = userInfo();
  return createGuestSandbox({
    info: infoOf(record),
    config,
    connection,
    wall: wallOf(host, record, connection),
    onEvent: host.onEvent,
    defaultEnv: { USER: username, HOME: homedir, [SANDBOX_MARK]: id },
    sharedNetwork: "the host runtime uses the machine's own network.",
    paths: workspacePaths(workspaceFolder(record, host.store.dir(id))),
  });
}

function wallOf(host: HostContext, { id, details }: SandboxRecord, connection: GuestConnection): Wall {
  const guest = z.object({ guestPid: z.int().positive() }).safeParse(details);
  const refuseUnsupported = (what: "pause" | "snapshot") => {
    throw new CaissonError("unsupported", `the host runtime cannot ${what}: ${hostCapabilities.reasons[what]}`, {
      hint: "Use the oci runtime.",
    });
  };
  return {
    async stats() {
      // The guest and its helpers do not count.
      const processes = (await connection.processes()).filter(({ state }) => state === "running").length;
      return { cpuMs: null, memoryBytes: null, memoryKills: null, processes, diskBytes: null, source: "guest" };
    },
    condition: async () => (guest.success ? conditionOfProcess({ pid: guest.data.guestPid }) : "unknown"),
    pause: async () => refuseUnsupported("pause"),
    // Nothing could have paused it.
    resume: async () => {},
    snapshot: async () => refuseUnsupported("snapshot"),
    fork: async () => refuseUnsupported("snapshot"),
    async release() {
      await host.store.write({ ...(await host.store.read(id)), owner: null });
    },
    destroy: () => destroy(host, id, connection),
  };
}

async function destroy({ store }: HostContext, id: SandboxId, connection: GuestConnection | null): Promise<void> {
  const dir = store.dir(id);
  const record = (await ignore(store.read(id), "a damaged record is removed as well")) ?? null;
  if (record !== null) await store.write({ ...record, state: "completing" }).catch(ifRemoved);
  if (connection !== null && !connection.isClosed) await shutDown(connection);
  await killEverything(realPath(dir), id);
  await store.remove(id);
}

/**
 * Whether a dead creator left this record: an orphan, or an interrupted create or delete. A kept sandbox that runs
 * stays.
 */
function isForSweep(record: SandboxRecord, isHolderAlive: boolean): boolean {
  if (isHolderAlive) return false;
  return isOrphan(record) || record.state === "creating" || record.state === "completing";
}

function resolveConfig(requestedConfig: SandboxConfig, { stateDir }: { stateDir: string }): SandboxConfig {
  const config = parseSandboxConfig(requestedConfig);
  refuseUnenforceable(config);
  if (config.workspace.kind !== "folder") return config;
  const path = resolve(config.workspace.path);
  if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) {
    throw new CaissonError("invalid", `the workspace ${path} is not a folder`, { hint: "Name a folder that exists." });
  }
  const real = realpathSync(path);
  viewState(stateDir).refuse(real, config.workspace);
  return { ...config, workspace: { ...config.workspace, path: real } };
}

/** Returns a folder's real path, by which the kernel identifies it, or the given path if it no longer exists. */
function realPath(dir: string): string {
  return realPathOrNull(dir) ?? dir;
}

function workspaceFolder(record: SandboxRecord, dir: string): string {
  return record.spec.workspace.kind === "folder" ? record.spec.workspace.path : join(realPath(dir), "workspace");
}

function workspacePaths(folder: string): { toGuest(path: string): string; fromGuest(path: string): string } {
  const replacePrefix = (path: string, from: string, to: string) =>
    path === from || path.startsWith(`${from}/`) ? to + path.slice(from.length) : path;
  return {
    toGuest: (path) => replacePrefix(path, WORKSPACE, folder),
    fromGuest: (path) => replacePrefix(path, folder, WORKSPACE),
  };
}

/** Asks the guest to end its processes. The caller kills a guest that does not answer. */
async function shutDown(connection: GuestConnection): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((done) => {
    timer = setTimeout(done, SHUTDOWN_PATIENCE_MS);
  });
  const shutdown = ignore(connection.shutdown({ graceMs: SHUTDOWN_GRACE_MS }), "the caller kills a guest that does not answer");
  await Promise.race([shutdown, connection.closed, late]);
  clearTimeout(timer);
}

function cancelledError(cause: unknown): CaissonError {
  return new CaissonError("cancelled", "sandbox creation was cancelled", { cause });
}

function rejectOnAbort(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_resolve, reject) => signal?.addEventListener("abort", () => reject(signal.reason), { once: true }));
}

async function probe(runtime: Runtime): Promise<Probe> {
  const startedMs = performance.now();
  try {
    await using sandbox = await runtime.create(parseSandboxConfig({}));
    const process = await sandbox.spawn({ argv: ["true"] });
    process.discardOutput();
    await process.ended;
    const startMs = performance.now() - startedMs;
    return {
      usable: true,
      startMs,
      findings: [{ level: "note", text: "The host runtime works and isolates nothing; it is used only on request." }],
    };
  } catch (error) {
    const fix = error instanceof CaissonError ? error.hint : undefined;
    const text = `A host sandbox does not start: ${error instanceof Error ? error.message : String(error)}`;
    return { usable: false, startMs: null, findings: [{ level: "problem", text, ...(fix === undefined ? {} : { fix }) }] };
  }
}
