import { countIn, isObject, type JsonObject, objectIn, objectsIn, textIn } from "./json-value.ts";
import type { AnswerReader, Reading } from "./reading.ts";

/**
 * Reads chat completions. The usage is in a last chunk without choices, or with some servers in every chunk, each
 * replacing the previous one.
 */
export const chatReader: AnswerReader = {
  event(reading, event) {
    if (isObject(event.error)) reading.error = textIn(event.error.message) || "The upstream reported an error.";
    for (const choice of objectsIn(event.choices)) sayMessage(reading, objectIn(choice.delta));
    if (isObject(event.usage)) readChatUsage(reading, event.usage);
  },
  whole(reading, answer) {
    for (const choice of objectsIn(answer.choices)) sayMessage(reading, objectIn(choice.message));
    readChatUsage(reading, objectIn(answer.usage));
  },
};

/** Reads the responses API. The last event contains the whole response with its usage. */
export const responsesReader: AnswerReader = {
  event(reading, event) {
    switch (event.type) {
      case "response.output_text.delta":
      case "response.refusal.delta":
        reading.say(textIn(event.delta));
        break;
      case "response.output_item.done":
        sayCall(reading, objectIn(event.item));
        break;
      case "response.completed":
      case "response.incomplete":
      case "response.failed": {
        const response = objectIn(event.response);
        readResponsesUsage(reading, objectIn(response.usage));
        if (isObject(response.error)) reading.error = textIn(response.error.message) || "The upstream reported an error.";
        break;
      }
      case "error":
        reading.error = textIn(event.message) || textIn(objectIn(event.error).message) || "The upstream reported an error.";
        break;
    }
  },
  whole(reading, answer) {
    for (const item of objectsIn(answer.output)) {
      for (const part of objectsIn(item.content)) reading.say(textIn(part.text) + textIn(part.refusal));
      sayCall(reading, item);
    }
    readResponsesUsage(reading, objectIn(answer.usage));
  },
};

export const embeddingsReader: AnswerReader = {
  event() {},
  whole(reading, answer) {
    const input = countIn(objectIn(answer.usage).prompt_tokens);
    if (input === null) return;
    Object.assign(reading.usage, { inputTokens: input, outputTokens: 0 });
    reading.usageIsFinal = true;
  },
};

function sayMessage(reading: Reading, message: JsonObject): void {
  reading.say(textIn(message.content) + textIn(message.refusal));
  reading.letters += textIn(message.reasoning_content).length;
  for (const call of objectsIn(message.tool_calls)) {
    const fn = objectIn(call.function);
    if (typeof fn.name === "string" && fn.name !== "") reading.say(`\n[tool ${fn.name}] `);
    reading.say(textIn(fn.arguments));
  }
}

function sayCall(reading: Reading, item: JsonObject): void {
  if (item.type === "function_call" || item.type === "custom_tool_call") {
    reading.say(`\n[tool ${textIn(item.name)}] ${textIn(item.arguments) || textIn(item.input)}`);
  } else if (item.type === "local_shell_call") reading.say(`\n[tool local_shell] ${JSON.stringify(item.action ?? {})}`);
}

function readChatUsage(reading: Reading, usage: JsonObject): void {
  const input = countIn(usage.prompt_tokens);
  const output = countIn(usage.completion_tokens);
  if (input === null || output === null) return;
  setUsage(reading, {
    input,
    output,
    cached: objectIn(usage.prompt_tokens_details).cached_tokens,
    reasoning: objectIn(usage.completion_tokens_details).reasoning_tokens,
  });
}

function readResponsesUsage(reading: Reading, usage: JsonObject): void {
  const input = countIn(usage.input_tokens);
  const output = countIn(usage.output_tokens);
  if (input === null || output === null) return;
  setUsage(reading, {
    input,
    output,
    cached: objectIn(usage.input_tokens_details).cached_tokens,
    reasoning: objectIn(usage.output_tokens_details).reasoning_tokens,
  });
}

function setUsage(reading: Reading, found: { input: number; output: number; cached: unknown; reasoning: unknown }): void {
  reading.usage = {
    inputTokens: found.input,
    outputTokens: found.output,
    cachedInputTokens: countIn(found.cached) ?? 0,
    reasoningTokens: countIn(found.reasoning) ?? 0,
  };
  reading.usageIsFinal = true;
}
