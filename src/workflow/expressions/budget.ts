import { CaissonError } from "../../contract/error.ts";

/** What one evaluation may do: parts of the expression that are evaluated, each time counted. */
const STEPS_MAX = 500_000;
/** Text and list entries that it looks at or makes. */
const BYTES_MAX = 64 * 1024 * 1024;
/** Steps of a regular expression are smaller than those of an expression. */
const PATTERN_STEPS_EACH = 8;
/** What a list's entry or a number counts. */
const VALUE_BYTES = 8;

/**
 * Counts what one evaluation does. It depends on the expression and its values alone, so that the same expression
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
    if (this.#bytes > BYTES_MAX) this.#end(`it looks at or makes more than ${BYTES_MAX} bytes`);
  }

  /** The size of a value with all that is in it; what is in it twice counts twice. */
  sizeOf(value: unknown): number {
    if (typeof value === "string") return value.length;
    if (value === null || typeof value !== "object") return VALUE_BYTES;
    const known = this.#sizes.get(value);
    if (known !== undefined) return known;
    let size = value instanceof Uint8Array ? value.length : VALUE_BYTES;
    if (Array.isArray(value)) for (const each of value) size += VALUE_BYTES + this.sizeOf(each);
    else if (isPlain(value))
      for (const key of Object.keys(value)) size += key.length + this.sizeOf((value as Record<string, unknown>)[key]);
    // An empty list may be one that is being filled.
    if (!Array.isArray(value) || value.length > 0) this.#sizes.set(value, size);
    if (size > BYTES_MAX) this.#end(`it makes a value of more than ${BYTES_MAX} bytes`);
    return size;
  }

  /** Throws what ended the evaluation: the expression may have caught that, as `||` does. */
  check(): void {
    if (this.#error !== undefined) throw this.#error;
  }

  #end(why: string): never {
    this.#error ??= new CaissonError("too_large", why, {
      hint: "Do less in one expression: loop over fewer entries, or compute it in a step with a command.",
    });
    throw this.#error;
  }
}

const isPlain = (value: object) => {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
};
