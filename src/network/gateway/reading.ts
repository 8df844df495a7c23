import { TEXT_KEPT_MAX } from "./asked.ts";
import type { GatewayUsage } from "./gateway-options.ts";
import type { JsonObject } from "./json-value.ts";

/** What was understood of an answer so far. */
export interface Reading {
  usage: Partial<GatewayUsage>;
  /** Whether the usage is the last word on it. */
  usageIsFinal: boolean;
  /** The beginning of what was said, with the tools that were asked for. */
  text: string;
  /** Letters of all that was said and thought, for a guess where the usage never came. */
  letters: number;
  /** What the upstream itself says went wrong, in the middle of an answer. */
  error: string | null;
  say(text: string): void;
}

/** Understands one wire's answers, whole or event by event. Never throws, whatever it is given. */
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
