import { lstatSync } from "node:fs";

/** Two changes may have the same time, as coarse as some file systems keep it. */
const SETTLED_MS = 100;

/**
 * What small files said when they were last read, for those who ask again and again. Every time a file is looked at,
 * and read anew where it is another, or its owner or its mode has changed: for files that are never changed in place,
 * but replaced. What is given out is shared, and so nobody can change it.
 */
export class KnownFiles<Content> {
  readonly #known = new Map<string, { stamp: string; content: Content }>();
  readonly #max: number;

  constructor({ max }: { max: number }) {
    this.#max = max;
  }

  /** Null where there is no file. Throws what `read` throws, and what the look at the file does. */
  async get(path: string, read: (found: { sizeBytes: number; isFile: boolean }) => Promise<Content>): Promise<Content | null> {
    const stat = lstatSync(path, { throwIfNoEntry: false });
    if (stat === undefined) {
      this.#known.delete(path);
      return null;
    }
    const stamp = `${stat.dev} ${stat.ino} ${stat.size} ${stat.mtimeMs} ${stat.mode} ${stat.uid}`;
    const known = this.#known.get(path);
    if (known?.stamp === stamp) return known.content;
    // Replaced meanwhile, it is taken for the one before, and the next look finds another.
    const content = frozen(await read({ sizeBytes: stat.size, isFile: stat.isFile() }));
    if (Date.now() - stat.mtimeMs > SETTLED_MS) this.#remember(path, { stamp, content });
    return content;
  }

  #remember(path: string, entry: { stamp: string; content: Content }): void {
    this.#known.delete(path);
    this.#known.set(path, entry);
    if (this.#known.size > this.#max) this.#known.delete(this.#known.keys().next().value ?? "");
  }
}

function frozen<Value>(value: Value): Value {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  for (const each of Object.values(value)) frozen(each);
  return Object.freeze(value);
}
