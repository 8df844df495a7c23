import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { startMirrorPort } from "../../../test/support/network/registries/mirror-port.ts";
import { startRegistryServer } from "../../../test/support/network/registries/registry-server.ts";

const all = ["npm", "pypi", "crates", "go", "debian"] as const;
const stack: AsyncDisposableStack[] = [];
afterEach(async () => {
  await stack.pop()?.disposeAsync();
});

async function rig(options: { offline?: boolean; registries?: readonly (typeof all)[number][]; bytesMax?: number } = {}) {
  const disposing = new AsyncDisposableStack();
  stack.push(disposing);
  const cacheDir = mkdtempSync(join(tmpdir(), "caisson-test-"));
  disposing.defer(() => rmSync(cacheDir, { recursive: true }));
  const registry = disposing.use(await startRegistryServer());
  const port = disposing.use(await startMirrorPort({ cacheDir, registries: all, upstreams: registry.upstreams, ...options }));
  const get = async (path: string, init: RequestInit = {}) => {
    const response = await fetch(`${port.origin}${path}`, init);
    return {
      response,
      status: response.status,
      cache: response.headers.get("x-caisson-cache"),
      body: Buffer.from(await response.arrayBuffer()),
    };
  };
  return { ...port, registry, get, cacheDir };
}

test("a smoke", async () => {
  const { get, registry, origin } = await rig();
  const meta = await get("/npm/@caisson%2fscoped");
  expect(meta.status, meta.body.toString()).toBe(200);
  const tarball = JSON.parse(meta.body.toString()).versions["2.0.0"].dist.tarball;
  expect(tarball).toBe(`${origin}/npm/@caisson/scoped/-/scoped-2.0.0.tgz`);
  const file = await get(new URL(tarball).pathname);
  expect(file.body.equals(registry.body("/npm/@caisson/scoped/-/scoped-2.0.0.tgz"))).toBe(true);
  expect(file.cache).toBe("miss");
  expect((await get(new URL(tarball).pathname)).cache).toBe("hit");
  expect((await get("/pypi/simple/Caisson_wheel/")).body.toString()).toContain("/pypi/own/caisson-wheel/pypi/packages/aa");
  expect((await get("/crates/ca/is/caisson-tiny")).body.toString()).toContain("cksum");
  expect((await get("/crates/dl/caisson-tiny/0.1.0")).status).toBe(200);
  expect((await get("/go/example.com/!tiny/@v/v1.0.0.zip")).status).toBe(200);
  expect((await get("/debian/dists/stable/Release")).status).toBe(200);
});
