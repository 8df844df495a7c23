import { CaissonError } from "../contract/error.ts";
import type { SandboxEvent } from "../contract/event.ts";
import type { ProcessRef } from "../contract/ids.ts";
import type { SandboxInfo, SandboxSpec } from "../contract/sandbox.ts";
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
      check: (asked) => {
        ready();
        checkUser(asked.user, spec.allowRoot);
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
  const spawnRequest = createSpawnRequests({ spec: options.spec, limits, ...(defaultEnv === undefined ? {} : { defaultEnv }) });
  const observer = (ref: ProcessRef, argv?: readonly string[]) =>
    options.onEvent === undefined ? undefined : observe(id, ref, (event) => life.emit(event), argv);
  return {
    async spawn(asked) {
      life.checkReady();
      const request = spawnRequest(asked);
      return connection.spawn({ ...request, cwd: guestPath(options, request.cwd) }, observer(request.ref, request.argv));
    },
    async attach(ref, asked = {}) {
      life.checkReady();
      checkRef(ref);
      const { stdoutOffset, stderrOffset, follow } = asked;
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
  { info, spec, connection, sharedNetwork }: GuestSandboxOptions,
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
      if (sharedNetwork !== undefined) throw new CaissonError("unsupported", `no port can be served: ${sharedNetwork}`);
      return connection.serve(port, onConnection);
    },
    async serveTransparent(service) {
      ready();
      for (const port of service.ports) checkPort(port);
      if (spec.network.mode === "none" || !spec.network.transparent) {
        throw new CaissonError("unsupported", `sandbox ${info.id} was not made for programs that know nothing of proxies`, {
          hint: "Create it with a transparent network.",
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
