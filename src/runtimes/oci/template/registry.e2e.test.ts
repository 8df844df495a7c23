import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { resolveImage } from "./image.ts";
import { writeLayout } from "./image-fixture.ts";

const skopeo = spawnSync("skopeo", ["--version"]).status === 0;

let folder = "";
let server: Server;
let address = "";
let urls: string[] = [];
let digest = "";

/** Serves as much of a registry as a pull needs, from the blobs of a layout. */
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "caisson-test-"));
  urls = [];
  [digest = ""] = writeLayout(join(folder, "layout"), [{ layers: [[{ name: "bin/tool", content: "x" }]], config: { WorkingDir: "/srv" } }]);
  server = createServer((request, response) => {
    const url = request.url ?? "";
    urls.push(url);
    const [, kind, wanted] = /^\/v2\/team\/app\/(manifests|blobs)\/(.+)$/.exec(url) ?? [];
    const blob = join(folder, "layout/blobs", (wanted === "1" ? digest : (wanted ?? "")).replace(":", "/"));
    if (url === "/v2/") response.end("{}");
    else if (wanted === undefined || !existsSync(blob)) response.writeHead(404).end("{}");
    else {
      const type = kind === "manifests" ? "application/vnd.oci.image.manifest.v1+json" : "application/octet-stream";
      response.writeHead(200, { "content-type": type }).end(readFileSync(blob));
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  mkdirSync(join(folder, "home/.config/containers"), { recursive: true });
  writeFileSync(join(folder, "home/.config/containers/registries.conf"), `[[registry]]\nlocation = "${address}"\ninsecure = true\n`);
  writeFileSync(join(folder, "home/.config/containers/policy.json"), '{"default":[{"type":"insecureAcceptAnything"}]}');
});
afterEach(async () => {
  server.closeAllConnections();
  server.close();
  await once(server, "close");
  rmSync(folder, { recursive: true, force: true });
});

const resolve = (name: string, options: { refresh?: boolean; signal?: AbortSignal } = {}) =>
  resolveImage({
    reference: name,
    stateDir: join(folder, "state"),
    env: { PATH: "/usr/local/bin:/usr/bin:/bin", HOME: join(folder, "home") },
    ...options,
  });

describe.skipIf(!skopeo)("a name in a registry", () => {
  it("is fetched once, and again on request", async () => {
    const image = await resolve(`${address}/team/app:1`);
    expect(image).toMatchObject({ digest, config: { workdir: "/srv" } });
    expect(readFileSync(join(image.rootfsDir, "bin/tool"), "utf8")).toBe("x");
    const before = urls.length;
    expect(before).toBeGreaterThan(2);
    expect(await resolve(`${address}/team/app:1`)).toEqual(image);
    expect(urls.length).toBe(before);
    expect(await resolve(`docker://${address}/team/app:1`, { refresh: true })).toEqual(image);
    expect(urls.length).toBeGreaterThan(before);
  });

  it("can be a digest", async () => {
    expect((await resolve(`${address}/team/app@${digest}`)).digest).toBe(digest);
  });

  it("is unavailable if it does not exist, and leaves nothing", async () => {
    await expect(resolve(`${address}/team/missing:1`)).rejects.toThrow(expect.objectContaining({ code: "unavailable" }));
    expect(readdirSync(join(folder, "state/templates"))).toEqual([]);
  });

  it("is cancelled on abort, and leaves nothing", async () => {
    server.removeAllListeners("request");
    const controller = new AbortController();
    server.on("request", () => controller.abort());
    await expect(resolve(`${address}/team/app:1`, { signal: controller.signal })).rejects.toThrow(
      expect.objectContaining({ code: "cancelled" }),
    );
    expect(readdirSync(join(folder, "state/templates"))).toEqual([]);
  });
});
