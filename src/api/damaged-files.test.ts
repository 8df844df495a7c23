import { existsSync } from "node:fs";
import { mkdir, open, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { useServer } from "./testing.ts";

const { server, start, post, ask, base, defects } = useServer();
const answers = () => join(base(), "state", "station", "answers.db");
const webhooks = () => join(base(), "state", "webhooks.db");
const hook = { name: "hook", url: "https://hooks.example.test/" };
const keyed = (key: string) => ({ headers: { "idempotency-key": key } });

/** Writes over what SQLite reads first of all pages but the header. */
async function damage(path: string): Promise<void> {
  await using file = await open(path, "r+");
  const { size } = await file.stat();
  await file.write(Buffer.alloc(Math.max(0, size - 100), 0xff), 0, undefined, 100);
}

describe("a damaged database of", () => {
  test("answers is put aside, and requests with a key are answered", async () => {
    await mkdir(join(base(), "state", "station"), { recursive: true });
    await writeFile(answers(), "no database at all, but long enough to be read as the beginning of one. ".repeat(20));
    expect((await post("/v1/sandboxes", {}, keyed("one"))).status).toBe(201);
    expect(await readFile(`${answers()}.damaged`, "utf8")).toMatch(/^no database/);
    expect(defects.map(String)).toEqual([expect.stringContaining("answers.db.damaged")]);
    expect((await post("/v1/sandboxes", {}, keyed("one"))).headers.get("idempotency-replayed")).toBe("true");
  });

  test("answers that is found while it is used is put aside, too", async () => {
    expect((await post("/v1/sandboxes", {}, keyed("one"))).status).toBe(201);
    await server().close();
    await damage(answers());
    await using _again = await start();
    expect((await post("/v1/sandboxes", {}, keyed("two"))).status).toBe(201);
    expect(existsSync(`${answers()}.damaged`)).toBe(true);
  });

  test("webhooks is put aside, and webhooks can be made again", async () => {
    await writeFile(webhooks(), "no database at all, but long enough to be read as the beginning of one. ".repeat(20));
    expect((await post("/v1/webhooks", hook)).status).toBe(201);
    expect(existsSync(`${webhooks()}.damaged`)).toBe(true);
  });
});

describe("a database that cannot be opened", () => {
  test.each([
    ["answers", answers, "/v1/sandboxes", {}],
    ["webhooks", webhooks, "/v1/webhooks", hook],
  ])("of %s is named, and used once it can be", async (_of, path, route, body) => {
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
