import type { z } from "zod";
import { CaissonError } from "../../contract/error.ts";
import { type ExpressionNode, nodesOf, parseExpression } from "./engine.ts";

type Json = z.core.util.JSONType;

/** What an expression may read: of this size as JSON, about. */
const SCOPE_BYTES_MAX = 4 * 1024 * 1024;
const VALUE_BYTES = 16;

/** Names that an expression reads, and what it reads of each; `all` for the whole of it. */
interface Reads {
  all: boolean;
  names: Map<string, Reads>;
}

/**
 * Of all that an expression can see, what it reads, as JSON: the outputs of a thousand steps stay where they are if it
 * asks for one of them. Throws `too_large` for more than goes to be evaluated, and what parsing throws.
 */
export function readScope(expression: string, scope: Readonly<Record<string, Json>>): string {
  const reads: Reads = { all: false, names: new Map() };
  const nodes = nodesOf(parseExpression(expression).ast);
  // A chain is read as a whole by its last part; the parts before it read nothing by themselves.
  const inner = new Set<unknown>();
  for (const node of nodes) if (keyOf(node) !== null) inner.add((node.args as unknown[])[0]);
  for (const node of nodes) {
    if (inner.has(node)) continue;
    const path = pathOf(node);
    if (path !== null) note(reads, path);
  }
  let left = SCOPE_BYTES_MAX;
  const count = (bytes: number) => {
    left -= bytes;
    if (left < 0) {
      throw new CaissonError("too_large", `it reads more than ${SCOPE_BYTES_MAX} bytes`, {
        hint: "Read a part of a value instead of the whole, such as steps.NAME.output instead of steps.",
      });
    }
  };
  return JSON.stringify(picked(scope, reads, count));
}

/** Which name of what is before it a part reads; null for any other part. */
function keyOf({ op, args }: ExpressionNode): string | null {
  if (op !== "." && op !== ".?" && op !== "[]" && op !== "[?]") return null;
  const [, key] = args as [unknown, string | ExpressionNode];
  if (typeof key === "string") return key;
  return key.op === "value" && typeof key.args === "string" ? key.args : null;
}

/** `steps.a["output"]` as names; null for what does not begin with a name. */
function pathOf(node: ExpressionNode): string[] | null {
  const path: string[] = [];
  for (let at = node; ; ) {
    if (at.op === "id") return [String(at.args), ...path];
    const key = keyOf(at);
    if (key === null) return null;
    path.unshift(key);
    at = (at.args as ExpressionNode[])[0] as ExpressionNode;
  }
}

function note(reads: Reads, path: readonly string[]): void {
  let at = reads;
  for (const name of path) {
    let next = at.names.get(name);
    if (next === undefined) {
      next = { all: false, names: new Map() };
      at.names.set(name, next);
    }
    at = next;
  }
  at.all = true;
}

function picked(value: Json, reads: Reads, count: (bytes: number) => void): Json {
  if (reads.all || value === null || typeof value !== "object" || Array.isArray(value)) {
    measure(value, count);
    return value;
  }
  const made: Record<string, Json> = {};
  for (const [name, each] of reads.names) {
    if (Object.hasOwn(value, name))
      Object.defineProperty(made, name, { value: picked(value[name] as Json, each, count), enumerable: true });
  }
  return made;
}

function measure(value: Json | undefined, count: (bytes: number) => void): void {
  count(VALUE_BYTES + (typeof value === "string" ? value.length : 0));
  if (value === null || typeof value !== "object") return;
  if (Array.isArray(value)) for (const each of value) measure(each, count);
  else {
    for (const key of Object.keys(value)) {
      count(key.length);
      measure(value[key], count);
    }
  }
}
