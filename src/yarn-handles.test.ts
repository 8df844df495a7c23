import { mkdtempSync, rmSync, statSync } from "node:fs";
import { open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { completeHandles } from "./yarn-handles.ts";

/** As Yarn's handles are. */
class BareHandle {
  readonly #handle: Awaited<ReturnType<typeof open>>;
  constructor(handle: Awaited<ReturnType<typeof open>>) {
    this.#handle = handle;
  }
  get fd(): number {
    return this.#handle.fd;
  }
  datasync(): never {
    throw new Error("Method not implemented.");
  }
  close(): Promise<void> {
    return this.#handle.close();
  }
}

test("handles of Yarn's sync, set times and close by themselves like Node's own", async () => {
  const folder = mkdtempSync(join(tmpdir(), "caisson-handles-"));
  try {
    completeHandles({ file: BareHandle.prototype, folder: class {}.prototype });
    const path = join(folder, "a");
    const handle = new BareHandle(await open(path, "w")) as unknown as Awaited<ReturnType<typeof open>>;
    {
      await using file = handle;
      await file.sync();
      await file.datasync();
      await file.utimes(1, 2);
    }
    expect(statSync(path).mtimeMs).toBe(2000);
    expect(handle.fd).toBe(-1);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
