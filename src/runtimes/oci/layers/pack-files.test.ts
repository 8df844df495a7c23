import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  createReadStream,
  createWriteStream,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createLauncher } from "../launch/launcher.ts";
import type { OciContext } from "../oci-context.ts";
import { packFiles, unpackFiles } from "./pack-files.ts";

const guestPath = join(import.meta.dirname, "../../../../guest/build/caisson-guest");
// The parts of a context that are used when no sandbox needs freezing.
const oci = { launch: createLauncher({ guestPath, path: "/usr/bin:/bin" }), identity: () => ({ plan: [] }) } as unknown as OciContext;
const LARGE_BYTES = 64 * 1024 * 1024;

let base: string;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "caisson-pack-"));
  for (const name of ["from", "to"]) mkdirSync(join(base, name));
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

const pack = (names: readonly string[]) => packFiles(oci, { folder: join(base, "from"), names, file: join(base, "a.tar"), still: [] });
const unpack = () => unpackFiles(oci, { folder: join(base, "to"), file: join(base, "a.tar") });

describe("packFiles", () => {
  it("packs a file that grows in the meantime, and reports the change", async () => {
    const growing = join(base, "from/growing");
    writeFileSync(growing, Buffer.alloc(LARGE_BYTES, "a"));
    writeFileSync(join(base, "from/later"), "whole");
    // Packing blocks here, in the middle of that file, until the reader continues.
    const slow = join(base, "slow");
    execFileSync("mkfifo", [slow]);
    const packing = packFiles(oci, { folder: join(base, "from"), names: ["growing", "later"], file: slow, still: [] });
    await pipeline(
      createReadStream(slow),
      async function* (chunks) {
        let isFirst = true;
        for await (const chunk of chunks) {
          if (isFirst) appendFileSync(growing, "b");
          isFirst = false;
          yield chunk;
        }
      },
      createWriteStream(join(base, "a.tar")),
    );
    expect(await packing).toEqual({ hasChanged: true });
    await unpack();
    expect(statSync(join(base, "to/growing")).size).toBeGreaterThanOrEqual(LARGE_BYTES);
    expect(readFileSync(join(base, "to/later"), "utf8")).toBe("whole");
  });

  it("leaves out missing files, and reports files that stayed the same", async () => {
    writeFileSync(join(base, "from/there"), "x");
    expect(await pack(["gone"])).toEqual({ hasChanged: false });
    expect(await pack(["gone", "there"])).toEqual({ hasChanged: false });
    await unpack();
    expect(readFileSync(join(base, "to/there"), "utf8")).toBe("x");
  });

  it("fails for an archive that cannot be written or read", async () => {
    writeFileSync(join(base, "from/there"), "x");
    const request = { folder: join(base, "from"), names: ["there"], still: [] };
    await expect(packFiles(oci, { ...request, file: join(base, "none/a.tar") })).rejects.toMatchObject({ code: "unavailable" });
    writeFileSync(join(base, "a.tar"), "not an archive");
    await expect(unpack()).rejects.toMatchObject({ code: "unavailable" });
  });
});
