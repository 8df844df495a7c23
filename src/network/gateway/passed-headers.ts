import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http";
import type { GatewayWire } from "../../contract/network/network.ts";

/**
 * We drop all other headers of a program inside, such as its keys, its cookies and headers that reveal its location.
 */
const askedHeaders = /^(content-type|accept|anthropic-version|anthropic-beta|openai-beta|user-agent|idempotency-key|x-stainless-[a-z-]+)$/;
/** Excludes cookies and the names of the account. */
const answeredHeaders =
  /^(content-type|content-length|retry-after|retry-after-ms|x-should-retry|request-id|x-request-id|openai-processing-ms|openai-version|(anthropic|x)-ratelimit-[a-z-]+)$/;

export function upstreamHeaders(options: {
  wire: GatewayWire;
  asked: IncomingHttpHeaders;
  added: Readonly<Record<string, string>> | undefined;
  key: string;
  bodyBytes: number | null;
}): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = { ...pickHeaders(options.asked, askedHeaders) };
  if (options.wire === "anthropic") headers["anthropic-version"] ??= "2023-06-01";
  for (const [name, value] of Object.entries(options.added ?? {})) headers[name.toLowerCase()] = value;
  // We can only read an uncompressed answer.
  headers["accept-encoding"] = "identity";
  if (options.bodyBytes !== null) {
    headers["content-type"] = "application/json";
    headers["content-length"] = options.bodyBytes;
  }
  if (options.key !== "" && options.wire === "anthropic") headers["x-api-key"] = options.key;
  if (options.key !== "" && options.wire === "openai") headers.authorization = `Bearer ${options.key}`;
  return headers;
}

export function answerHeaders(answered: IncomingHttpHeaders, redact: (text: string) => string): Record<string, string> {
  const headers = pickHeaders(answered, answeredHeaders);
  for (const [name, value] of Object.entries(headers)) headers[name] = redact(value);
  return headers;
}

function pickHeaders(headers: IncomingHttpHeaders, names: RegExp): Record<string, string> {
  const list = Object.entries(headers).filter(([name, value]) => names.test(name) && value !== undefined);
  return Object.fromEntries(list.map(([name, value]) => [name, Array.isArray(value) ? value.join(", ") : (value as string)]));
}
