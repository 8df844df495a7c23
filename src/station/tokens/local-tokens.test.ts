import { chmodSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { withoutFileHandles } from "../../lib/testing-lib.ts";
import { createLocalTokens } from "./local-tokens.ts";

let stateDir = "";
let time = 0;
const tokens = () => createLocalTokens({ stateDir, now: () => time });
const file = (name: string) => join(stateDir, "tokens", name);

beforeEach(async () => {
  stateDir = await mkdtemp(join(tmpdir(), "caisson-test-tokens-"));
  time = Date.parse("2030-01-01T00:00:00Z");
});
afterEach(() => rm(stateDir, { recursive: true, force: true }));

describe("tokens", () => {
  test("are valid in any process, and stored only as a hash", async () => {
    const { token, ...view } = await tokens().create({ name: "ci", scope: "read" });
    expect(view).toMatchObject({ name: "ci", scope: "read", expiresAt: null });
    expect(await tokens().authenticate(token)).toEqual(view);
    expect(await tokens().list()).toEqual([view]);
    const name = `${view.id}.json`;
    expect(readFileSync(file(name), "utf8")).not.toContain(token.slice(token.lastIndexOf("_") + 1));
    expect(statSync(file(name)).mode & 0o777).toBe(0o600);
  });

  test("are invalid once they expire or are revoked, by name or id", async () => {
    const brief = await tokens().create({ name: "brief", expiresInMs: 60_000 });
    const lasting = await tokens().create({ name: "lasting" });
    time += 60_000;
    expect(await tokens().authenticate(brief.token)).toBeNull();
    expect(await tokens().authenticate(lasting.token)).not.toBeNull();
    await tokens().revoke("lasting");
    expect(await tokens().authenticate(lasting.token)).toBeNull();
    await tokens().revoke(brief.id);
    expect(await tokens().list()).toEqual([]);
    await expect(tokens().revoke("lasting")).rejects.toMatchObject({ code: "not_found" });
  });

  test("get a new secret by rotation; the old one is valid for the grace period", async () => {
    const first = await tokens().create({ name: "ci", scope: "read", expiresInMs: 3_600_000 });
    const second = await tokens().rotate("ci", { graceMs: 60_000 });
    expect({ ...second, token: "" }).toEqual({ ...first, token: "" });
    const known = async () => Promise.all([first, second].map(async ({ token }) => (await tokens().authenticate(token)) !== null));
    expect(await known()).toEqual([true, true]);
    time += 60_000;
    expect(await known()).toEqual([false, true]);
    const third = await tokens().rotate(first.id);
    expect(await known()).toEqual([false, false]);
    expect(await tokens().authenticate(third.token)).toMatchObject({ name: "ci" });
    time += 3_600_000;
    expect(await tokens().authenticate(third.token)).toBeNull();
    await expect(tokens().rotate("missing")).rejects.toMatchObject({ code: "not_found" });
    await expect(tokens().rotate("ci", { graceMs: -1 })).rejects.toMatchObject({ code: "invalid" });
  });

  test("rotated by several callers at once get one secret, and the others fail", async () => {
    const { id } = await tokens().create({ name: "ci" });
    const rotated = await Promise.allSettled(Array.from({ length: 5 }, () => tokens().rotate("ci")));
    const won = rotated.flatMap((each) => (each.status === "fulfilled" ? [each.value.token] : []));
    const lost = rotated.flatMap((each) => (each.status === "rejected" ? [each.reason as unknown] : []));
    expect(won).toHaveLength(1);
    expect(lost).toEqual(Array.from({ length: 4 }, () => expect.objectContaining({ code: "conflict", hint: expect.any(String) })));
    expect(await tokens().authenticate(won[0] ?? "")).toMatchObject({ name: "ci" });
    expect(readdirSync(file("")).sort()).toEqual([".lock", `${id}.json`]);
    expect(await tokens().authenticate((await tokens().rotate("ci")).token)).not.toBeNull();
  });

  test("revoked during a rotation stay revoked", async () => {
    const { id } = await tokens().create({ name: "ci" });
    let isRevoked = false;
    // The rotation reads the time after it has read the token.
    const now = () => {
      if (!isRevoked) rmSync(file(`${id}.json`));
      isRevoked = true;
      return time;
    };
    await expect(createLocalTokens({ stateDir, now }).rotate("ci", { graceMs: 1 })).rejects.toMatchObject({ code: "conflict" });
    expect(await tokens().list()).toEqual([]);
  });

  test.each(["", "_", "x", "tok_aaaaaaaaaaaa_", "../../etc/passwd_x", "tok_aaaaaaaaaaaa_wrong"])("%j is not a token", async (text) => {
    await tokens().create({ name: "ci" });
    expect(await tokens().authenticate(text)).toBeNull();
  });

  test("with another token's secret are invalid", async () => {
    const [one, other] = [await tokens().create({ name: "one" }), await tokens().create({ name: "other" })];
    expect(await tokens().authenticate(`${one.id}_${other.token.split("_").at(-1)}`)).toBeNull();
  });

  test("are invalid if damaged or if other users could have written them", async () => {
    const { token, id } = await tokens().create({ name: "ci" });
    chmodSync(file(`${id}.json`), 0o620);
    expect(await tokens().authenticate(token)).toBeNull();
    chmodSync(file(`${id}.json`), 0o600);
    expect(await tokens().authenticate(token)).not.toBeNull();
    writeFileSync(file(`${id}.json`), "{");
    expect(await tokens().authenticate(token)).toBeNull();
    expect(await tokens().list()).toEqual([]);
  });

  test("need a unique name and an existing scope", async () => {
    await tokens().create({ name: "ci" });
    await expect(tokens().create({ name: "ci" })).rejects.toMatchObject({ code: "exists" });
    await expect(tokens().create({ name: "../x" })).rejects.toMatchObject({ code: "invalid" });
    await expect(tokens().create({ name: "x", scope: "root" as never })).rejects.toMatchObject({ code: "invalid" });
  });
});

test("does not report a token as missing when too many files are open", async () => {
  await tokens().create({ name: "ci", scope: "read" });
  const module = new URL("./local-tokens.ts", import.meta.url);
  const call = `own.createLocalTokens({ stateDir: ${JSON.stringify(stateDir)} }).list()`;
  expect(await withoutFileHandles(module, call)).toBe("EMFILE");
});
