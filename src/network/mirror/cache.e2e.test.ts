import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { startMirrorPort } from "../../../test/support/network/registries/mirror-port.ts";
import { startRegistryServer } from "../../../test/support/network/registries/registry-server.ts";

const isRoot = process.getuid?.() === 0;

test.skipIf(!isRoot)("reports a full disk, keeps no partial files, and serves its entries", async () => {
  const folder = mkdtempSync(join(tmpdir(), "caisson-test-"));
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", folder]);
  onTestFinished(() => {
    execFileSync("umount", [folder]);
    rmSync(folder, { recursive: true });
  });
  await using registry = await startRegistryServer(undefined, { name: "registry.test" });
  const cacheDir = join(folder, "cache");
  await using port = await startMirrorPort({
    cacheDir,
    registries: ["npm", "debian"],
    upstreams: registry.upstreams,
    upstreamUrl: registry.url,
  });
  const get = async (path: string) => {
    const response = await fetch(`${port.origin}${path}`);
    return { status: response.status, text: await response.text() };
  };
  expect((await get("/npm/caisson-left")).status).toBe(200);
  registry.put("/debian/dists/stable/Contents", { type: "text/plain", body: Buffer.alloc(2 * 1024 * 1024, "x") });
  // The answer starts successfully, so a client can only see that it broke off.
  await expect(get("/debian/dists/stable/Contents")).rejects.toThrow();
  // The partial file is removed a moment after the client got its answer.
  await expect.poll(() => readdirSync(join(cacheDir, "tmp"))).toEqual([]);
  writeFileSync(join(folder, "fill"), Buffer.alloc(600 * 1024));
  registry.put("/npm/large", { type: "application/json", body: Buffer.from(JSON.stringify({ readme: "x".repeat(500_000) })) });
  expect(await get("/npm/large")).toMatchObject({ status: 507, text: expect.stringContaining("disk is full") });
  expect((await get("/npm/caisson-left")).status).toBe(200);
  expect(readdirSync(join(cacheDir, "tmp"))).toEqual([]);
  rmSync(join(folder, "fill"));
  registry.put("/debian/dists/stable/Contents", { type: "text/plain", body: Buffer.from("small") });
  expect(await get("/debian/dists/stable/Contents")).toEqual({ status: 200, text: "small" });
});
