import { APICallError, InvalidResponseDataError, JSONParseError, LoadAPIKeyError, TypeValidationError } from "@ai-sdk/provider";
import { CaissonError, type ErrorCode } from "../../contract/error/error.ts";

const RETRY_AFTER_MS_MAX = 600_000;

/**
 * Translates a provider's error into one of our codes. Response bodies may echo the request, so only the provider's own
 * message is included.
 */
export function translateProviderError(
  error: unknown,
  options: { model: string; nearlyFull: boolean; secrets: readonly string[] },
): CaissonError {
  const { model } = options;
  if (error instanceof CaissonError) return error;
  if (LoadAPIKeyError.isInstance(error)) {
    return new CaissonError("unauthenticated", `${model}: no API key`, { cause: error });
  }
  if (APICallError.isInstance(error)) {
    const status = error.statusCode;
    // The request succeeded, so the connection failed during the answer.
    if (status !== undefined && status >= 200 && status < 300 && !isGarbled(error.cause))
      return new CaissonError("unavailable", `${model} stopped in the middle of its answer`);
    const refused = codeOf(status, error.isRetryable);
    const code = refused === "invalid" && (options.nearlyFull || saysTooLong(error.data)) ? "too_large" : refused;
    return new CaissonError(code, `${model} answered ${status ?? "nothing"}: ${without(options.secrets, error.message)}`, {
      ...hintFor(code),
      details: { status: status ?? null, ...retryAfter(error.responseHeaders) },
    });
  }
  const text = error instanceof Error ? error.message : String(error);
  const message = without(options.secrets, text);
  if (isGarbled(error)) return new CaissonError("protocol", `${model} sent an invalid answer: ${message}`);
  // The connection failed, or the stream lacks the end that the protocol requires.
  return new CaissonError("unavailable", `${model} did not finish its answer: ${message}`);
}

function isGarbled(error: unknown): boolean {
  if (InvalidResponseDataError.isInstance(error)) return error.data !== undefined;
  return JSONParseError.isInstance(error) || TypeValidationError.isInstance(error);
}

/** Removes secrets, because some providers repeat the key they received. */
function without(secrets: readonly string[], text: string): string {
  return secrets.reduce((left, secret) => left.replaceAll(secret, "…"), text).slice(0, 500);
}

/** Detects the error codes that OpenAI and compatible servers use for a conversation that is too long. */
function saysTooLong(data: unknown): boolean {
  const code = (data as { error?: { code?: unknown } } | undefined)?.error?.code;
  return code === "context_length_exceeded" || code === "string_above_max_length";
}

function codeOf(status: number | undefined, retryable: boolean): ErrorCode {
  if (status === 401 || status === 403) return "unauthenticated";
  if (status === 404) return "not_found";
  if (status === 413) return "too_large";
  if (status === 429) return "busy";
  if (status === undefined || status >= 500 || retryable) return "unavailable";
  return "invalid";
}

function hintFor(code: ErrorCode): { hint?: string } {
  switch (code) {
    case "unauthenticated":
      return { hint: "Check that the provider's key is set and valid." };
    case "not_found":
      return { hint: "Check the model's name and the base URL." };
    case "too_large":
      return { hint: "The conversation exceeds the model's context window; lower the compaction threshold." };
    default:
      return {};
  }
}

function retryAfter(headers: Record<string, string> | undefined): { retryAfterMs?: number } {
  const exact = Number(headers?.["retry-after-ms"]);
  const retryHeader = headers?.["retry-after"] ?? "";
  const waitMs =
    exact > 0
      ? exact
      : retryHeader === ""
        ? Number.NaN
        : Number.isFinite(Number(retryHeader))
          ? Number(retryHeader) * 1000
          : Date.parse(retryHeader) - Date.now();
  return Number.isFinite(waitMs) && waitMs > 0 ? { retryAfterMs: Math.min(waitMs, RETRY_AFTER_MS_MAX) } : {};
}
