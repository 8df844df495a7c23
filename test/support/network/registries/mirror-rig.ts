import { mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { duplexPair } from "node:stream";
import type { RegistryName } from "../../../../src/contract/network.ts";
import type { PackagesOptions } from "../../../../src/network/mirror/mirror-options.ts";
import { type MirrorPort, startMirrorPort } from "./mirror-port.ts";
import { type RegistryServer, startRegistryServer } from "./registry-server.ts";

interface Got {
  status: number;
  headers: Headers;
  /** What x-caisson-cache says. */
  cache: string | null;
  body: Buffer;
  text: string;
}

export interface MirrorRig extends MirrorPort {
  registry: RegistryServer;
  cacheDir: string;
  /**
   * Asks as a program does that knows the registries by the name of their server. Throws when the answer breaks off.
   */
  get(path: string, init?: RequestInit): Promise<Got>;
  /** Asks as a program does that knows them by such names. */
  getBy(url: string, headers?: Record<string, string>): Promise<Pick<Got, "status" | "text" | "body">>;
  /** Makes everything kept look as if the registry was asked for it long ago. */
  age(): void;
  /** What is kept, as a whole. */
  kept(): { entries: number; temporary: number; text: string };
}

type Options = Partial<PackagesOptions> & { registries?: readonly RegistryName[] | (() => readonly RegistryName[]) };

/** Registries, a mirror of them on a port, and an empty cache between. */
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
