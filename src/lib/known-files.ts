import { lstatSync } from "node:fs";

/** Some file systems store timestamps so coarsely that two changes within this interval can share one. */
const SETTLED_MS = 100;

/**
 * Caches the content of small files for repeated reads. Every call checks the file, and reads it again if it was
 * replaced or its owner or mode changed. Only for files that are replaced and never changed in place. The result is
 * shared, so it is frozen.
 */
export class KnownFiles<Content> {
  readonly #known = new Map<string, { stamp: string; content: Content }>();
  readonly #max: number;

  constructor({ max }: { max: number }) {
    this.#max = max;
  }

  /** Returns null if the file does not exist. Throws what `read` throws, and the file system's own error. */
  async get(path: string, read: (found: { sizeBytes: number; isFile: boolean }) => Promise<Content>): Promise<Content | null> {
    const stat = lstatSync(path, { throwIfNoEntry: false });
    if (stat === undefined) {
      this.#known.delete(path);
      return null;
    }
    const stamp = `${stat.dev} ${stat.ino} ${stat.size} ${stat.mtimeMs} ${stat.mode} ${stat.uid}`;
    const known = this.#known.get(path);
    if (known?.stamp === stamp) return known.content;
    // A file that is replaced during the read is cached under the old stamp; the next call sees the new stamp.
    const content = deepFreeze(await read({ sizeBytes: stat.size, isFile: stat.isFile() }));
    if (Date.now() - stat.mtimeMs > SETTLED_MS) this.#remember(path, { stamp, content });
    return content;
  }

  #remember(path: string, entry: { stamp: string; content: Content }): void {
    this.#known.delete(path);
    this.#known.set(path, entry);
    if (this.#known.size > this.#max) this.#known.delete(this.#known.keys().next().value ?? "");
  }
}

function deepFreeze<Value>(value: Value): Value {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  for (const each of Object.values(value)) deepFreeze(each);
  return Object.freeze(value);
}
