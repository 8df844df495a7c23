import { CaissonError, type ErrorCode } from "../../contract/error/error.ts";

/** Node's error codes for a socket without a listener, at connect or during a call. */
const deadSocketCodes = new Set(["ENOENT", "ECONNREFUSED", "ECONNRESET", "EPIPE", "ENOTSOCK", "ETIMEDOUT", "ESOCKETTIMEDOUT"]);

/** Maps the engine's HTTP status to our error codes. */
const codeByStatus: Readonly<Record<number, ErrorCode>> = {
  400: "invalid",
  403: "denied",
  404: "not_found",
  409: "conflict",
  507: "no_space",
};

/** Translates dockerode's errors. `what` begins the message: the attempted operation and its object. */
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
    : "Run `sudo usermod -aG docker $USER`, then log in again. Members of that group effectively have root on this machine.";
  return new CaissonError("unavailable", `permission denied for the engine's socket ${socketPath}`, { hint, cause });
}

/** Returns how to start the engine that the socket belongs to. */
export function startHint(socketPath: string): string {
  if (socketPath.endsWith("podman.sock")) {
    return socketPath.startsWith("/run/podman")
      ? "Start it with `sudo systemctl start podman.socket`."
      : "Start it with `systemctl --user enable --now podman.socket`.";
  }
  if (socketPath.startsWith("/run/user/")) return "Start it with `systemctl --user start docker`.";
  return "Start it with `sudo systemctl start docker`, or choose another with DOCKER_HOST=unix:///path/to/engine.sock.";
}

/** Returns the HTTP status of the engine's error response, or null for any other error. */
export function statusOf(error: unknown): number | null {
  return typeof error === "object" && error !== null && "statusCode" in error && typeof error.statusCode === "number"
    ? error.statusCode
    : null;
}

function systemCode(error: unknown): string | null {
  return typeof error === "object" && error !== null && "code" in error && typeof error.code === "string" ? error.code : null;
}

/** Returns the engine's own message on one line, without dockerode's preamble. */
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
