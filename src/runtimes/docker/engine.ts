import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import type Docker from "dockerode";
import { CaissonError } from "../../contract/error.ts";
import { isErrno } from "../../lib/is-errno.ts";
import { engineDead, engineError } from "./engine-error.ts";
import { type EngineFacts, EngineInfo, EngineVersion, engineFacts } from "./engine-facts.ts";

/** A Docker or Podman engine on a unix socket of this machine. */
export interface Engine {
  readonly socketPath: string;
  readonly docker: Docker;
  /** Asked once and remembered. Throws `unavailable`. */
  facts(): Promise<EngineFacts>;
  /**
   * Does something with the engine, and translates what it throws. `what` begins a sentence: "starting sandbox sb_…".
   */
  call<T>(what: string, work: (docker: Docker) => Promise<T>): Promise<T>;
}

export interface EngineLocation {
  /** The engine's socket; the rest is then not looked at. */
  socketPath?: string;
  /** The value of DOCKER_HOST. */
  host?: string;
  /** The value of XDG_RUNTIME_DIR, below which rootless engines listen. */
  runtimeDir?: string;
}

/** The longest silence of the engine in one call; committing a large sandbox is silent until it is done. */
const CALL_TIMEOUT_MS = 10 * 60_000;

export async function connectEngine(location: EngineLocation): Promise<Engine> {
  return engineAt(await findSocket(location));
}

export async function engineAt(socketPath: string): Promise<Engine> {
  // Loaded when an engine is there: dockerode brings ssh and gRPC along, which nobody else should wait for.
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

/** Where an engine may listen, most likely first. Throws `unsupported` for one on another machine. */
export function socketCandidates(location: EngineLocation): string[] {
  const { socketPath, host, runtimeDir } = location;
  if (socketPath !== undefined) return [socketPath];
  if (host !== undefined && host !== "") {
    if (host.startsWith("unix://")) return [host.slice("unix://".length)];
    throw new CaissonError("unsupported", `the engine at ${host} is not on this machine`, {
      hint: "Sandboxes are talked to through a folder shared with the engine; set DOCKER_HOST to a unix:// socket.",
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
  throw new CaissonError("unavailable", `there is no engine's socket at ${candidates.join(", ")}`, {
    hint: "`sudo apt install docker.io && sudo systemctl start docker` or `sudo apt install podman && systemctl --user enable --now podman.socket`.",
  });
}

async function isSocket(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isSocket();
  } catch (error) {
    // A folder that may not be entered is worth telling about, by trying to connect.
    return isErrno(error, "EACCES");
  }
}

async function askFacts(engine: Engine): Promise<EngineFacts> {
  const [info, version] = await engine.call("asking the engine what it can do", (docker) => Promise.all([docker.info(), docker.version()]));
  const mountinfo = await readFile("/proc/self/mountinfo", "utf8");
  const { uid } = await stat(engine.socketPath);
  // Where systemd puts a user's own services; what it delegates to them is listed there.
  const delegated = await readFile(`/sys/fs/cgroup/user.slice/user-${uid}.slice/user@${uid}.service/cgroup.controllers`, "utf8").catch(
    () => "",
  );
  return engineFacts({ info: EngineInfo.parse(info), version: EngineVersion.parse(version), mountinfo, delegated });
}
