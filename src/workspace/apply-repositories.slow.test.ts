import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Change } from "./change.ts";
import { type ApplyPlace, change, file, link, makeApplyPlace, unsafe } from "./testing-apply.ts";

let base = "";
let folder = "";
let apply: ApplyPlace["apply"];
let put: ApplyPlace["put"];
beforeEach(() => {
  ({ base, folder, apply, put } = makeApplyPlace());
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

describe("applying refuses", () => {
  test("a repository not named .git", async () => {
    const planted = ["lib/HEAD", "lib/config", "lib/objects/x", "lib/refs/x"].map((path) => change(path, null, file("x")));
    const result = await apply([...planted, change("libs/HEAD", null, file("a heading"))]);
    expect(result.applied).toEqual(["libs/HEAD"]);
    expect(result.skipped.map(({ path }) => path)).toEqual(["lib/HEAD", "lib/config", "lib/objects/x", "lib/refs/x"]);
    put("two/objects/x", "x");
    put("two/refs/x", "x");
    expect((await apply([change("two/HEAD", null, file("x"))])).applied).toEqual([]);
  });

  const parts = ["HEAD", "config", "objects/k", "refs/k"];
  const orders = parts.flatMap((_, at) => [
    [...parts.slice(at), ...parts.slice(0, at)],
    [...parts.slice(at), ...parts.slice(0, at)].reverse(),
  ]);
  test.each(orders.map((order) => [order.join(" "), order] as const))("a repository created in several steps: %s", async (_, order) => {
    for (const part of order) await apply([change(`sub/${part}`, null, file("x"))]);
    expect(order.filter((part) => existsSync(join(folder, "sub", part)))).not.toEqual(
      expect.arrayContaining(["HEAD", "objects/k", "refs/k"]),
    );
  });

  test("a repository with links, parts of work trees, other case, moves or removals", async () => {
    const applied = async (...changes: Change[]) => (await apply(changes)).applied;
    await apply([change("objs/x", null, file("x")), change("r/HEAD", null, file("x")), change("r/refs", null, link("../objs"))]);
    expect(await applied(change("r/objects", null, link("../objs")))).toEqual([]);
    await apply([change("w/commondir", null, file("../objs"))]);
    expect(await applied(change("w/HEAD", null, file("x")))).toEqual([]);
    await apply([change("HEAD", null, file("x")), change("objects/x", null, file("x"))]);
    expect(await applied(change("refs/x", null, file("x")))).toEqual([]);
    expect(
      await applied(change("c/head", null, file("x")), change("c/Objects/x", null, file("x")), change("c/REFS/x", null, file("x"))),
    ).toEqual([]);
    put("v/refs/x", "x");
    put("v/HEAD", "x");
    put("elsewhere", "moved");
    expect(await applied(change("v/objects", file("moved"), file("moved"), { from: "elsewhere" }))).toEqual([]);
    put("mine.git/HEAD", "x");
    put("mine.git/objects/x", "x");
    put("mine.git/refs/x", "x");
    expect(await applied(change("mine.git/config", null, file("[core]\nfsmonitor=x\n")), change("ok", null, file("x")))).toEqual(["ok"]);
    await unsafe(apply([change("mine.git/config", null, file("x"))], { paths: ["mine.git/config"] }));
  });
});
