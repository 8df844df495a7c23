import { chmod, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { chooseStation, createContexts } from "./contexts.ts";

describe("contexts", () => {
  let configDir: string;
  beforeEach(async () => {
    configDir = join(await mkdtemp(join(tmpdir(), "caisson-contexts-")), "config");
  });
  afterEach(() => rm(join(configDir, ".."), { recursive: true, force: true }));

  const contexts = () => createContexts({ configDir });
  const choose = (options: Partial<Parameters<typeof chooseStation>[0]> = {}) => chooseStation({ configDir, variables: {}, ...options });
  const save = (name: string, url: string, use = false) =>
    contexts().save(name, { url, token: `token-of-${name}`, insecure: false }, { replace: false, use });

  it("stores a token in a file for its user only, and never shows it", async () => {
    await save("build", "https://build.example.org");
    const file = join(configDir, "contexts.json");
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect((await stat(configDir)).mode & 0o777).toBe(0o700);
    expect(await readdir(configDir)).toEqual(["contexts.json"]);
    expect(await readFile(file, "utf8")).toContain("token-of-build");
    expect(JSON.stringify([await contexts().list(), await contexts().show("build")])).not.toContain("token-of");
  });

  it("chooses by --no-station, --context, the variables, then the current context", async () => {
    expect(await choose()).toEqual({ kind: "local" });
    await save("one", "https://one.example.org");
    await save("two", "https://two.example.org");
    await save("three", "https://three.example.org", true);
    const variables = { CAISSON_URL: "http://127.0.0.1:7433", CAISSON_TOKEN: "t", CAISSON_CONTEXT: "two" };
    expect(await choose()).toMatchObject({ url: "https://three.example.org", token: "token-of-three", context: "three" });
    expect(await choose({ variables: { CAISSON_CONTEXT: "two" } })).toMatchObject({ context: "two" });
    expect(await choose({ variables })).toMatchObject({ url: "http://127.0.0.1:7433", token: "t", context: null });
    expect(await choose({ variables, context: "one" })).toMatchObject({ context: "one", token: "token-of-one" });
    expect(await choose({ variables, context: "local" })).toEqual({ kind: "local" });
    expect(await choose({ variables, context: "one", noStation: true })).toEqual({ kind: "none" });
  });

  it("returns to this machine when the current context is removed", async () => {
    await save("one", "https://one.example.org", true);
    await contexts().remove("one");
    expect(await choose()).toEqual({ kind: "local" });
    await expect(choose({ context: "one" })).rejects.toMatchObject({ code: "not_found" });
  });

  it.each([
    ["others may read it", async (file: string) => chmod(file, 0o644)],
    ["its group may write it", async (file: string) => chmod(file, 0o620)],
  ])("rejects the file when %s", async (_, loosen) => {
    await save("one", "https://one.example.org", true);
    await loosen(join(configDir, "contexts.json"));
    await expect(choose()).rejects.toMatchObject({ code: "denied" });
    await expect(contexts().list()).rejects.toMatchObject({ code: "denied" });
    // These choices do not need the file.
    expect(await choose({ noStation: true })).toEqual({ kind: "none" });
    expect(await choose({ variables: { CAISSON_URL: "https://x.example.org" } })).toMatchObject({ kind: "address" });
  });

  it("rejects a damaged file, and anything but a regular file", async () => {
    await save("one", "https://one.example.org");
    const file = join(configDir, "contexts.json");
    await writeFile(file, '{"version":1,"current":null,"contexts":{"one":{"url":7}}}');
    await expect(choose()).rejects.toMatchObject({ code: "invalid" });
    await rm(file);
    await symlink("/dev/zero", file);
    await expect(choose()).rejects.toMatchObject({ code: "invalid" });
  });

  it.each([
    ["http://build.example.org", "denied"],
    ["http://10.0.0.7:7433", "denied"],
    ["http://127.0.0.1.example.org", "denied"],
    ["http://localhost.example.org", "denied"],
    ["ftp://build.example.org", "invalid"],
    ["https://user:password@build.example.org", "invalid"],
    ["https://build.example.org/path", "invalid"],
    ["build.example.org", "invalid"],
  ])("rejects the address %s", async (url, code) => {
    await expect(save("one", url)).rejects.toMatchObject({ code });
    await expect(choose({ variables: { CAISSON_URL: url } })).rejects.toMatchObject({ code });
    expect((await contexts().list()).contexts).toEqual([]);
  });

  it("sends a token unencrypted only to this machine, or with --insecure", async () => {
    await save("loopback", "http://127.8.8.8:1");
    await save("six", "http://[::1]:1");
    await contexts().save("clear", { url: "http://10.0.0.7:7433", insecure: true }, { replace: false, use: false });
    expect(await choose({ context: "clear" })).toMatchObject({ url: "http://10.0.0.7:7433" });
    const variables = { CAISSON_URL: "http://10.0.0.7:7433", CAISSON_INSECURE: "1" };
    expect(await choose({ variables })).toMatchObject({ url: "http://10.0.0.7:7433" });
  });

  it("does not overwrite a context, and reserves the name of this machine", async () => {
    await save("one", "https://one.example.org");
    await expect(save("one", "https://other.example.org")).rejects.toMatchObject({ code: "exists" });
    await expect(save("local", "https://other.example.org")).rejects.toMatchObject({ code: "invalid" });
    await expect(save("../one", "https://other.example.org")).rejects.toMatchObject({ code: "invalid" });
    expect((await contexts().show("one")).url).toBe("https://one.example.org");
  });
});
