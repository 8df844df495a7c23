import type { z } from "zod";
import { CaissonError } from "../../contract/error/error.ts";
import { evaluateWithin } from "./engine.ts";
import { readScope } from "./read-scope.ts";

type Json = z.core.util.JSONType;

/** An expression whose value a decision needs, with its variables. */
export interface WantedValue {
  expression: string;
  scope: Readonly<Record<string, Json>>;
}

/** The outcome of an evaluation. A failure is an outcome as well: it fails the step that needs the value. */
export type KnownValue = { value: Json } | { error: CaissonError };

/** Evaluates an expression: in a thread that can be terminated, or, in tests, in this one. Never rejects. */
export type Evaluator = (wanted: WantedValue, options: { owner: string }) => Promise<KnownValue>;

/** The messages between an evaluation thread and its caller. */
export interface EvaluationRequest {
  expression: string;
  scope: string;
}
export type EvaluationAnswer = { value: string } | { code: "invalid" | "too_large"; why: string; hint: string | undefined };

/** Throws errors that `failureOf` translates. */
export function requestFor({ expression, scope }: WantedValue): EvaluationRequest {
  return { expression, scope: readScope(expression, scope) };
}

export function evaluateRequest({ expression, scope }: EvaluationRequest): EvaluationAnswer {
  try {
    return { value: JSON.stringify(evaluateWithin(expression, JSON.parse(scope) as Json)) };
  } catch (error) {
    const isOurs = error instanceof CaissonError;
    const code = isOurs && error.code === "too_large" ? "too_large" : "invalid";
    return { code, why: plainWords(error), hint: isOurs ? error.hint : undefined };
  }
}

export function knownFrom({ expression }: WantedValue, answer: EvaluationAnswer): KnownValue {
  if ("value" in answer) return { value: JSON.parse(answer.value) as Json };
  return { error: failure(expression, answer) };
}

export function failure(
  expression: string,
  { code, why, hint }: { code: "invalid" | "too_large" | "timeout" | "internal"; why: string; hint?: string | undefined },
) {
  return new CaissonError(code, `the expression ${shorten(expression)} cannot be evaluated: ${why}`, hint === undefined ? {} : { hint });
}

/** Evaluates in this thread, blocking it for as long as the budget lasts. */
export const evaluateHere: Evaluator = async (wanted) => {
  try {
    return knownFrom(wanted, evaluateRequest(requestFor(wanted)));
  } catch (error) {
    return { error: failureOf(wanted.expression, error) };
  }
};

/** Translates an error from before the evaluation began. */
export function failureOf(expression: string, error: unknown): CaissonError {
  const isOurs = error instanceof CaissonError;
  return failure(expression, {
    code: isOurs && error.code === "too_large" ? "too_large" : "invalid",
    why: plainWords(error),
    hint: isOurs ? error.hint : undefined,
  });
}

export const shorten = (text: string): string => JSON.stringify(text.length > 200 ? `${text.slice(0, 200)}…` : text);

/** Returns the first line of an error: the library draws a diagram below it. */
export function plainWords(error: unknown): string {
  const [line = ""] = (error instanceof Error ? error.message : String(error)).split("\n", 1);
  return line.slice(0, 300);
}
