import { Environment } from "@marcbachmann/cel-js";
import type { z } from "zod";
import { CaissonError } from "../../contract/error/error.ts";
import { Budget } from "./budget.ts";
import { compilePattern } from "./linear-pattern.ts";

type Json = z.core.util.JSONType;
type Parsed = ReturnType<Environment["parse"]>;

/** The size of the cache of parsed expressions, in characters of their source: memory grows with the text. */
const REMEMBERED_CHARACTERS_MAX = 256 * 1024;
const EXPRESSION_CHARACTERS_MAX = 10_000;
const RESULT_DEPTH_MAX = 32;
const RESULT_BYTES_MAX = 1024 * 1024;
const DURATION_CHARACTERS_MAX = 100;
/** Our name for `matches`: the library's own uses a regular expression that backtracks. */
const MATCHES = "matchesInLinearTime";

/** A node of the library's syntax tree. */
export interface ExpressionNode {
  op: string;
  args: unknown;
  meta: Record<string, unknown>;
}

interface Evaluator {
  run(node: ExpressionNode, context: unknown): unknown;
}

/** The budget of the current evaluation. Evaluations are synchronous, so there is only one at a time. */
let budget = new Budget();

const environment = new Environment({
  unlistedVariablesAreDyn: true,
  limits: { maxAstNodes: 1000, maxDepth: 50, maxListElements: 1000, maxMapEntries: 1000, maxCallArguments: 32 },
}).registerFunction(
  `string.${MATCHES}(string): bool`,
  (text: string, pattern: string) => compilePattern(pattern).matches(text, (steps) => budget.patternSteps(steps)),
  { async: false } as object,
);
countSteps();

const parsed = new Map<string, Parsed>();
let rememberedCharacters = 0;

/** Throws the library's error for a malformed expression, and an Error for one that is too long. */
export function parseExpression(expression: string): Parsed {
  const known = parsed.get(expression);
  if (known !== undefined) return known;
  if (expression.length > EXPRESSION_CHARACTERS_MAX) throw new Error(`it has more than ${EXPRESSION_CHARACTERS_MAX} characters`);
  const result = environment.parse(expression);
  for (const node of nodesOf(result.ast)) prepare(node);
  parsed.set(expression, result);
  rememberedCharacters += expression.length;
  for (const old of parsed.keys()) {
    if (rememberedCharacters <= REMEMBERED_CHARACTERS_MAX) break;
    parsed.delete(old);
    rememberedCharacters -= old.length;
  }
  return result;
}

const durations = new WeakSet<object>();
const iterated = new WeakSet<object>();

function prepare({ op, args }: ExpressionNode): void {
  if (op === "rcall" && (args as unknown[])[0] === "matches") (args as unknown[])[0] = MATCHES;
  if (op === "call" && (args as unknown[])[0] === "duration") for (const each of (args as [string, object[]])[1]) durations.add(each);
  if (op === "comprehension") iterated.add((args as { iterable: object }).iterable);
}

/** Returns all nodes of an expression, including those that macros expand to. */
export function nodesOf(root: unknown): ExpressionNode[] {
  const nodes = new Set<ExpressionNode>();
  const seen = new Set<unknown>();
  const open: unknown[] = [root];
  while (open.length > 0) {
    const next = open.pop();
    if (next === null || typeof next !== "object" || seen.has(next)) continue;
    seen.add(next);
    const { op, meta } = next as Partial<ExpressionNode>;
    if (typeof op === "string" && meta !== undefined) {
      nodes.add(next as ExpressionNode);
      open.push((next as ExpressionNode).args, meta.alternate, meta.macro);
    } else for (const each of Object.values(next)) open.push(each);
  }
  return [...nodes];
}

/**
 * Evaluates an expression to JSON, within a budget of steps and bytes. Must run in a thread that can be terminated.
 * Throws `too_large` beyond the budget, and the library's errors.
 */
export function evaluateWithin(expression: string, scope: Json): Json {
  const evaluate = parseExpression(expression);
  budget = new Budget();
  try {
    const value = evaluate(toCel(scope) as Record<string, unknown>);
    budget.check();
    const size = budget.sizeOf(value);
    if (size > RESULT_BYTES_MAX) throw new CaissonError("too_large", `its value has more than ${RESULT_BYTES_MAX} bytes`);
    return toJson(value, 0);
  } catch (error) {
    budget.check();
    throw error;
  }
}

/** Operations that read their operands completely, or include them in a new value. */
const lookingAtAll = new Set(["+", "==", "!=", "in", "<", "<=", ">", ">=", "call", "rcall", "list", "map"]);

/**
 * Counts each evaluated node, in the one library function that evaluates all of them. Operations that read whole values
 * pay for their size.
 */
function countSteps(): void {
  const evaluator = evaluatorOf(environment);
  const run = evaluator.run.bind(evaluator);
  /** The size of the operands that the innermost node has evaluated so far. */
  let operands = 0;
  evaluator.run = (node, context) => {
    budget.step();
    const outer = operands;
    operands = 0;
    const value = run(node, context);
    if (lookingAtAll.has(node.op)) budget.bytes(operands + (isNew(node.op) ? budget.sizeOf(value) : 0));
    if (durations.has(node) && typeof value === "string" && value.length > DURATION_CHARACTERS_MAX)
      throw new Error("a duration is too long");
    if (iterated.has(node) && !Array.isArray(value)) budget.bytes(budget.sizeOf(value));
    // A list under construction changes, so it is measured when it is complete.
    operands = outer + (node.op === "accuPush" || node.op === "accuValue" ? 0 : budget.sizeOf(value));
    return value;
  };
}

const isNew = (op: string) => op === "+" || op === "call" || op === "rcall" || op === "list" || op === "map";

/** Gets the library's evaluator, which it passes to every node. */
function evaluatorOf(of: Environment): Evaluator {
  const probe = of.parse("true") as Parsed & { ast: { evaluate: unknown } };
  let found: Evaluator | undefined;
  Object.defineProperty(probe.ast, "evaluate", {
    value: (evaluator: Evaluator) => {
      found = evaluator;
      return true;
    },
  });
  probe({});
  if (found === undefined || typeof found.run !== "function") throw new CaissonError("internal", "cannot find the expression evaluator");
  return found;
}

/** Converts JSON to CEL: CEL's integers are 64 bits wide, so whole numbers become BigInts. */
function toCel(value: unknown): unknown {
  if (typeof value === "number") return Number.isSafeInteger(value) ? BigInt(value) : value;
  if (Array.isArray(value)) return value.map(toCel);
  if (value === null || typeof value !== "object") return value;
  const object: Record<string, unknown> = Object.create(null);
  for (const [key, each] of Object.entries(value)) object[key] = toCel(each);
  return object;
}

function toJson(value: unknown, depth: number): Json {
  if (depth > RESULT_DEPTH_MAX) throw new CaissonError("too_large", `a value is nested more than ${RESULT_DEPTH_MAX} deep`);
  if (typeof value === "bigint") return Number(value);
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number") return Number.isFinite(value) ? value : null;
  if (Array.isArray(value)) return value.map((each) => toJson(each, depth + 1));
  if (value instanceof Map) return Object.fromEntries([...value].map(([key, each]) => [String(key), toJson(each, depth + 1)]));
  if (value instanceof Date) return value.toISOString();
  if (value instanceof Uint8Array || typeof value !== "object") throw new CaissonError("invalid", "JSON cannot represent its value");
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, toJson(each, depth + 1)]));
}
