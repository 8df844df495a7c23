import { mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { duplexPair } from "node:stream";
import type { RegistryName } from "../../../../src/contract/network/network.ts";
import type { PackagesOptions } from "../../../../src/network/mirror/mirror-options.ts";
import { type MirrorPort, startMirrorPort } from "./mirror-port.ts";
import { type RegistryServer, startRegistryServer } from "./registry-server.ts";

interface Got {
  status: number;
  headers: Headers;
  /** The value of x-caisson-cache. */
  cache: string | null;
  body: Buffer;
  text: string;
}

export interface MirrorRig extends MirrorPort {
  registry: RegistryServer;
  cacheDir: string;
  /**
   * Requests a path like a program that knows the registries by their server's name. Throws if the response breaks off.
   */
  get(path: string, init?: RequestInit): Promise<Got>;
  /** Requests a URL like a program that knows the registries by the names in the URL. */
  getBy(url: string, headers?: Record<string, string>): Promise<Pick<Got, "status" | "text" | "body">>;
  /** Makes every cache entry look as if it was requested long ago. */
  age(): void;
  /** Returns a summary of the cache. */
  kept(): { entries: number; temporary: number; text: string };
}

type Options = Partial<PackagesOptions> & { registries?: readonly RegistryName[] | (() => readonly RegistryName[]) };

/** Starts registries and a mirror of them on a port, with an empty cache. */
export async function openMirrorRig(options: Options = {}): Promise<MirrorRig> {
  const cacheDir = mkdtempSync(join(tmpdir(), "caisson-test-"));
  const registry = await startRegistryServer(undefined, { name: "registry.test" });
  const registries = ["npm", "pypi", "crates", "go", "debian"] as const;
  const port = await startMirrorPort({ cacheDir, registries, upstreams: registry.upstreams, upstreamUrl: registry.url, ...options });
  const entries = () => readdirSync(join(cacheDir, "entries"), { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
  return {
    ...port,
    registry,
    cacheDir,
    async get(path, init = {}) {
      const response = await fetch(`${port.origin}${path.replace(registry.url, "")}`, init);
      const body = Buffer.from(await response.arrayBuffer());
      const { status, headers } = response;
      return { status, headers, cache: headers.get("x-caisson-cache"), body, text: body.toString() };
    },
    getBy: (url, headers = {}) =>
      new Promise((resolve, reject) => {
        const [near, far] = duplexPair();
        const { origin, pathname } = new URL(url);
        port.mirror.handle({ stream: far, origin: new URL(origin) });
        const sent = request({ path: pathname, headers, createConnection: () => near }, async (response) => {
          const body = Buffer.concat(await response.toArray());
          resolve({ status: response.statusCode ?? 0, text: body.toString(), body });
        });
        sent.once("error", reject).end();
      }),
    age() {
      for (const { parentPath, name } of entries()) utimesSync(join(parentPath, name), new Date(), new Date(Date.now() - 3_600_000));
    },
    kept: () => ({
      entries: entries().length,
      temporary: readdirSync(join(cacheDir, "tmp")).length,
      text: entries()
        .map(({ parentPath, name }) => readFileSync(join(parentPath, name), "latin1"))
        .join("\n"),
    }),
    async [Symbol.asyncDispose]() {
      await port[Symbol.asyncDispose]();
      await registry[Symbol.asyncDispose]();
      rmSync(cacheDir, { recursive: true });
    },
  };
}
