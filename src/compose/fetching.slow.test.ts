import { execFileSync, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type GitServer, startGitServer } from "../../test/support/git-server.ts";
import { useCertificate } from "../api/testing-certificate.ts";
import { Config } from "../contract/config/config.ts";
import { LOCAL_OWNER } from "../contract/token/owner.ts";
import { createMemoryLog } from "../log/memory/log.ts";
import { createLocalSecrets } from "../station/secrets/local-secrets.ts";
import { fetchMirror, mirrorFolder } from "../workspace/git/git-mirror.ts";
import { fetchingFor } from "./local-parts.ts";

const { files, folder: certificates, ca } = useCertificate();
const PASSWORD = "pw-of-somebody-4711";

let base = "";
let stateDir = "";
let closing: (() => Promise<unknown>)[] = [];
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "caisson-test-"));
  stateDir = join(base, "state");
  mkdirSync(stateDir, { mode: 0o700 });
  mkdirSync(join(base, "remotes", "app"), { recursive: true });
  const git = (...args: string[]) =>
    execFileSync("git", ["-c", "user.name=u", "-c", "user.email=u@x", "-C", join(base, "remotes", "app"), ...args]);
  git("init", "-q", "-b", "main");
  git("commit", "-q", "--allow-empty", "-m", "first");
});
afterEach(async () => {
  for (const close of closing.reverse()) await close();
  closing = [];
  rmSync(base, { recursive: true, force: true });
});

const tls = () => ({ cert: readFileSync(files().certPath), key: readFileSync(files().keyPath) });

async function serve(options: { password?: string; clear?: boolean } = {}): Promise<GitServer> {
  const { clear = false, ...more } = options;
  const server = await startGitServer(join(base, "remotes"), { ...more, ...(!clear && { tls: tls() }) });
  closing.push(async () => await server[Symbol.asyncDispose]());
  return server;
}

/** Listens and counts connections. */
async function trap(): Promise<{ port: number; connections: () => number }> {
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    socket.end("SSH-2.0-private\r\n");
  });
  return { port: await listening(server), connections: () => connections };
}

async function listening(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closing.push(() => new Promise((done) => server.close(done)));
  return (server.address() as AddressInfo).port;
}

function fetchFor(owner: string, url: string, { isPrivateHost = false }: { isPrivateHost?: boolean } = {}): Promise<string> {
  const caFile = join(certificates(), "ca.pem");
  writeFileSync(caFile, ca());
  const config = Config.parse({ network: { caFiles: [caFile], privateFetchHosts: isPrivateHost ? ["127.0.0.1"] : [] } });
  return fetchMirror(
    { kind: "git", url, submodules: false },
    {
      stateDir,
      git: { path: process.env.PATH ?? "", home: base },
      log: createMemoryLog(),
      owner,
      access: fetchingFor({ config, stateDir }).open,
      holder: "me",
      holderGone: () => false,
    },
  );
}

const keepSecret = (owner: string, server: GitServer) =>
  createLocalSecrets({ stateDir }).set(
    "MY_GIT",
    { value: PASSWORD, hosts: ["127.0.0.1"], ports: [Number(new URL(server.url).port)] },
    { owner },
  );
const withPassword = { password: `x-access-token:${PASSWORD}` };

describe("a repository named by another owner", () => {
  test("is not fetched from a private address, and the error reveals nothing about it", async () => {
    const { port, connections } = await trap();
    const messages: string[] = [];
    for (const url of [`https://127.0.0.1:${port}/x.git`, "https://127.0.0.1:1/x.git", `https://localhost:${port}/x.git`]) {
      const failure = await fetchFor("ada", url).catch((error: unknown) => error as Error & { code: string });
      expect(failure).toMatchObject({ code: "denied" });
      messages.push((failure as Error).message.replace(/\S+$/, ""));
    }
    expect(new Set(messages).size).toBe(1);
    expect(connections()).toBe(0);
  });

  test("is not fetched through its server's redirects", async () => {
    const { port, connections } = await trap();
    const redirecting = createTlsServer(tls(), (request, response) => {
      response.writeHead(302, { location: `http://127.0.0.1:${port}${request.url}` }).end();
    });
    const at = await listening(redirecting);
    await expect(fetchFor("ada", `https://127.0.0.1:${at}/x.git`, { isPrivateHost: true })).rejects.toMatchObject({ code: "denied" });
    expect(connections()).toBe(0);
  });

  test("is fetched over HTTPS only", async () => {
    const clear = await serve({ clear: true });
    for (const url of [`${clear.url}/app/.git`, `file://${join(base, "remotes/app")}`, "ssh://git@127.0.0.1/x", "git@127.0.0.1:x"])
      await expect(fetchFor("ada", url, { isPrivateHost: true })).rejects.toMatchObject({ code: "denied" });
    expect(clear.requests()).toEqual([]);
  });

  test("is fetched without the passwords of the machine's user", async () => {
    const server = await serve(withPassword);
    writeFileSync(join(base, ".netrc"), `machine 127.0.0.1 login x-access-token password ${PASSWORD}\n`, { mode: 0o600 });
    const url = `${server.url}/app/.git`;
    await expect(fetchFor("ada", url, { isPrivateHost: true })).rejects.toMatchObject({ code: "denied", message: /password/ });
    expect(server.requests().filter(({ authorization }) => authorization !== undefined)).toEqual([]);
    const clear = await serve({ ...withPassword, clear: true });
    expect(existsSync(await fetchFor(LOCAL_OWNER, `${clear.url}/app/.git`))).toBe(true);
  });

  test.each(["ada", LOCAL_OWNER])("is fetched by %s with the password in its address, which no mirror stores", async (owner) => {
    const server = await serve({ ...withPassword, clear: owner === LOCAL_OWNER });
    const address = `${server.url}/app/.git`;
    const url = address.replace("://", `://x-access-token:${PASSWORD}@`);
    const mirror = await fetchFor(owner, url, { isPrivateHost: true });
    expect(execFileSync("git", ["--git-dir", mirror, "log", "--format=%s"], { encoding: "utf8" })).toBe("first\n");
    const settings = () => readFileSync(join(mirror, "config"), "utf8");
    expect(settings()).toContain(address);
    // As an older version left it.
    execFileSync("git", ["--git-dir", mirror, "config", "remote.origin.url", url]);
    execFileSync("git", ["-c", "user.name=u", "-c", "user.email=u@x", "commit", "-q", "--allow-empty", "-m", "second"], {
      cwd: join(base, "remotes", "app"),
    });
    expect(await fetchFor(owner, url, { isPrivateHost: true })).toBe(mirror);
    expect(execFileSync("git", ["--git-dir", mirror, "log", "-1", "--format=%s"], { encoding: "utf8" })).toBe("second\n");
    expect(spawnSync("grep", ["-rlF", PASSWORD, mirror], { encoding: "utf8" })).toMatchObject({ status: 1, stdout: "" });
  });

  test("is fetched with its owner's secret, which other owners cannot use", async () => {
    const server = await serve(withPassword);
    await keepSecret("ada", server);
    const url = `${server.url}/app/.git`;
    const mirror = await fetchFor("ada", url, { isPrivateHost: true });
    expect(execFileSync("git", ["--git-dir", mirror, "log", "--format=%s"], { encoding: "utf8" })).toBe("first\n");
    expect(readFileSync(join(mirror, "config"), "utf8")).not.toContain(PASSWORD);
    // The second fetch reuses the mirror.
    expect(await fetchFor("ada", url, { isPrivateHost: true })).toBe(mirror);
    await expect(fetchFor("bob", url, { isPrivateHost: true })).rejects.toMatchObject({ code: "denied" });
    expect(existsSync(mirrorFolder(stateDir, { url, owner: "bob" }))).toBe(false);
  });
});

test("lets the machine's user clone with a stored secret, even without TLS", async () => {
  const server = await serve({ ...withPassword, clear: true });
  const url = `${server.url}/app/.git`;
  await expect(fetchFor(LOCAL_OWNER, url)).rejects.toMatchObject({ code: "unavailable", hint: /caisson secret set/ });
  await keepSecret(LOCAL_OWNER, server);
  expect(existsSync(await fetchFor(LOCAL_OWNER, url))).toBe(true);
});

test("does not send a secret along with a redirect", async () => {
  let authorizations: unknown[] = [];
  const other = createHttpServer((request, response) => {
    authorizations = [...authorizations, request.headers.authorization];
    response.writeHead(404).end();
  });
  const to = await listening(other);
  const redirecting = createHttpServer((request, response) => {
    response.writeHead(302, { location: `http://127.0.0.1:${to}${request.url}` }).end();
  });
  const at = await listening(redirecting);
  await createLocalSecrets({ stateDir }).set("MY_GIT", { value: PASSWORD, hosts: ["127.0.0.1"], ports: [at] });
  await expect(fetchFor(LOCAL_OWNER, `http://127.0.0.1:${at}/x.git`)).rejects.toThrow();
  expect(authorizations).toEqual([]);
});
