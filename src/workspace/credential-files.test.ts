import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { HidingRules } from "../contract/workspace/workspace-guard.ts";
import { withoutFileHandles } from "../lib/testing-lib.ts";
import { findCredentialFiles, searchBounds } from "./credential-files.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "caisson-credentials-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const none: HidingRules = { hide: [], show: [] };
const put = (path: string, text = "") => {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
};
const found = async (rules = none) => (await findCredentialFiles(folder, rules)).paths.sort();
const privateKey = `-----BEGIN ${"RSA PRIVATE"} KEY-----\nMIIE\n`;

describe("files that look like credentials", async () => {
  test.each([
    ...[
      ".env",
      ".env.local",
      "api/.env.production",
      "prod.env",
      "keys/id_rsa",
      "id_ed25519",
      ".netrc",
      ".git-credentials",
      "credentials.json",
    ],
    ...["config/service-account-prod.json", "release.keystore", ".pypirc", ".aws/credentials", ".docker/config.json", ".kube/config"],
  ])("include %s because of the name", async (path) => {
    put(path, "x");
    expect(await found()).toEqual([path]);
  });

  test.each([".env.example", ".env.sample", "example.env", "env.ts", "environment.json", "id_rsa.pub", "README.md", ".envrc"])(
    "do not include %s",
    async (path) => {
      put(path, "x");
      expect(await found()).toEqual([]);
    },
  );

  test("include others because of their content", async () => {
    put("server.pem", privateKey);
    put("ca.pem", "-----BEGIN CERTIFICATE-----\n");
    put("tls.key", `-----BEGIN ${"PRIVATE"} KEY-----\n`);
    put("translation.key", "hello = world");
    put(".npmrc", `//registry.example.com/:_authToken=${"npm"}_123\n`);
    put("packages/a/.npmrc", `save-exact=true\n//registry.example.com/:_authToken=${"$"}{NPM_TOKEN}\n`);
    put("pip.conf", "[global]\nindex-url = https://me:secret@pypi.example/simple\n");
    expect(await found()).toEqual([".npmrc", "pip.conf", "server.pem", "tls.key"]);
  });

  test("include a whole folder of keys, and a link by its name", async () => {
    put(".ssh/config");
    put("real", "x");
    symlinkSync("real", join(folder, ".env"));
    expect(await found()).toEqual([".env", ".ssh"]);
  });

  test("follow the rules: a path matches at the root, a name everywhere", async () => {
    put("a/app.secret");
    put("config/prod.yml");
    put("b/config/prod.yml");
    put(".env");
    put("b/.env");
    expect(await found({ hide: ["*.secret", "config/prod.yml"], show: ["/.env"] })).toEqual(["a/app.secret", "b/.env", "config/prod.yml"]);
    expect(await found({ hide: [".env.example"], show: ["*"] })).toEqual([]);
    put(".env.example");
    expect(await found({ hide: [".env.example"], show: [".env"] })).toEqual([".env.example"]);
  });

  test("are not searched in dependencies, git's own files or deep folders", async () => {
    put("node_modules/x/.env");
    put(".git/.env");
    put("a/b/c/.env");
    put("a/b/c/d/.env");
    expect(await found()).toEqual(["a/b/c/.env"]);
  });

  test("are searched up to a limit, from the root down", async () => {
    for (let index = 0; index < 50; index++) put(`many/f${index}`);
    put("many/deeper/.env");
    put(".env");
    expect(await findCredentialFiles(folder, none, { ...searchBounds, entriesMax: 20 })).toEqual({ paths: [".env"], complete: false });
    expect(await findCredentialFiles(folder, none, { ...searchBounds, timeMaxMs: -1 })).toEqual({ paths: [], complete: false });
    expect(await findCredentialFiles(folder, none)).toMatchObject({ complete: true });
  });

  test("are not found in a missing folder", async () => {
    expect(await findCredentialFiles(join(folder, "absent"), none)).toEqual({ paths: [], complete: true });
  });
});

test("fails instead of showing credentials when too many files are open", async () => {
  put(".env");
  const module = new URL("./credential-files.ts", import.meta.url);
  const call = `own.findCredentialFiles(${JSON.stringify(folder)}, { hide: [], show: [] })`;
  expect(await withoutFileHandles(module, call)).toBe("EMFILE");
});
