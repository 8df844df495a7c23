import { expect, test } from "vitest";
import { matchRoute } from "./routes.ts";

const match = (method: string, url: string, headers = {}) => {
  const found = matchRoute({ method, url, headers });
  return found.found === "route" ? `${found.route.wire} ${found.route.path}${found.query}` : found.found;
};

test.each([
  ["POST", "/anthropic/v1/messages", "anthropic /messages"],
  ["POST", "/anthropic/messages", "anthropic /messages"],
  ["POST", "/anthropic/v1/v1/messages", "anthropic /messages"],
  ["POST", "/anthropic//v1/messages/?beta=true", "anthropic /messages?beta=true"],
  ["POST", "/v1/messages?beta=true", "anthropic /messages?beta=true"],
  ["POST", "/v1/messages/count_tokens", "anthropic /messages/count_tokens"],
  ["POST", "http://127.0.0.1:19081/v1/messages", "anthropic /messages"],
  ["POST", "/openai/v1/chat/completions", "openai /chat/completions"],
  ["POST", "/v1/responses", "openai /responses"],
  ["POST", "/responses", "openai /responses"],
  ["POST", "/v1/embeddings", "openai /embeddings"],
  ["GET", "/openai/v1/models", "openai /models"],
  ["GET", "/anthropic/v1/models/claude-x", "anthropic /models/claude-x"],
  ["GET", "/v1/models", "openai /models"],
  ["GET", "/", "about"],
  ["GET", "/anthropic", "about"],
  ["GET", "/openai/v1/", "about"],
  ["POST", "/", "otherMethod"],
  ["GET", "/v1/messages", "otherMethod"],
  ["DELETE", "/openai/v1/models/x", "otherMethod"],
  // Nothing that would cost money without being metered, and no path traversal.
  ["POST", "/anthropic/v1/messages/batches", "nothing"],
  ["POST", "/openai/v1/messages", "nothing"],
  ["POST", "/anthropic/v1/chat/completions", "nothing"],
  ["GET", "/openai/v1/responses/resp_1", "nothing"],
  ["GET", "/openai/v1/models/..", "nothing"],
  ["GET", "/openai/v1/models/../files", "nothing"],
  ["GET", "/openai/v1/models/%2e%2e", "nothing"],
  ["POST", "/openai/v1/files", "nothing"],
  ["POST", "/v1/../anthropic/v1/messages", "nothing"],
  ["POST", "/v1/v1/v1/messages", "nothing"],
  ["GET", "/models", "nothing"],
  ["POST", "/v1/messages%2f", "nothing"],
  ["POST", "*", "nothing"],
])("%s %s is %s", (method, url, expected) => expect(match(method, url)).toBe(expected));

test("lists models in Anthropic's format for clients that send its version", () => {
  expect(match("GET", "/v1/models", { "anthropic-version": "2023-06-01" })).toBe("anthropic /models");
});
