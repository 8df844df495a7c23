import { existsSync } from "node:fs";
import { mkdir, open, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { useServer } from "../../test/support/api-station.ts";

const { server, start, post, ask, base, defects } = useServer();
const answers = () => join(base(), "state", "station", "answers.db");
const webhooks = () => join(base(), "state", "webhooks.db");
const hook = { name: "hook", url: "https://hooks.example.test/" };
const keyed = (key: string) => ({ headers: { "idempotency-key": key } });

/** Overwrites everything after the 100-byte SQLite header. */
async function damage(path: string): Promise<void> {
  await using file = await open(path, "r+");
  const { size } = await file.stat();
  await file.write(Buffer.alloc(Math.max(0, size - 100), 0xff), 0, undefined, 100);
}

describe("a damaged database of", () => {
  test("answers is moved aside, and requests with a key still work", async () => {
    await mkdir(join(base(), "state", "station"), { recursive: true });
    await writeFile(answers(), "no database at all, but long enough to be read as the beginning of one. ".repeat(20));
    expect((await post("/v1/sandboxes", {}, keyed("one"))).status).toBe(201);
    expect(await readFile(`${answers()}.damaged`, "utf8")).toMatch(/^no database/);
    expect(defects.map(String)).toEqual([expect.stringContaining("answers.db.damaged")]);
    expect((await post("/v1/sandboxes", {}, keyed("one"))).headers.get("idempotency-replayed")).toBe("true");
  });

  test("answers is moved aside even if the damage is found later", async () => {
    expect((await post("/v1/sandboxes", {}, keyed("one"))).status).toBe(201);
    await server().close();
    await damage(answers());
    await using _again = await start();
    expect((await post("/v1/sandboxes", {}, keyed("two"))).status).toBe(201);
    expect(existsSync(`${answers()}.damaged`)).toBe(true);
  });

  test("webhooks is moved aside, and webhooks can be created again", async () => {
    await writeFile(webhooks(), "no database at all, but long enough to be read as the beginning of one. ".repeat(20));
    expect((await post("/v1/webhooks", hook)).status).toBe(201);
    expect(existsSync(`${webhooks()}.damaged`)).toBe(true);
  });
});

describe("a database that cannot be opened", () => {
  test.each([
    ["answers", answers, "/v1/sandboxes", {}],
    ["webhooks", webhooks, "/v1/webhooks", hook],
  ])("of %s is named in the error, and used as soon as it can be opened", async (_of, path, route, body) => {
    await mkdir(path(), { recursive: true });
    const refused = await post(route, body, keyed("one"));
    expect(refused.status).toBe(503);
    expect(await refused.json()).toMatchObject({ detail: expect.stringContaining(`${path()} cannot be used`), hint: expect.any(String) });
    expect(defects).toEqual([]);
    await rm(path(), { recursive: true });
    expect((await post(route, body, keyed("two"))).status).toBe(201);
    expect((await ask("/v1/webhooks")).status).toBe(200);
  });
});
