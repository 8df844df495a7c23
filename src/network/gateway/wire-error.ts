import { CaissonError, type ErrorCode } from "../../contract/error.ts";
import type { GatewayWire } from "../../contract/network.ts";

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
 * What is denied, a spent bound too, is a 400: clients retry a 429 for a long time, Codex a 403 too, and nothing
 * changes until a person changes it.
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

/** A failure in the shape that the wire's clients read. What is not a CaissonError says nothing about the host. */
export function wireError(wire: GatewayWire, error: unknown): WireError {
  const known = error instanceof CaissonError;
  const shape = (known && shapes[error.code]) || ours;
  const message = known ? error.sentences : "The gateway failed.";
  const headers: Record<string, string> = { "content-type": "application/json" };
  // The SDKs of both wires heed it.
  if (shape.status < 429) headers["x-should-retry"] = "false";
  if (shape.status === 429) headers["retry-after"] = "5";
  return {
    status: methodOf(error) ?? shape.status,
    headers: { ...headers, ...allowOf(error) },
    body: JSON.stringify(bodyOf(wire, shape, message, error)),
  };
}

/** The same failure as the last event of a stream that had already begun. */
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

/** A path that is there, with a method that is not; or one that speaks no WebSocket, at which Codex goes on without. */
function methodOf(error: unknown): number | undefined {
  if (!(error instanceof CaissonError) || typeof error.details?.allow !== "string") return undefined;
  return error.details.upgrade === true ? 426 : 405;
}

function allowOf(error: unknown): Record<string, string> {
  const allow = error instanceof CaissonError ? error.details?.allow : undefined;
  return typeof allow === "string" ? { allow } : {};
}
