import { CaissonError, type ErrorCode } from "../../contract/error.ts";

/** Node's codes for a socket that nobody answers on, at connect or in the middle of a call. */
const deadSocketCodes = new Set(["ENOENT", "ECONNREFUSED", "ECONNRESET", "EPIPE", "ENOTSOCK", "ETIMEDOUT", "ESOCKETTIMEDOUT"]);

/** The engine's HTTP status as one of our codes. */
const codeByStatus: Readonly<Record<number, ErrorCode>> = {
  400: "invalid",
  403: "denied",
  404: "not_found",
  409: "conflict",
  507: "no_space",
};

/** Translates what dockerode throws. `what` says what was attempted and on what, as the beginning of a sentence. */
export function engineError(error: unknown, options: { what: string; socketPath: string }): CaissonError {
  if (error instanceof CaissonError) return error;
  const { what, socketPath } = options;
  const code = systemCode(error);
  if (code === "EACCES" || code === "EPERM") return socketDenied({ socketPath, cause: error });
  if (code !== null && deadSocketCodes.has(code)) return engineDead({ socketPath, cause: error });
  const status = statusOf(error);
  if (status === null) return new CaissonError("internal", `${what}: ${messageOf(error)}`, { cause: error });
  return new CaissonError(codeByStatus[status] ?? "internal", `${what}: ${messageOf(error)}`, { details: { status }, cause: error });
}

export function engineDead(options: { socketPath: string; cause?: unknown }): CaissonError {
  const { socketPath, cause } = options;
  return new CaissonError("unavailable", `no engine answers on ${socketPath}`, { hint: startHint(socketPath), cause });
}

export function socketDenied(options: { socketPath: string; cause?: unknown }): CaissonError {
  const { socketPath, cause } = options;
  const hint = socketPath.includes("podman")
    ? "Use your own Podman: `systemctl --user enable --now podman.socket`."
    : "`sudo usermod -aG docker $USER`, then log in again. Whoever is in that group is as good as root on this machine.";
  return new CaissonError("unavailable", `you may not use the engine's socket ${socketPath}`, { hint, cause });
}

/** How to bring an engine up, by whose socket it is. */
export function startHint(socketPath: string): string {
  if (socketPath.endsWith("podman.sock")) {
    return socketPath.startsWith("/run/podman")
      ? "Start it with `sudo systemctl start podman.socket`."
      : "Start it with `systemctl --user enable --now podman.socket`.";
  }
  if (socketPath.startsWith("/run/user/")) return "Start it with `systemctl --user start docker`.";
  return "Start it with `sudo systemctl start docker`, or name another with DOCKER_HOST=unix:///path/to/engine.sock.";
}

/** The HTTP status with which the engine refused, null when it was no answer of the engine's. */
export function statusOf(error: unknown): number | null {
  return typeof error === "object" && error !== null && "statusCode" in error && typeof error.statusCode === "number"
    ? error.statusCode
    : null;
}

function systemCode(error: unknown): string | null {
  return typeof error === "object" && error !== null && "code" in error && typeof error.code === "string" ? error.code : null;
}

/** What the engine itself said, without dockerode's preamble, on one line. */
function messageOf(error: unknown): string {
  const text =
    typeof error === "object" && error !== null && "json" in error && hasMessage(error.json)
      ? error.json.message
      : error instanceof Error
        ? error.message
        : String(error);
  return text.replaceAll(/\s+/g, " ").trim().slice(0, MESSAGE_MAX);
}
const MESSAGE_MAX = 500;

function hasMessage(json: unknown): json is { message: string } {
  return typeof json === "object" && json !== null && "message" in json && typeof json.message === "string";
}
