import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { useCertificate } from "../api/testing-certificate.ts";
import { fetchImageFor } from "../network/outbound/fetch-image.ts";
import { createFetchPolicy } from "../network/outbound/fetch-policy.ts";
import { resolveImage } from "../runtimes/oci/template/image.ts";
import { writeLayout } from "../runtimes/oci/template/image-fixture.ts";

const { files, ca } = useCertificate();

let base = "";
let digest = "";
let closing: (() => Promise<unknown>)[] = [];
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "caisson-test-"));
  [digest = ""] = writeLayout(join(base, "layout"), [{ layers: [[{ name: "bin/tool", content: "x" }]], config: { WorkingDir: "/srv" } }]);
});
afterEach(async () => {
  for (const close of closing.reverse()) await close();
  closing = [];
  rmSync(base, { recursive: true, force: true });
});

async function listening(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closing.push(() => new Promise((done) => server.close(done)));
  return (server.address() as AddressInfo).port;
}

async function trap(): Promise<{ port: number; connections: () => number }> {
  let connections = 0;
  const port = await listening(
    createServer((socket) => {
      connections += 1;
      socket.destroy();
    }),
  );
  return { port, connections: () => connections };
}

type Answer = { status: number; headers?: Record<string, string>; body?: Buffer | string };

/** Starts a TLS registry that requires a token, as public ones do. `over` may answer a request first. */
async function registry(over: (request: IncomingMessage) => Answer | null = () => null): Promise<string> {
  const answerTo = (request: IncomingMessage): Answer => {
    const { url = "", headers } = request;
    if (url.startsWith("/token")) return { status: 200, body: JSON.stringify({ token: "for-everybody" }) };
    if (headers.authorization !== "Bearer for-everybody") {
      const realm = `Bearer realm="https://${headers.host}/token",service="test",scope="repository:team/app:pull"`;
      return { status: 401, headers: { "www-authenticate": realm } };
    }
    const [, kind, wanted = ""] = /^\/v2\/team\/app\/(manifests|blobs)\/(.+)$/.exec(url) ?? [];
    const blob = join(base, "layout/blobs", (wanted === "1" ? digest : wanted).replace(":", "/"));
    if (kind === undefined || !existsSync(blob)) return { status: 404 };
    return { status: 200, body: readFileSync(blob) };
  };
  const tls = { cert: readFileSync(files().certPath), key: readFileSync(files().keyPath) };
  const port = await listening(
    createTlsServer(tls, (request, response) => {
      const { status, headers = {}, body = "" } = over(request) ?? answerTo(request);
      response.writeHead(status, { connection: "close", ...headers }).end(body);
    }),
  );
  return `127.0.0.1:${port}`;
}

const fetchFor = (reference: string, { isPrivateHost = false, owner = "ada" }: { isPrivateHost?: boolean; owner?: string } = {}) => {
  const policy = createFetchPolicy({ privateHosts: isPrivateHost ? ["127.0.0.1"] : [], extraCa: [ca()] });
  return resolveImage({
    reference,
    stateDir: join(base, "state"),
    owner,
    // None of the user's files are reachable from here.
    env: { PATH: "/nonexistent", HOME: "/nonexistent" },
    fetchFor: (request) => fetchImageFor(request, policy),
  });
};

describe("an image named by another owner", () => {
  test("is fetched from an allowed registry with an anonymous token", async () => {
    const host = await registry();
    const image = await fetchFor(`${host}/team/app:1`, { isPrivateHost: true });
    expect(image).toMatchObject({ digest, config: { workdir: "/srv" } });
    expect(readFileSync(join(image.rootfsDir, "bin/tool"), "utf8")).toBe("x");
    await expect(fetchFor(`${host}/team/none:1`, { isPrivateHost: true })).rejects.toMatchObject({ code: "not_found" });
    // An image that others fetched is not available to the machine's user.
    await expect(fetchFor(`${host}/team/app:1`, { owner: "local" })).rejects.toMatchObject({ code: "unavailable" });
  });

  test("is not fetched from a private address, and leaves no files", async () => {
    const { port, connections } = await trap();
    const messages: string[] = [];
    for (const name of [`127.0.0.1:${port}/x/y`, "127.0.0.1:1/x/y", `localhost:${port}/x/y`, "169.254.169.254/latest/meta", "10.0.0.1/x"]) {
      const failure = await fetchFor(name).catch((error: unknown) => error as Error);
      expect(failure).toMatchObject({ code: "denied" });
      messages.push((failure as Error).message.replace(/\S+$/, ""));
    }
    expect(new Set(messages).size).toBe(1);
    expect(connections()).toBe(0);
    expect(readdirSync(join(base, "state/templates"))).toEqual([]);
  });

  test("is not fetched through a registry's redirects or token addresses", async () => {
    const { port, connections } = await trap();
    const places = [`http://127.0.0.1:${port}/`, `https://127.0.0.2:${port}/`, `https://localhost:${port}/`];
    for (const place of places) {
      const redirects = await registry(({ url = "" }) => (url.includes("/blobs/") ? { status: 307, headers: { location: place } } : null));
      await expect(fetchFor(`${redirects}/team/app:1`, { isPrivateHost: true })).rejects.toMatchObject({ code: "denied" });
      const challenge = { "www-authenticate": `Bearer realm="${place}",service="x"` };
      const tokens = await registry(({ url = "" }) => (url.startsWith("/v2/") ? { status: 401, headers: challenge } : null));
      await expect(fetchFor(`${tokens}/team/app:1`, { isPrivateHost: true })).rejects.toMatchObject({ code: "denied" });
    }
    expect(connections()).toBe(0);
  });

  test("is rejected if it does not match its digest", async () => {
    const lying = await registry(({ url = "" }) => (url.includes("/blobs/") ? { status: 200, body: "something else" } : null));
    await expect(fetchFor(`${lying}/team/app:1`, { isPrivateHost: true })).rejects.toMatchObject({ code: "invalid" });
    expect(readdirSync(join(base, "state/templates"))).toEqual([]);
  });
});
