import type { z } from "zod";
import { CaissonError } from "../../contract/error/error.ts";
import { type ExpressionNode, nodesOf, parseExpression } from "./engine.ts";

type Json = z.core.util.JSONType;

/** The approximate maximum size, as JSON, of what an expression may read. */
const SCOPE_BYTES_MAX = 4 * 1024 * 1024;
const VALUE_BYTES = 16;

/** The names that an expression reads, and what it reads of each; `all` if it reads the whole value. */
interface Reads {
  all: boolean;
  names: Map<string, Reads>;
}

/**
 * Returns the part of a scope that an expression reads, as JSON. If it reads one output, the outputs of a thousand
 * other steps need not be copied. Throws `too_large` if the expression reads too much, and parse errors.
 */
export function readScope(expression: string, scope: Readonly<Record<string, Json>>): string {
  const reads: Reads = { all: false, names: new Map() };
  const nodes = nodesOf(parseExpression(expression).ast);
  // The last node of a member chain reads it as a whole; the nodes before it read nothing on their own.
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
        hint: "Read part of a value instead of the whole, such as steps.NAME.output instead of steps.",
      });
    }
  };
  return JSON.stringify(pickReads(scope, reads, count));
}

/** Returns the name of the member that a node reads, or null for any other node. */
function keyOf({ op, args }: ExpressionNode): string | null {
  if (op !== "." && op !== ".?" && op !== "[]" && op !== "[?]") return null;
  const [, key] = args as [unknown, string | ExpressionNode];
  if (typeof key === "string") return key;
  return key.op === "value" && typeof key.args === "string" ? key.args : null;
}

/** Returns the names in a chain such as `steps.a["output"]`; null if it does not begin with a name. */
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

function pickReads(value: Json, reads: Reads, count: (bytes: number) => void): Json {
  if (reads.all || value === null || typeof value !== "object" || Array.isArray(value)) {
    measure(value, count);
    return value;
  }
  const subset: Record<string, Json> = {};
  for (const [name, each] of reads.names) {
    if (Object.hasOwn(value, name))
      Object.defineProperty(subset, name, { value: pickReads(value[name] as Json, each, count), enumerable: true });
  }
  return subset;
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
