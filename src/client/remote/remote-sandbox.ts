import { CaissonError } from "../../contract/error/error.ts";
import type { HeldSandbox, Process } from "../../verbs/held-sandbox.ts";
import type { Client } from "../connect.ts";
import type { RemoteHold } from "../held-stream.ts";
import type { RemoteProcess } from "../process-stream.ts";
import { bodyOf, bytesOf } from "./byte-streams.ts";

type Files = Pick<HeldSandbox, "stat" | "list" | "mkdir" | "move" | "remove" | "readFile" | "writeFile" | "watch" | "tarIn" | "tarOut">;
type Processes = Pick<HeldSandbox, "spawn" | "attach" | "forget" | "processes">;

/** Creates the handle of a sandbox that is held by a connection to the station. */
export function createRemoteSandbox(client: Client, hold: RemoteHold): HeldSandbox {
  const { id } = hold.info;
  let released = false;
  let destroyed = false;
  const release = () => {
    released = true;
    return hold.release();
  };
  let isGone = false;
  const closed = hold.closed.then((end) => {
    // When this handle destroys the sandbox, the connection ends too, which must not count as lost.
    const how = destroyed ? { why: "destroyed" as const } : end;
    isGone = how.why === "destroyed";
    return how;
  });
  const refusal = (): CaissonError | null => {
    if (destroyed || isGone) return new CaissonError("lost", `sandbox ${id} no longer exists`);
    return released ? new CaissonError("gone", `this handle of sandbox ${id} was released`) : null;
  };
  const work = { ...remoteProcesses(client, id), ...remoteFiles(client, id), ...remotePorts(client, id) };
  return {
    id,
    info: hold.info,
    closed,
    network: hold.hasNetwork ? { subscribe: (listener) => hold.subscribe(listener) } : null,
    ...guardWork(work, refusal),
    release,
    async destroy() {
      destroyed = true;
      await hold.destroy();
    },
    [Symbol.asyncDispose]: release,
  };
}

/**
 * Makes all methods fail once the handle is released or the sandbox is removed. Other holders may still use a released
 * sandbox.
 */
function guardWork<Work extends object>(work: Work, refusal: () => CaissonError | null): Work {
  const entries = Object.entries(work as Record<string, (...args: unknown[]) => unknown>).map(([name, method]) => [
    name,
    async (...args: unknown[]) => {
      const refused = refusal();
      if (refused !== null) throw refused;
      return method(...args);
    },
  ]);
  return Object.fromEntries(entries) as Work;
}

function remoteProcesses({ streams, processes }: Client, id: string): Processes {
  return {
    spawn: async ({ argv, env, ...options }) =>
      processOf(await streams.openProcess(id, { ...options, argv: [...argv], ...(env && { env: { ...env } }) })),
    attach: async (ref, options) => processOf(await streams.attachProcess(id, ref, options)),
    forget: (ref) => processes.forget(id, ref),
    processes: () => processes.list(id),
  };
}

function processOf(process: RemoteProcess): Process {
  return { ...process, signal: (name, options) => process.signal(name, options) };
}

/** The API takes only absolute paths; a relative one is resolved in the workspace, as the guest does. */
const whole = (path: string) => (path === "" || path.startsWith("/") ? path : `/workspace/${path}`);

function remoteFiles({ files }: Client, sandbox: string): Files {
  return {
    stat: (path, { signal, ...options } = {}) => files.info(sandbox, { path: whole(path), ...options }, withSignal(signal)),
    list: (path, { signal, entriesMax, ...options } = {}) =>
      files.list(sandbox, { path: whole(path), ...(entriesMax !== undefined && { limit: entriesMax }), ...options }, withSignal(signal)),
    mkdir: (path, { signal, ...options } = {}) => files.makeFolder(sandbox, { path: whole(path), ...options }, withSignal(signal)),
    move: (from, to, { signal, ...options } = {}) =>
      files.move(sandbox, { from: whole(from), to: whole(to), ...options }, withSignal(signal)),
    remove: (path, { signal, ...options } = {}) => files.remove(sandbox, { path: whole(path), ...options }, withSignal(signal)),
    readFile: async (path, { signal, ...options } = {}) =>
      bytesOf(await files.read(sandbox, { path: whole(path), ...options }, withSignal(signal)), { what: "reading", signal }),
    writeFile: (path, data, { signal, ...options } = {}) =>
      files.write(sandbox, { path: whole(path), ...options }, bodyOf(data), withSignal(signal)),
    async watch(path, { signal, ...options } = {}) {
      const over = new AbortController();
      const signals = signal === undefined ? over.signal : AbortSignal.any([over.signal, signal]);
      const changes = await files.watch(sandbox, { path: whole(path), ...options }, { signal: signals });
      return { [Symbol.asyncIterator]: () => changes[Symbol.asyncIterator](), close: () => over.abort() };
    },
    tarIn: (path, archive, { signal, ...options } = {}) =>
      files.unpack(sandbox, { path: whole(path), ...options }, bodyOf(archive), withSignal(signal)),
    async tarOut(path, { signal, exclude, ...options } = {}) {
      const query = { path: whole(path), ...options, ...(exclude && { exclude: [...exclude] }) };
      return bytesOf(await files.pack(sandbox, query, withSignal(signal)), { what: "packing", signal });
    },
  };
}

const withSignal = (signal: AbortSignal | undefined) => (signal === undefined ? {} : { signal });

function remotePorts({ streams, networks }: Client, id: string): Pick<HeldSandbox, "connect" | "listeners"> {
  return {
    async connect(port) {
      const { portDuplex } = await import("./port-duplex.ts");
      return portDuplex(await streams.connectPort(id, port));
    },
    listeners: () => networks.ports(id, { all: true }),
  };
}
