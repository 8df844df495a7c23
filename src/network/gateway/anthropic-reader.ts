import { countIn, type JsonObject, objectIn, objectsIn, textIn } from "./json-value.ts";
import type { AnswerReader, Reading } from "./reading.ts";

/** Reads Anthropic's messages. `message_start` reports the input, `message_delta` the final output. */
export const anthropicReader: AnswerReader = {
  event(reading, event) {
    switch (event.type) {
      case "message_start":
        readUsage(reading, objectIn(objectIn(event.message).usage));
        break;
      case "content_block_start":
        sayBlock(reading, objectIn(event.content_block));
        break;
      case "content_block_delta": {
        const delta = objectIn(event.delta);
        if (delta.type === "thinking_delta") reading.letters += textIn(delta.thinking).length;
        else reading.say(textIn(delta.text) + textIn(delta.partial_json));
        break;
      }
      case "message_delta":
        reading.usageIsFinal = readUsage(reading, objectIn(event.usage));
        break;
      case "error":
        reading.error = textIn(objectIn(event.error).message) || "The upstream reported an error.";
        break;
    }
  },
  whole(reading, answer) {
    reading.usageIsFinal = readUsage(reading, objectIn(answer.usage));
    for (const block of objectsIn(answer.content)) {
      sayBlock(reading, block);
      if (block.type === "tool_use") reading.say(JSON.stringify(block.input ?? {}));
      reading.letters += textIn(block.thinking).length;
    }
  },
};

function sayBlock(reading: Reading, block: JsonObject): void {
  if (block.type === "tool_use") reading.say(`\n[tool ${textIn(block.name)}] `);
  else reading.say(textIn(block.text));
}

/**
 * Adds up Anthropic's three input counts, which do not overlap: fresh, read from the cache, written to it. Returns
 * whether the input and output counts are now known.
 */
function readUsage(reading: Reading, usage: JsonObject): boolean {
  const before = reading.usage;
  const freshBefore =
    before.inputTokens === undefined ? 0 : before.inputTokens - (before.cachedInputTokens ?? 0) - (before.cacheWriteInputTokens ?? 0);
  const cached = countIn(usage.cache_read_input_tokens) ?? before.cachedInputTokens ?? 0;
  const written = countIn(usage.cache_creation_input_tokens) ?? before.cacheWriteInputTokens ?? 0;
  const fresh = countIn(usage.input_tokens) ?? (before.inputTokens === undefined ? null : freshBefore);
  if (fresh !== null)
    Object.assign(before, { inputTokens: fresh + cached + written, cachedInputTokens: cached, cacheWriteInputTokens: written });
  const output = countIn(usage.output_tokens);
  if (output !== null) before.outputTokens = output;
  return output !== null && before.inputTokens !== undefined;
}
