import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { makeForgeRepository } from "../../../test/support/forge-repository.ts";
import { type ForgeServer, startForgeServer } from "../../../test/support/forge-server.ts";
import { makeShipRig } from "./testing-pull-requests.ts";

const TOKEN = "canary-token-5647382910";
const files = { "a.txt": "one\n" };
let folder = "";
let server: ForgeServer | undefined;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "caisson-forge-"));
});
afterEach(async () => {
  await server?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

async function start(options: { hash?: "sha256"; hook?: string } = {}): Promise<ForgeServer> {
  const { hash, hook } = options;
  server = await startForgeServer({ kind: "gitea", folder, token: TOKEN, files, ...(hash && { hash }) });
  if (hook !== undefined) {
    const path = join(server.repository.path, "hooks", "pre-receive");
    writeFileSync(path, `#!/bin/sh\n${hook}\n`);
    chmodSync(path, 0o755);
  }
  return server;
}
const rigTo = ({ remote, repository }: ForgeServer, other = repository) =>
  makeShipRig({ target: { forge: "git", remote, token: "TOKEN", allowPrivate: true }, repository: other, token: TOKEN, merge: false });

test("the push event contains the hook's message as one line of plain text", async () => {
  using rig = await rigTo(await start({ hook: `printf 'Thanks.\\033[31m See\\n https://checks.example.com ${TOKEN}\\n'` }));
  await rig.sail();
  expect(rig.state().pushed).toMatchObject({ said: "Thanks. [31m See https://checks.example.com ***" });
});

test("a refused push reports the hook's message", async () => {
  const forge = await start({ hook: "echo 'A title begins with a ticket.'; exit 1" });
  using rig = await rigTo(forge);
  await rig.sail();
  expect(rig.state().failure?.error).toMatchObject({
    code: "conflict",
    message: expect.stringMatching(/pre-receive hook declined; it says: A title begins with a ticket\.$/),
  });
  expect(forge.repository.branches()).toEqual(["main"]);
});

test("rejects a remote with another object format before sending anything", async () => {
  const forge = await start({ hash: "sha256" });
  using rig = await rigTo(forge, makeForgeRepository(folder, "ours", files));
  await rig.sail();
  expect(rig.state().failure).toMatchObject({
    nextAt: null,
    error: { code: "unsupported", message: "the remote is a sha256 repository, but the work started from a sha1 one" },
  });
  expect(forge.requests().map(({ method }) => method)).not.toContain("POST");
});

test("ships sha256 work to a sha256 remote", async () => {
  const forge = await start({ hash: "sha256" });
  using rig = await rigTo(forge);
  await rig.sail();
  expect(rig.state()).toMatchObject({ failure: null, request: { id: expect.any(String) } });
});
