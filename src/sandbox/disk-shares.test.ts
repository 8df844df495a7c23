import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createDiskShares, folderBytes, reserveOf } from "./disk-shares.ts";

const MIB = 1024 ** 2;
const GIB = 1024 ** 3;

let stateDir = "";
beforeEach(async () => {
  stateDir = await mkdtemp(join(tmpdir(), "caisson-test-disk-"));
});
afterEach(() => rm(stateDir, { recursive: true, force: true }));

/** A disk of 1,000 MiB whose free space the test sets. */
function diskWith(freeBytes: number, options: { bytesPerOwnerMax?: number } = {}) {
  const disk = { freeBytes };
  const look = async () => ({ totalBytes: 1000 * MIB, freeBytes: disk.freeBytes });
  return { disk, shares: createDiskShares({ stateDir, reserveBytes: 100 * MIB, look, ...options }) };
}

test("the reserve is a twentieth of the disk, within bounds and at most a quarter", () => {
  expect(reserveOf(100 * GIB)).toBe(5 * GIB);
  expect(reserveOf(2 * GIB)).toBe(256 * MIB);
  expect(reserveOf(2000 * GIB)).toBe(10 * GIB);
  expect(reserveOf(64 * MIB)).toBe(16 * MIB);
});

describe("a write", () => {
  test("is rejected up front if only the reserve is free", async () => {
    const { shares } = diskWith(100 * MIB);
    const work = async () => expect.unreachable();
    await expect(shares.write({ what: "the upload" }, work)).rejects.toMatchObject({ code: "no_space", hint: /diskReserveBytes/ });
    await expect(shares.check("a package")).rejects.toMatchObject({ code: "no_space" });
  });

  test("stops at the reserve if it counts its bytes", async () => {
    const { disk, shares } = diskWith(110 * MIB);
    let written = 0;
    const writing = shares.write({ what: "the upload" }, async ({ add }) => {
      for (;;) {
        await add(MIB);
        written += MIB;
        disk.freeBytes -= MIB;
      }
    });
    await expect(writing).rejects.toMatchObject({ code: "no_space" });
    expect(written).toBeLessThanOrEqual(14 * MIB);
  });

  test("is aborted at the reserve if a program writes the bytes", async () => {
    const { disk, shares } = diskWith(110 * MIB);
    const writing = shares.write({ what: "the image" }, ({ signal }) => {
      disk.freeBytes = 50 * MIB;
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("killed"))));
    });
    await expect(writing).rejects.toMatchObject({ code: "no_space" });
  });

  test("passes on other errors", async () => {
    const { shares } = diskWith(500 * MIB);
    await expect(shares.write({ what: "the upload" }, () => Promise.reject(new Error("other")))).rejects.toThrow("other");
  });
});

describe("an owner's share", () => {
  const writeRecord = async (folder: string, name: string, record: object) => {
    await mkdir(join(stateDir, folder, name), { recursive: true });
    const file = { uploads: "upload.json", mirrors: "caisson-owned.json", templates: "image.json" }[folder] as string;
    await writeFile(join(stateDir, folder, name, file), JSON.stringify(record));
  };

  test("counts uploads, mirrors, images and writes in progress", async () => {
    const { shares } = diskWith(900 * MIB, { bytesPerOwnerMax: 100 * MIB });
    await writeRecord("uploads", "up_a", { owner: "ada", bytes: 30 * MIB });
    await writeRecord("mirrors", "a.git", { owner: "ada", bytes: 30 * MIB });
    await writeRecord("templates", "image-a", { owner: "ada", bytes: 20 * MIB });
    await writeRecord("templates", "image-b", { bytes: 20 * MIB });
    expect(await shares.countBytesLeft("ada")).toBe(20 * MIB);
    expect(await shares.countBytesLeft("bob")).toBe(100 * MIB);
    const { promise, resolve } = Promise.withResolvers<void>();
    const start = Promise.withResolvers<void>();
    const first = shares.write({ what: "the upload", owner: "ada" }, async ({ add }) => {
      await add(16 * MIB);
      start.resolve();
      await promise;
    });
    await start.promise;
    const second = shares.write({ what: "the upload", owner: "ada" }, ({ add }) => add(8 * MIB));
    await expect(second).rejects.toMatchObject({ code: "no_space", message: expect.stringContaining("that ada may store") });
    await shares.write({ what: "the upload", owner: "bob" }, ({ add }) => add(50 * MIB));
    resolve();
    await first;
    await shares.write({ what: "the upload", owner: "local" }, ({ add }) => add(500 * MIB));
  });

  test("counts the folder that a program fills", async () => {
    const { shares } = diskWith(900 * MIB, { bytesPerOwnerMax: MIB });
    const measured = join(stateDir, "filled");
    await mkdir(measured);
    const writing = shares.write({ what: "the repository", owner: "ada", measured }, async ({ signal }) => {
      await writeFile(join(measured, "pack"), Buffer.alloc(2 * MIB, 1));
      await new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("killed"))));
    });
    await expect(writing).rejects.toMatchObject({ code: "no_space", message: expect.stringContaining("the repository") });
  });
});

test("folderBytes does not treat an unreadable file as absent", async () => {
  await writeFile(join(stateDir, "file"), "x".repeat(5000));
  expect(await folderBytes(stateDir)).toBeGreaterThan(0);
  const failing = { lstat: () => Promise.reject(Object.assign(new Error("i/o error"), { code: "EIO" })) };
  await expect(folderBytes(stateDir, failing)).rejects.toMatchObject({ code: "EIO" });
});
