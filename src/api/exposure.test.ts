import { generateKeyPairSync } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { request } from "node:https";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { useServer } from "../../test/support/api-station.ts";
import { judgeExposure } from "./exposure.ts";
import { useCertificate } from "./testing-certificate.ts";

const certificate = useCertificate();
const tls = certificate.files;

describe("judgeExposure", () => {
  const publicUrl = "https://caisson.test";

  test("requires TLS or a proxy and a public URL, except on loopback", async () => {
    expect(await judgeExposure({ listenHost: "localhost" })).toMatchObject({ host: "127.0.0.1", publicUrl: null, scheme: "http" });
    for (const listenHost of ["0.0.0.0", "::", "10.1.2.3"]) {
      await expect(judgeExposure({ listenHost, publicUrl })).rejects.toMatchObject({ code: "invalid", hint: /--tls-cert/ });
      await expect(judgeExposure({ listenHost, tls: tls() })).rejects.toMatchObject({ code: "invalid", hint: /--public-url/ });
      expect(await judgeExposure({ listenHost, tls: tls(), publicUrl })).toMatchObject({ host: listenHost, publicUrl, scheme: "https" });
    }
    await expect(judgeExposure({ listenHost: "example.com" })).rejects.toMatchObject({ code: "invalid" });
  });

  test("rejects an invalid certificate and a key that does not match", async () => {
    const other = join(certificate.folder(), "other.pem");
    await writeFile(other, generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export({ type: "pkcs8", format: "pem" }));
    for (const files of [
      { certPath: join(certificate.folder(), "none"), keyPath: tls().keyPath },
      { certPath: tls().certPath, keyPath: other },
    ]) {
      await expect(judgeExposure({ listenHost: "127.0.0.1", tls: files })).rejects.toMatchObject({ code: "invalid", hint: /PEM/ });
    }
  });

  test.each(["http://caisson.test", "https://caisson.test/path", "https://user@caisson.test", "caisson.test", ""])(
    "rejects the public URL %j",
    async (url) => {
      await expect(judgeExposure({ listenHost: "127.0.0.1", publicUrl: url })).rejects.toMatchObject({ code: "invalid" });
    },
  );

  test("allows only the proxy to connect, and trusts only its forwarded addresses", async () => {
    const exposure = await judgeExposure({ listenHost: "0.0.0.0", publicUrl, proxies: ["10.0.0.7", "10.1.0.0/16"] });
    const may = ["10.0.0.7", "::ffff:10.0.0.7", "10.1.200.3", "127.0.0.1", "::1", "10.0.0.8", "192.0.2.1", ""].map(exposure.mayConnect);
    expect(may).toEqual([true, true, true, true, true, false, false, false]);
    expect(exposure.callerOf("::ffff:10.0.0.7", "203.0.113.5")).toBe("203.0.113.5");
    expect(exposure.callerOf("10.0.0.7", "6.6.6.6, 203.0.113.5, 10.1.0.9")).toBe("203.0.113.5");
    expect(exposure.callerOf("10.0.0.7", "not an address")).toBe("10.0.0.7");
    expect(exposure.callerOf("10.0.0.7", null)).toBe("10.0.0.7");
    expect(exposure.callerOf("192.0.2.1", "127.0.0.1")).toBe("192.0.2.1");
    for (const proxy of ["proxy.test", "10.0.0.0/0", "10.0.0.0/33", "10.0.0.1/8/8", ""]) {
      await expect(judgeExposure({ listenHost: "0.0.0.0", publicUrl, proxies: [proxy] })).rejects.toMatchObject({ code: "invalid" });
    }
  });
});

describe("a station that other machines reach", () => {
  const { server, start, token } = useServer();

  test("speaks only TLS", async () => {
    await server().close();
    await using again = await start({ tls: tls() });
    expect(again.status.url).toMatch(/^https:\/\/127\.0\.0\.1:/);
    const headers = { authorization: `Bearer ${await token("read")}` };
    const status = await new Promise<number | undefined>((resolve, reject) => {
      request(`${again.status.url}/v1/status`, { ca: certificate.ca(), headers }, (response) => resolve(response.resume().statusCode))
        .on("error", reject)
        .end();
    });
    expect(status).toBe(200);
    await expect(fetch(`${again.status.url.replace("https", "http")}/v1/status`, { headers })).rejects.toThrow();
  });

  test("hangs up on clients that bypass the proxy", async () => {
    const address = Object.values(networkInterfaces())
      .flat()
      .find((each) => each?.family === "IPv4" && !each.internal)?.address;
    await server().close();
    await using again = await start({ listenHost: "0.0.0.0", publicUrl: "https://caisson.test", proxies: ["203.0.113.9"] });
    const { port } = again;
    const headers = { authorization: `Bearer ${await token("read")}` };
    expect((await fetch(`http://127.0.0.1:${port}/v1/status`, { headers })).status).toBe(200);
    // A machine without a network has no other address to connect from.
    if (address !== undefined) await expect(fetch(`http://${address}:${port}/v1/status`, { headers })).rejects.toThrow();
  });
});
