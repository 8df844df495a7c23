import { CaissonError, type ErrorCode } from "../../contract/error/error.ts";
import type { GatewayWire } from "../../contract/network/network.ts";

interface WireError {
  status: number;
  headers: Readonly<Record<string, string>>;
  body: string;
}

interface Shape {
  status: number;
  anthropic: string;
  openai: { type: string; code: string | null };
}

const invalid = { type: "invalid_request_error", code: null };
const ours: Shape = { status: 500, anthropic: "api_error", openai: { type: "server_error", code: null } };

/**
 * A denied call, including one over a limit, gets a 400: clients retry a 429 for a long time, and Codex even a 403,
 * although nothing changes until a person acts.
 */
const shapes: Partial<Record<ErrorCode, Shape>> = {
  invalid: { status: 400, anthropic: "invalid_request_error", openai: invalid },
  denied: { status: 400, anthropic: "invalid_request_error", openai: { type: "invalid_request_error", code: "permission_denied" } },
  not_found: { status: 404, anthropic: "not_found_error", openai: { type: "invalid_request_error", code: "unknown_url" } },
  too_large: { status: 413, anthropic: "request_too_large", openai: invalid },
  unsupported: { status: 415, anthropic: "invalid_request_error", openai: invalid },
  busy: { status: 429, anthropic: "rate_limit_error", openai: { type: "rate_limit_exceeded", code: "rate_limit_exceeded" } },
  cancelled: { ...ours, status: 499 },
  protocol: { ...ours, status: 502 },
  unavailable: { ...ours, status: 502 },
  timeout: { ...ours, status: 504 },
};

/**
 * Returns a failure in the format of the wire's clients. An error that is not a CaissonError reveals nothing about the
 * host.
 */
export function wireError(wire: GatewayWire, error: unknown): WireError {
  const known = error instanceof CaissonError;
  const shape = (known && shapes[error.code]) || ours;
  const message = known ? error.sentences : "The gateway failed.";
  const headers: Record<string, string> = { "content-type": "application/json" };
  // The SDKs of both wires obey this header.
  if (shape.status < 429) headers["x-should-retry"] = "false";
  if (shape.status === 429) headers["retry-after"] = "5";
  return {
    status: methodOf(error) ?? shape.status,
    headers: { ...headers, ...allowOf(error) },
    body: JSON.stringify(bodyOf(wire, shape, message, error)),
  };
}

/** Returns the same failure as the last event of a stream that has already started. */
export function wireErrorEvent(wire: GatewayWire, error: unknown): string {
  const { body } = wireError(wire, error);
  return wire === "anthropic" ? `event: error\ndata: ${body}\n\n` : `data: ${body}\n\n`;
}

function bodyOf(wire: GatewayWire, shape: Shape, message: string, error: unknown): object {
  if (wire === "anthropic") return { type: "error", error: { type: shape.anthropic, message } };
  const code = error instanceof CaissonError ? error.details?.openaiCode : undefined;
  const openai = typeof code === "string" ? { type: code, code } : shape.openai;
  const param = error instanceof CaissonError && typeof error.details?.param === "string" ? error.details.param : null;
  return { error: { message, type: openai.type, param, code: openai.code } };
}

/**
 * Returns the status for a known path with an unknown method: 405, or 426 for WebSocket, after which Codex continues
 * without it.
 */
function methodOf(error: unknown): number | undefined {
  if (!(error instanceof CaissonError) || typeof error.details?.allow !== "string") return undefined;
  return error.details.upgrade === true ? 426 : 405;
}

function allowOf(error: unknown): Record<string, string> {
  const allow = error instanceof CaissonError ? error.details?.allow : undefined;
  return typeof allow === "string" ? { allow } : {};
}
