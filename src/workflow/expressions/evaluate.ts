import type { z } from "zod";
import { CaissonError } from "../../contract/error.ts";
import { evaluateWithin } from "./engine.ts";
import { readScope } from "./read-scope.ts";

type Json = z.core.util.JSONType;

/** An expression whose value a decision needs, with what it can see. */
export interface WantedValue {
  expression: string;
  scope: Readonly<Record<string, Json>>;
}

/** What came of an evaluation. A failure is as good as a value: the step that asked for it fails. */
export type KnownValue = { value: Json } | { error: CaissonError };

/** Where expressions are evaluated: in a thread that can be ended, or here, for tests. Never rejects. */
export type Evaluator = (wanted: WantedValue, options: { owner: string }) => Promise<KnownValue>;

/** As an evaluation goes to a thread and comes back. */
export interface EvaluationRequest {
  expression: string;
  scope: string;
}
export type EvaluationAnswer = { value: string } | { code: "invalid" | "too_large"; why: string; hint: string | undefined };

/** Throws what `failure` translates. */
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
  return new CaissonError(code, `the expression ${shortened(expression)} cannot be evaluated: ${why}`, hint === undefined ? {} : { hint });
}

/** In this thread, which waits for it as long as its budget lasts. */
export const evaluateHere: Evaluator = async (wanted) => {
  try {
    return knownFrom(wanted, evaluateRequest(requestFor(wanted)));
  } catch (error) {
    return { error: failureOf(wanted.expression, error) };
  }
};

/** Of what went wrong before an evaluation began. */
export function failureOf(expression: string, error: unknown): CaissonError {
  const isOurs = error instanceof CaissonError;
  return failure(expression, {
    code: isOurs && error.code === "too_large" ? "too_large" : "invalid",
    why: plainWords(error),
    hint: isOurs ? error.hint : undefined,
  });
}

export const shortened = (text: string): string => JSON.stringify(text.length > 200 ? `${text.slice(0, 200)}…` : text);

/** The first line: the library draws a picture below it. */
export function plainWords(error: unknown): string {
  const [line = ""] = (error instanceof Error ? error.message : String(error)).split("\n", 1);
  return line.slice(0, 300);
}
