import { CaissonError } from "../contract/error/error.ts";
import type { ProcessRef } from "../contract/ids.ts";
import type { SandboxConfig, SandboxInfo } from "../contract/sandbox/sandbox.ts";
import type { SandboxEvent } from "../contract/sandbox/sandbox-event.ts";
import { checkPort, checkWhole } from "./call-checks.ts";
import type { GuestConnection } from "./guest/connection.ts";
import { PING_TIMEOUT_MS } from "./guest/waits.ts";
import { resolveSandboxPath } from "./path.ts";
import type { OwnedSandbox } from "./sandbox.ts";
import { observe } from "./sandbox-events.ts";
import { fileCalls } from "./sandbox-files.ts";
import { SandboxLife } from "./sandbox-life.ts";
import { checkRef, checkUser, createSpawnRequests } from "./spawn-request.ts";
import type { Wall } from "./wall.ts";

export interface GuestSandboxOptions {
  info: SandboxInfo;
  config: SandboxConfig;
  connection: GuestConnection;
  wall: Wall;
  onEvent?: ((event: SandboxEvent) => void) | undefined;
  /** The template's variables, which override the built-in ones; the config's override them. */
  defaultEnv?: Readonly<Record<string, string>>;
  /** Why sandboxes of this runtime have no separate network, as a sentence. Absent if they have one. */
  sharedNetwork?: string;
  /**
   * For a runtime whose guest sees the contract's paths at other places. Both functions take and return absolute paths.
   */
  paths?: { toGuest(path: string): string; fromGuest(path: string): string };
}

/**
 * Creates a sandbox from a guest and a wall. Everything a tool may do goes to the guest; lifecycle calls go to the
 * wall. When the connection breaks, `closed` resolves with `lost`, and `runtime.open(id)` may find the sandbox again.
 * `await using` destroys it, or releases it if it was created with `keep`.
 */
export function createGuestSandbox(options: GuestSandboxOptions): OwnedSandbox {
  const { config, connection, wall } = options;
  const life = new SandboxLife(options);
  const ready = () => life.checkReady();
  connection.onSilence(() => wall.condition());
  return {
    id: options.info.id,
    get info() {
      return life.info;
    },
    network: null,
    closed: life.closed,
    ...processCalls(options, life),
    ...fileCalls({
      files: connection.files,
      check: (callOptions) => {
        ready();
        checkUser(callOptions.user, config.allowRoot);
      },
      inside: (path) => guestPath(options, resolveSandboxPath(path)),
      fromGuest: options.paths?.fromGuest,
    }),
    ...portCalls(options, ready),
    ...life.calls(),
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
      life.checkThere();
      return wall.stats();
    },
  };
}

function guestPath({ paths }: GuestSandboxOptions, absolute: string): string {
  return paths === undefined ? absolute : paths.toGuest(absolute);
}

function processCalls(options: GuestSandboxOptions, life: SandboxLife): Pick<OwnedSandbox, "spawn" | "attach" | "forget" | "processes"> {
  const { connection, defaultEnv } = options;
  const { id, limits } = options.info;
  const spawnRequest = createSpawnRequests({ config: options.config, limits, ...(defaultEnv === undefined ? {} : { defaultEnv }) });
  const observer = (ref: ProcessRef, argv?: readonly string[]) =>
    options.onEvent === undefined ? undefined : observe(id, ref, (event) => life.emit(event), argv);
  return {
    async spawn(spawnOptions) {
      life.checkReady();
      const request = spawnRequest(spawnOptions);
      return connection.spawn({ ...request, cwd: guestPath(options, request.cwd) }, observer(request.ref, request.argv));
    },
    async attach(ref, attachOptions = {}) {
      life.checkReady();
      checkRef(ref);
      const { stdoutOffset, stderrOffset, follow } = attachOptions;
      for (const offset of [stdoutOffset, stderrOffset]) if (offset !== undefined) checkWhole("an offset", offset);
      return connection.attach({ ref, stdoutFrom: stdoutOffset, stderrFrom: stderrOffset }, { follow, observer: observer(ref) });
    },
    async forget(ref) {
      life.checkReady();
      checkRef(ref);
      await connection.forget(ref);
    },
    async processes() {
      life.checkReady();
      return connection.processes();
    },
  };
}

function portCalls(
  { info, config, connection, sharedNetwork }: GuestSandboxOptions,
  ready: () => void,
): Pick<OwnedSandbox, "connect" | "serve" | "serveTransparent" | "listeners"> {
  return {
    async connect(port) {
      ready();
      checkPort(port);
      return connection.connect(port);
    },
    async serve(port, onConnection) {
      ready();
      checkPort(port);
      if (sharedNetwork !== undefined) throw new CaissonError("unsupported", `cannot serve a port: ${sharedNetwork}`);
      return connection.serve(port, onConnection);
    },
    async serveTransparent(service) {
      ready();
      for (const port of service.ports) checkPort(port);
      if (config.network.mode === "none" || !config.network.transparent) {
        throw new CaissonError("unsupported", `sandbox ${info.id} was created without a transparent network`, {
          hint: "Create a new sandbox with a transparent network.",
        });
      }
      return connection.serveTransparent(service);
    },
    async listeners() {
      ready();
      return connection.listeners();
    },
  };
}
