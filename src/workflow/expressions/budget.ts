import { CaissonError } from "../../contract/error/error.ts";

/** Maximum number of node evaluations per expression. */
const STEPS_MAX = 500_000;
/** Maximum size of the text and list entries that an expression reads or creates. */
const BYTES_MAX = 64 * 1024 * 1024;
/** How many steps of a regular expression cost as much as one step of an expression. */
const PATTERN_STEPS_EACH = 8;
/** The cost of a list entry or a number. */
const VALUE_BYTES = 8;

/**
 * Counts the cost of one evaluation. The cost depends only on the expression and its values, so the same expression
 * succeeds or fails on every machine.
 */
export class Budget {
  #steps = 0;
  #bytes = 0;
  #error: CaissonError | undefined;
  readonly #sizes = new WeakMap<object, number>();

  step(count = 1): void {
    this.#steps += count;
    if (this.#steps > STEPS_MAX) this.#end(`it takes more than ${STEPS_MAX} steps`);
  }

  patternSteps(count: number): void {
    this.step(count / PATTERN_STEPS_EACH);
  }

  bytes(count: number): void {
    this.#bytes += count;
    if (this.#bytes > BYTES_MAX) this.#end(`it reads or creates more than ${BYTES_MAX} bytes`);
  }

  /** Returns the size of a value including everything in it. A value that appears twice counts twice. */
  sizeOf(value: unknown): number {
    if (typeof value === "string") return value.length;
    if (value === null || typeof value !== "object") return VALUE_BYTES;
    const known = this.#sizes.get(value);
    if (known !== undefined) return known;
    let size = value instanceof Uint8Array ? value.length : VALUE_BYTES;
    if (Array.isArray(value)) for (const each of value) size += VALUE_BYTES + this.sizeOf(each);
    else if (isPlain(value))
      for (const key of Object.keys(value)) size += key.length + this.sizeOf((value as Record<string, unknown>)[key]);
    // Does not cache an empty list, which may still be filled.
    if (!Array.isArray(value) || value.length > 0) this.#sizes.set(value, size);
    if (size > BYTES_MAX) this.#end(`it creates a value of more than ${BYTES_MAX} bytes`);
    return size;
  }

  /** Throws the error that ended the evaluation. The expression may have caught it, as `||` does. */
  check(): void {
    if (this.#error !== undefined) throw this.#error;
  }

  #end(why: string): never {
    this.#error ??= new CaissonError("too_large", why, {
      hint: "Do less in one expression: loop over fewer items, or compute the value in a command step.",
    });
    throw this.#error;
  }
}

const isPlain = (value: object) => {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
};
