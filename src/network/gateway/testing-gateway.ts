import { sse, type UpstreamReply } from "../../../test/support/model-upstream.ts";

/** Requests of each wire for a model that has a price. */
export const claude = (more: object = {}) => ({
  model: "priced-x",
  max_tokens: 100,
  messages: [{ role: "user", content: "Say it." }],
  ...more,
});
export const gpt = (more: object = {}) => ({ model: "priced-x", messages: [{ role: "user", content: "Say it." }], ...more });
export const MESSAGES = "/anthropic/v1/messages";
export const CHAT = "/openai/v1/chat/completions";

/** Sends the first events, then calls `then`. */
export const begin =
  (events: readonly (object | "[DONE]")[], then: UpstreamReply): UpstreamReply =>
  (response, call) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(events.map(sse).join(""));
    void then(response, call);
  };
/** Accepts the call and never answers it. */
export const nothing: UpstreamReply = () => undefined;
