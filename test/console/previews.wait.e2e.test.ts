import { createPrivateKey, generateKeyPairSync, X509Certificate } from "node:crypto";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { createServer } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createAuthority } from "../../src/network/authority/authority.ts";
import { leafCertificate, pemOf } from "../../src/network/authority/certificate.ts";
import { barriers, type Exposed, picture, useConsole } from "../support/console.ts";

/** Below the range of ephemeral ports. */
const PORTS_FROM = 21_000;
const INSIDE = 8124;
let port = 0;

/**
 * A station with a certificate that other machines can reach, and a browser that resolves it and its previews to this
 * machine.
 */
const { openPage, run, token } = useConsole({
  async exposed(folder): Promise<Exposed> {
    port = await freePort();
    const [cert, key] = [join(folder, "cert.pem"), join(folder, "key.pem")];
    await writeCertificate(cert, key);
    const names = ["--public-url", "https://caisson.example.com", "--previews-at", "https://*.previews.example.com"];
    const rules = ["caisson.example.com", "*.previews.example.com"].map((name) => `MAP ${name} 127.0.0.1:${port}`);
    return {
      up: ["--port", String(port), "--tls-cert", cert, "--tls-key", key, ...names],
      browser: [`--host-resolver-rules=${rules.join(", ")}`, "--ignore-certificate-errors"],
    };
  },
});

async function freePort(from = PORTS_FROM): Promise<number> {
  const server = createServer();
  try {
    await once(server.listen(from, "127.0.0.1"), "listening");
    return from;
  } catch {
    return await freePort(from + 1);
  } finally {
    server.close();
  }
}

async function writeCertificate(certPath: string, keyPath: string): Promise<void> {
  const authority = createAuthority();
  const issued = new X509Certificate(authority.certificatePem);
  const issuer = {
    key: createPrivateKey(authority.toStored().keyPem),
    certificate: issued.raw,
    validity: { from: new Date(issued.validFrom), to: new Date(issued.validTo) },
  };
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  await writeFile(certPath, pemOf(leafCertificate({ host: "caisson.example.com", publicKey, issuer, now: new Date() })));
  await writeFile(keyPath, privateKey.export({ type: "pkcs8", format: "pem" }));
}

const server = `
const http = require("node:http"), { createHash } = require("node:crypto");
const page = \`<!doctype html><title>shop</title><p id=socket>waiting</p><p id=parent>waiting</p><p id=api>waiting</p><script>
const say = (id, text) => { document.getElementById(id).textContent = text; };
new WebSocket("wss://" + location.host + "/").onmessage = ({ data }) => say("socket", "socket says " + data);
try { parent.localStorage.getItem("caisson.token"); say("parent", "reached the console"); } catch { say("parent", "parent refused"); }
fetch("/v1/sandboxes").then((answer) => answer.text()).then((text) => say("api", text.includes("shop") ? "no api here" : "an api"));
</script>\`;
http.createServer((request, response) => response.writeHead(200, { "content-type": "text/html" }).end(page)).on("upgrade", (request, socket) => {
  const accept = createHash("sha1").update(request.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest("base64");
  socket.write("HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Accept: " + accept + "\\r\\n\\r\\n");
  socket.write(Buffer.concat([Buffer.from([0x81, 5]), Buffer.from("hello")]));
}).listen(${INSIDE});
`;

/** Sends a request as another machine would, by host name. */
async function ask(
  host: string,
  path: string,
  headers: Record<string, string> = {},
): Promise<{ status: number | undefined; text: string }> {
  const options = { host: "127.0.0.1", port, path, agent: false as const, rejectUnauthorized: false, headers: { host, ...headers } };
  const [response] = (await once(httpsRequest(options).end(), "response")) as [IncomingMessage];
  let text = "";
  for await (const part of response) text += String(part);
  return { status: response.statusCode, text };
}

test("a preview has a separate host, and neither host serves the other", async () => {
  const sandbox = (await run(["sandbox", "create", "--name", "shop", "--no-workspace"])).text.trim();
  await run(["exec", "--sandbox", sandbox, "--", "sh", "-c", 'printf "%s" "$1" > s.cjs; nohup node s.cjs >/dev/null 2>&1 &', "sh", server]);
  const { page } = await openPage(`/sandboxes/${sandbox}?tab=ports`);
  await page.getByRole("button", { name: `Show port ${INSIDE}` }).click();
  const frame = page.frameLocator(`iframe[title="Port ${INSIDE}"]`);
  await frame.getByText("socket says hello").waitFor();
  await frame.getByText("parent refused").waitFor();
  await frame.getByText("no api here").waitFor();
  expect(await barriers(page)).toEqual([]);
  await picture(page, "sandbox-preview-elsewhere");
  const address = new URL((await page.locator("iframe").getAttribute("src")) ?? "");
  expect(address.host).toMatch(/^pv-[a-z2-7]{12}\.previews\.example\.com$/);
  const authorization = `Bearer ${token()}`;
  const [preview] = JSON.parse((await ask("caisson.example.com", "/v1/previews", { authorization })).text).previews;
  expect(preview.url).toBe(String(address));
  const cookie = `caisson-preview-${preview.listenPort}=${address.searchParams.get("caisson-token")}`;
  expect((await ask(address.host, "/v1/sandboxes", { authorization, cookie })).text).toContain("<title>shop</title>");
  expect((await ask(address.host, "/v1/sandboxes", { authorization })).status).toBe(401);
  expect((await ask("caisson.example.com", "/v1/sandboxes", { authorization })).text).toContain(sandbox);
  for (const host of ["previews.example.com", "pv-aaaaaaaaaaaa.previews.example.com"])
    expect((await ask(host, "/v1/sandboxes", { authorization })).status).toBe(404);
  expect((await ask("elsewhere.example.com", "/v1/sandboxes", { authorization })).status).toBe(403);
});
