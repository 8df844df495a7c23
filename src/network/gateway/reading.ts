import type { GatewayUsage } from "./gateway-options.ts";
import type { JsonObject } from "./json-value.ts";
import { TEXT_KEPT_MAX } from "./read-model-request.ts";

/** What the gateway has understood of an answer so far. */
export interface Reading {
  usage: Partial<GatewayUsage>;
  /** Whether the usage is final. */
  usageIsFinal: boolean;
  /** The beginning of the answer's text, with its tool calls. */
  text: string;
  /** The letters of all text and thinking, for an estimate if the usage never arrives. */
  letters: number;
  /** The error that the upstream itself reported within an answer. */
  error: string | null;
  say(text: string): void;
}

/** Reads one wire's answers, whole or event by event. Never throws, whatever the input. */
export interface AnswerReader {
  event(reading: Reading, event: JsonObject): void;
  whole(reading: Reading, answer: JsonObject): void;
}

export function createReading(): Reading {
  return {
    usage: {},
    usageIsFinal: false,
    text: "",
    letters: 0,
    error: null,
    say(text) {
      this.letters += text.length;
      if (this.text.length < TEXT_KEPT_MAX) this.text += text.slice(0, TEXT_KEPT_MAX - this.text.length);
    },
  };
}
