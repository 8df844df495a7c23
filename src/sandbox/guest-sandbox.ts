import { CaissonError } from "../contract/error.ts";
import { SandboxEnded, type SandboxEvent, SandboxPaused, SandboxResumed, SandboxSnapshotted } from "../contract/event.ts";
import type { SandboxInfo, SandboxSpec, SandboxState } from "../contract/sandbox.ts";
import { checkListing, checkMode, checkPort, checkWhole } from "./call-checks.ts";
import type { GuestConnection } from "./guest/connection.ts";
import { PING_TIMEOUT_MS } from "./guest/waits.ts";
import { resolveSandboxPath } from "./path.ts";
import type { OwnedSandbox } from "./sandbox.ts";
import { emitTo, observe } from "./sandbox-events.ts";
import { checkRef, checkUser, createSpawnRequests } from "./spawn-request.ts";
import type { Wall } from "./wall.ts";

export interface GuestSandboxOptions {
  info: SandboxInfo;
  spec: SandboxSpec;
  connection: GuestConnection;
  wall: Wall;
  onEvent?: ((event: SandboxEvent) => void) | undefined;
  /** The template's own variables; they win over the built-in ones and lose to the spec's. */
  defaultEnv?: Readonly<Record<string, string>>;
  /** For a runtime whose sandboxes have no network of their own: why, as a sentence. */
  sharedNetwork?: string;
  /** For a runtime in which a path of the contract lies elsewhere. Both get and give absolute paths. */
  paths?: { toGuest(path: string): string; fromGuest(path: string): string };
}

/**
 * A sandbox over a guest and a wall. Everything a tool may do goes to the guest; the life of the sandbox goes to the
 * wall. When the connection breaks, `closed` says `lost`, and `runtime.open(id)` may find the sandbox again.
 * `await using` destroys it, or releases it when it was made to be kept.
 */
export function createGuestSandbox(options: GuestSandboxOptions): OwnedSandbox {
  const { spec, connection, wall } = options;
  const { files } = connection;
  const { id } = options.info;
  const closed = Promise.withResolvers<{ why: "destroyed" | "lost" }>();
  const spawnRequest = createSpawnRequests({
    spec,
    limits: options.info.limits,
    ...(options.defaultEnv === undefined ? {} : { defaultEnv: options.defaultEnv }),
  });
  let state: SandboxState = options.info.state;
  let destroying: Promise<void> | null = null;
  let released = false;

  const emit = (event: SandboxEvent) => emitTo(options.onEvent, event);
  const ready = () => {
    if (state === "paused") throw new CaissonError("conflict", `sandbox ${id} is paused`, { hint: "Resume it first." });
    if (destroying !== null || connection.isClosed) throw new CaissonError("lost", `sandbox ${id} is gone`);
  };
  const inside = (path: string) => {
    const absolute = resolveSandboxPath(path);
    return options.paths === undefined ? absolute : options.paths.toGuest(absolute);
  };
  /** Checks what file calls have in common. */
  const check = (asked: { user?: string } | undefined) => {
    ready();
    checkUser(asked?.user, spec.allowRoot);
  };

  connection.onSilence(() => wall.condition());
  void connection.closed.then(() => {
    if (destroying !== null || released) return;
    state = "failed";
    emit(SandboxEnded.make({ sandbox: id, why: "lost" }));
    closed.resolve({ why: "lost" });
  });

  const destroy = async () => {
    state = "completing";
    try {
      await wall.destroy();
    } catch (error) {
      // Whoever asks again tries again.
      destroying = null;
      throw error;
    }
    connection.close();
    state = "completed";
    emit(SandboxEnded.make({ sandbox: id, why: "destroyed" }));
    closed.resolve({ why: "destroyed" });
  };

  const sandbox: OwnedSandbox = {
    id,
    get info() {
      return { ...options.info, state };
    },
    network: null,
    closed: closed.promise,

    async spawn(asked) {
      ready();
      const request = spawnRequest(asked);
      const observer = options.onEvent === undefined ? undefined : observe(id, request.ref, emit, request.argv);
      const cwd = options.paths === undefined ? request.cwd : options.paths.toGuest(request.cwd);
      return connection.spawn({ ...request, cwd }, observer);
    },
    async attach(ref, from = {}) {
      ready();
      checkRef(ref);
      const { stdoutOffset, stderrOffset } = from;
      for (const offset of [stdoutOffset, stderrOffset]) if (offset !== undefined) checkWhole("an offset", offset);
      const observer = options.onEvent === undefined ? undefined : observe(id, ref, emit);
      return connection.attach({ ref, stdoutFrom: stdoutOffset, stderrFrom: stderrOffset }, observer);
    },
    async forget(ref) {
      ready();
      checkRef(ref);
      await connection.forget(ref);
    },
    async processes() {
      ready();
      return connection.processes();
    },

    async stat(path, asked = {}) {
      check(asked);
      const file = await files.stat(inside(path), { follow: asked.follow ?? true, user: asked.user, signal: asked.signal });
      return { ...file, name: path };
    },
    async list(path, asked = {}) {
      check(asked);
      const { depth, entriesMax } = checkListing(asked);
      return files.list(inside(path), { depth, entriesMax, user: asked.user, signal: asked.signal });
    },
    async mkdir(path, asked = {}) {
      check(asked);
      await files.mkdir(inside(path), {
        parents: asked.parents ?? false,
        mode: checkMode(asked.mode),
        user: asked.user,
        signal: asked.signal,
      });
    },
    async move(from, to, asked = {}) {
      check(asked);
      await files.move(inside(from), inside(to), { replace: asked.replace ?? false, user: asked.user, signal: asked.signal });
    },
    async remove(path, asked = {}) {
      check(asked);
      await files.remove(inside(path), { recursive: asked.recursive ?? false, user: asked.user, signal: asked.signal });
    },
    async readFile(path, asked = {}) {
      check(asked);
      const { offset, length, user, signal } = asked;
      if (offset !== undefined) checkWhole("offset", offset);
      if (length !== undefined) checkWhole("length", length);
      return files.readFile(inside(path), { offset, length, user, signal });
    },
    async writeFile(path, data, asked = {}) {
      check(asked);
      const { how = "replace", parents = false, mode, user, signal } = asked;
      return files.writeFile(inside(path), data, { how, parents, mode: checkMode(mode), user, signal });
    },
    async watch(path, asked = {}) {
      check(asked);
      const toPath = options.paths?.fromGuest;
      return files.watch(inside(path), {
        recursive: asked.recursive ?? false,
        user: asked.user,
        signal: asked.signal,
        ...(toPath === undefined ? {} : { toPath }),
      });
    },
    async tarIn(folder, archive, asked = {}) {
      check(asked);
      const { bytesMax, entriesMax, stripComponents, user, signal } = asked;
      for (const value of [bytesMax, entriesMax, stripComponents]) if (value !== undefined) checkWhole("a bound", value);
      return files.tarIn(inside(folder), archive, { bytesMax, entriesMax, stripComponents, user, signal });
    },
    async tarOut(path, asked = {}) {
      check(asked);
      const { exclude = [], bytesMax, user, signal } = asked;
      if (bytesMax !== undefined) checkWhole("bytesMax", bytesMax);
      return files.tarOut(inside(path), { exclude, bytesMax, user, signal });
    },

    async fence(owner) {
      ready();
      await connection.fence(owner);
    },
    async ping() {
      ready();
      return connection.ping({ timeoutMs: PING_TIMEOUT_MS });
    },
    lastHeardMs: connection.lastHeardMs,
    async stats() {
      if (destroying !== null) throw new CaissonError("lost", `sandbox ${id} is gone`);
      return wall.stats();
    },
    async connect(port) {
      ready();
      checkPort(port);
      return connection.connect(port);
    },
    async serve(port, onConnection) {
      ready();
      checkPort(port);
      if (options.sharedNetwork !== undefined) throw new CaissonError("unsupported", `no port can be served: ${options.sharedNetwork}`);
      return connection.serve(port, onConnection);
    },
    async serveTransparent(service) {
      ready();
      for (const port of service.ports) checkPort(port);
      if (spec.network.mode === "none" || !spec.network.transparent) {
        throw new CaissonError("unsupported", `sandbox ${id} was not made for programs that know nothing of proxies`, {
          hint: "Create it with a transparent network.",
        });
      }
      return connection.serveTransparent(service);
    },
    async listeners() {
      ready();
      return connection.listeners();
    },
    async pause() {
      if (state === "paused") return;
      ready();
      await wall.pause();
      state = "paused";
      emit(SandboxPaused.make({ sandbox: id }));
    },
    async resume() {
      if (state !== "paused") ready();
      // Whatever this handle last saw: somebody else may have frozen it since, and died.
      await wall.resume();
      if (state !== "paused") return;
      state = "running";
      emit(SandboxResumed.make({ sandbox: id }));
    },
    async snapshot(asked = {}) {
      if (destroying !== null) throw new CaissonError("lost", `sandbox ${id} is gone`);
      const snapshot = await wall.snapshot(asked);
      emit(SandboxSnapshotted.make({ sandbox: id, snapshot }));
      return snapshot;
    },
    async fork() {
      if (destroying !== null) throw new CaissonError("lost", `sandbox ${id} is gone`);
      return wall.fork();
    },
    async release() {
      if (!spec.keep) {
        throw new CaissonError("invalid", `sandbox ${id} was not made to be kept`, { hint: "Create it with keep: true (--keep)." });
      }
      if (destroying !== null) throw new CaissonError("lost", `sandbox ${id} is gone`);
      await wall.release();
      released = true;
      connection.close();
    },
    async detach() {
      released = true;
      connection.close();
    },
    destroy() {
      destroying ??= destroy();
      return destroying;
    },
    async [Symbol.asyncDispose]() {
      if (released) return;
      if (spec.keep && destroying === null) await sandbox.release();
      else await sandbox.destroy();
    },
  };
  return sandbox;
}
