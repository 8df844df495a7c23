import { execFileSync } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { useCertificate } from "../../src/api/testing-certificate.ts";
import { type GitServer, startGitServer } from "../support/git-server.ts";
import { useCaisson } from "./caisson-process.ts";

const PASSWORD = "pw-of-somebody-4711";
const STATION_PASSWORD = "pw-of-the-station-0815";

const { run: runThere, base } = useCaisson();
const { files, folder: certificates, ca } = useCertificate();
let git: GitServer;
let [url, ada] = ["", ""];
const here = () => join(base(), "..", "here");

/** Runs a command as ada, who has a token with the scope `run` and a separate machine. */
const run = (args: readonly string[], input = "") =>
  runThere(args, {
    cwd: here(),
    input,
    env: {
      CAISSON_HOME: join(here(), "state"),
      HOME: here(),
      XDG_CONFIG_HOME: join(here(), "config"),
      CAISSON_URL: url,
      CAISSON_TOKEN: ada,
    },
  });
const runOf = (repository: string) => run(["run", "--model", "scripted:demo", "--repo", repository, "say so"]);
const repository = () => `${git.url}/app/.git`;
const authorizations = () => git.requests().flatMap(({ authorization }) => authorization ?? []);

beforeAll(async () => {
  const home = join(base(), "station-home");
  const app = join(base(), "remotes", "app");
  for (const folder of [home, app, here()]) await mkdir(folder, { recursive: true });
  const inApp = (...args: string[]) => execFileSync("git", ["-c", "user.name=u", "-c", "user.email=u@x", "-C", app, ...args]);
  inApp("init", "-q", "-b", "main");
  await writeFile(join(app, "price.sh"), "echo 1\n");
  inApp("add", ".");
  inApp("commit", "-q", "-m", "first");
  const [cert, key, caFile] = [await readFile(files().certPath), await readFile(files().keyPath), join(certificates(), "ca.pem")];
  await writeFile(caFile, ca());
  git = await startGitServer(join(base(), "remotes"), { tls: { cert, key }, password: `x-access-token:${PASSWORD}` });
  // The station's user has a password for this host, which ada must not use.
  await writeFile(join(home, ".netrc"), `machine 127.0.0.1 login x-access-token password ${STATION_PASSWORD}\n`, { mode: 0o600 });
  const config = { network: { caFiles: [caFile], privateFetchHosts: ["127.0.0.1"] } };
  await mkdir(join(base(), "config", "caisson"), { recursive: true });
  await writeFile(join(base(), "config", "caisson", "config.json"), JSON.stringify(config), { mode: 0o600 });
  const env = { HOME: home, XDG_CONFIG_HOME: join(base(), "config") };
  const up = await runThere(["up", "--detach", "--port", "0", "--json"], { env });
  expect(up.code, up.stderr).toBe(0);
  ({ url } = JSON.parse(up.text));
  ada = JSON.parse((await runThere(["token", "create", "adas", "--scope", "run", "--owner", "ada", "--json"], { env })).text).token;
});
afterAll(async () => {
  await runThere(["down"]);
  await git[Symbol.asyncDispose]();
});

test("a run token cannot make the station connect to a private address", async () => {
  let connections = 0;
  const trap: Server = createServer((socket) => {
    connections += 1;
    socket.destroy();
  });
  // Here the station may fetch for its owners from 127.0.0.1, and from no other address of the machine.
  await new Promise<void>((resolve) => trap.listen(0, "127.0.0.2", resolve));
  const { port } = trap.address() as { port: number };
  const { code, stderr, text } = await runOf(`https://127.0.0.2:${port}/x.git`);
  await new Promise((resolve) => trap.close(resolve));
  expect(connections).toBe(0);
  expect(code, stderr).not.toBe(0);
  expect(text + stderr).toMatch(/the station does not fetch from the address of/);
});

test("a clone for an owner never uses a password of the station's user", async () => {
  const { code, stderr, text } = await runOf(repository());
  expect(code, stderr).not.toBe(0);
  expect(text).toMatch(/requires another password for this repository/);
  expect(authorizations()).toEqual([]);
});

test("a clone uses the owner's secret for the host", async () => {
  const result = await run(["secret", "set", `GIT@127.0.0.1;ports=${new URL(git.url).port}`], PASSWORD);
  expect(result.code, result.stderr).toBe(0);
  const { code, stderr, text } = await runOf(repository());
  expect(code, stderr + text).toBe(0);
  const sent = authorizations().map((each) => Buffer.from(each.slice("Basic ".length), "base64").toString());
  expect(new Set(sent)).toEqual(new Set([`x-access-token:${PASSWORD}`]));
});
