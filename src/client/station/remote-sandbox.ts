import { CaissonError } from "../../contract/error.ts";
import type { HeldSandbox, Process } from "../../station/sandboxes/held-sandbox.ts";
import type { Client } from "../connect.ts";
import type { RemoteHold } from "../held-stream.ts";
import type { RemoteProcess } from "../process-stream.ts";
import { bodyOf, bytesOf } from "./byte-streams.ts";

type Files = Pick<HeldSandbox, "stat" | "list" | "mkdir" | "move" | "remove" | "readFile" | "writeFile" | "watch" | "tarIn" | "tarOut">;
type Processes = Pick<HeldSandbox, "spawn" | "attach" | "forget" | "processes">;

/** The handle of a sandbox whose holder is a connection to the station. */
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
    // With its connection, which this handle ends itself.
    const how = destroyed ? { why: "destroyed" as const } : end;
    isGone = how.why === "destroyed";
    return how;
  });
  const refusal = (): CaissonError | null => {
    if (destroyed || isGone) return new CaissonError("lost", `sandbox ${id} is gone`);
    return released ? new CaissonError("gone", `this handle of sandbox ${id} was released`) : null;
  };
  const work = { ...remoteProcesses(client, id), ...remoteFiles(client, id), ...remotePorts(client, id) };
  return {
    id,
    info: hold.info,
    closed,
    network: hold.hasNetwork ? { subscribe: (listener) => hold.subscribe(listener) } : null,
    ...guarded(work, refusal),
    release,
    async destroy() {
      destroyed = true;
      await hold.destroy();
    },
    [Symbol.asyncDispose]: release,
  };
}

/**
 * A handle that was released does nothing more, although the sandbox may still be there for others; nor does one of a
 * sandbox that is gone.
 */
function guarded<Work extends object>(work: Work, refusal: () => CaissonError | null): Work {
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

/** The API takes whole paths only; one that is not begins in the workspace, as it does for the guest. */
const whole = (path: string) => (path === "" || path.startsWith("/") ? path : `/workspace/${path}`);

function remoteFiles({ files }: Client, sandbox: string): Files {
  return {
    stat: (path, { signal, ...options } = {}) => files.info(sandbox, { path: whole(path), ...options }, given(signal)),
    list: (path, { signal, entriesMax, ...options } = {}) =>
      files.list(sandbox, { path: whole(path), ...(entriesMax !== undefined && { limit: entriesMax }), ...options }, given(signal)),
    mkdir: (path, { signal, ...options } = {}) => files.makeFolder(sandbox, { path: whole(path), ...options }, given(signal)),
    move: (from, to, { signal, ...options } = {}) => files.move(sandbox, { from: whole(from), to: whole(to), ...options }, given(signal)),
    remove: (path, { signal, ...options } = {}) => files.remove(sandbox, { path: whole(path), ...options }, given(signal)),
    readFile: async (path, { signal, ...options } = {}) =>
      bytesOf(await files.read(sandbox, { path: whole(path), ...options }, given(signal)), { what: "reading", signal }),
    writeFile: (path, data, { signal, ...options } = {}) =>
      files.write(sandbox, { path: whole(path), ...options }, bodyOf(data), given(signal)),
    async watch(path, { signal, ...options } = {}) {
      const over = new AbortController();
      const signals = signal === undefined ? over.signal : AbortSignal.any([over.signal, signal]);
      const changes = await files.watch(sandbox, { path: whole(path), ...options }, { signal: signals });
      return { [Symbol.asyncIterator]: () => changes[Symbol.asyncIterator](), close: () => over.abort() };
    },
    tarIn: (path, archive, { signal, ...options } = {}) =>
      files.unpack(sandbox, { path: whole(path), ...options }, bodyOf(archive), given(signal)),
    async tarOut(path, { signal, exclude, ...options } = {}) {
      const query = { path: whole(path), ...options, ...(exclude && { exclude: [...exclude] }) };
      return bytesOf(await files.pack(sandbox, query, given(signal)), { what: "packing", signal });
    },
  };
}

const given = (signal: AbortSignal | undefined) => (signal === undefined ? {} : { signal });

function remotePorts({ streams, networks }: Client, id: string): Pick<HeldSandbox, "connect" | "listeners"> {
  return {
    async connect(port) {
      const { portDuplex } = await import("./port-duplex.ts");
      return portDuplex(await streams.connectPort(id, port));
    },
    listeners: () => networks.ports(id, { all: true }),
  };
}
