import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import type Docker from "dockerode";
import { CaissonError } from "../../contract/error/error.ts";
import { ifErrno, isErrno, UNREACHABLE } from "../../lib/failures.ts";
import { engineDead, engineError } from "./engine-error.ts";
import { type EngineFacts, EngineInfo, EngineVersion, engineFacts } from "./engine-facts.ts";

/** A Docker or Podman engine on a unix socket of this machine. */
export interface Engine {
  readonly socketPath: string;
  readonly docker: Docker;
  /** Queried once and cached. Throws `unavailable`. */
  facts(): Promise<EngineFacts>;
  /** Runs an engine request and translates its errors. `what` begins the message: "starting sandbox sb_…". */
  call<T>(what: string, work: (docker: Docker) => Promise<T>): Promise<T>;
}

export interface EngineLocation {
  /** The engine's socket. If set, the other fields are ignored. */
  socketPath?: string;
  /** The value of DOCKER_HOST. */
  host?: string;
  /** The value of XDG_RUNTIME_DIR, under which rootless engines listen. */
  runtimeDir?: string;
}

/** The longest that the engine may be silent in one call. Committing a large sandbox is silent until it is done. */
const CALL_TIMEOUT_MS = 10 * 60_000;

export async function connectEngine(location: EngineLocation): Promise<Engine> {
  return engineAt(await findSocket(location));
}

export async function engineAt(socketPath: string): Promise<Engine> {
  // Loaded only for an existing engine: dockerode pulls in ssh and gRPC, which should not delay other runtimes.
  const { default: Dockerode } = await import("dockerode");
  const docker = new Dockerode({ socketPath, timeout: CALL_TIMEOUT_MS });
  let known: Promise<EngineFacts> | undefined;
  const engine: Engine = {
    socketPath,
    docker,
    facts() {
      known ??= askFacts(engine).catch((error) => {
        known = undefined;
        throw error;
      });
      return known;
    },
    async call(what, work) {
      try {
        return await work(docker);
      } catch (error) {
        throw engineError(error, { what, socketPath });
      }
    },
  };
  return engine;
}

/**
 * Returns the sockets that an engine may listen on, most likely first. Throws `unsupported` for an engine on another
 * machine.
 */
export function socketCandidates(location: EngineLocation): string[] {
  const { socketPath, host, runtimeDir } = location;
  if (socketPath !== undefined) return [socketPath];
  if (host !== undefined && host !== "") {
    if (host.startsWith("unix://")) return [host.slice("unix://".length)];
    throw new CaissonError("unsupported", `the engine at ${host} is not on this machine`, {
      hint: "Set DOCKER_HOST to a unix:// socket: we reach sandboxes through a folder shared with the engine.",
    });
  }
  const own =
    runtimeDir === undefined || runtimeDir === "" ? [] : [join(runtimeDir, "docker.sock"), join(runtimeDir, "podman/podman.sock")];
  return ["/var/run/docker.sock", ...own, "/run/podman/podman.sock"];
}

async function findSocket(location: EngineLocation): Promise<string> {
  const candidates = socketCandidates(location);
  for (const candidate of candidates) {
    if (await isSocket(candidate)) return candidate;
  }
  const [first] = candidates;
  if (candidates.length === 1 && first !== undefined) throw engineDead({ socketPath: first });
  throw new CaissonError("unavailable", `no engine listens on ${candidates.join(", ")}`, {
    hint: "Run `sudo apt install docker.io && sudo systemctl start docker` or `sudo apt install podman && systemctl --user enable --now podman.socket`.",
  });
}

async function isSocket(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isSocket();
  } catch (error) {
    // If we cannot enter the folder, the connection attempt reports a clear error.
    return isErrno(error, "EACCES");
  }
}

async function askFacts(engine: Engine): Promise<EngineFacts> {
  const [info, version] = await engine.call("reading engine capabilities", (docker) => Promise.all([docker.info(), docker.version()]));
  const mountinfo = await readFile("/proc/self/mountinfo", "utf8");
  const { uid } = await stat(engine.socketPath);
  // systemd runs a user's services here, and lists the controllers delegated to them.
  const controllers = `/sys/fs/cgroup/user.slice/user-${uid}.slice/user@${uid}.service/cgroup.controllers`;
  const delegated = await ifErrno(readFile(controllers, "utf8"), UNREACHABLE, "");
  return engineFacts({ info: EngineInfo.parse(info), version: EngineVersion.parse(version), mountinfo, delegated });
}
