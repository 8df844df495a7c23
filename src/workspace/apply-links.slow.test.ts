import { mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readTree } from "../../test/support/tree-on-disk.ts";
import { type ApplyPlace, change, file, link, makeApplyPlace, recordsLeft, unsafe } from "./testing-apply.ts";

let base = "";
let folder = "";
let apply: ApplyPlace["apply"];
beforeEach(() => {
  ({ base, folder, apply } = makeApplyPlace());
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

describe("applying refuses", () => {
  test("links that lead outside or into git, and applies nothing else", async () => {
    for (const target of ["/etc/passwd", "../out", "a/../../out", ".git/config", "d/.GIT/hooks", "git~1/config", "d/../.git./x"]) {
      await unsafe(apply([change("ok", null, file("x")), change("l", null, link(target))]));
      expect(readdirSync(folder)).toEqual([]);
    }
    await apply([change("d/l", null, link("../ok"))]);
  });

  test("links that lead outside through a new or an existing link", async () => {
    const up = change("a/b/c/l", null, link("../../.."));
    const out = change("m", null, link("a/b/c/l/../outside.txt"));
    await unsafe(apply([up, out]));
    await unsafe(apply([out, change("a/b/c/l", null, link("../../../a/.."))]));
    expect(readdirSync(folder)).toEqual([]);
    await apply([up]);
    await unsafe(apply([out]));
    symlinkSync("/etc", join(folder, "mine"));
    await unsafe(apply([change("n", null, link("mine/passwd"))]));
    await unsafe(apply([change("n", null, link("a/b/c/l/mine/passwd"))]));
    expect((await apply([change("n", null, link("a/b/c/l/a/b"))])).applied).toEqual(["n"]);
  });

  test("changes that make an existing link lead outside", async () => {
    await apply([change("m", null, link("deep/er/l/../x"))]);
    await unsafe(apply([change("deep/er/l", null, link("../.."))]));
    await apply([change("deep/er/l", null, link("../../y"))]);
    symlinkSync("deep/er/f", join(folder, "short"));
    await unsafe(apply([change("u", null, link("short/../../../../x"))]));
    await apply([change("u", null, link("short/../../../x"))]);
    // `short` points two levels deeper than its own folder.
    await unsafe(apply([change("short", link("deep/er/f"), null)]));
    await unsafe(apply([change("short", link("deep/er/f"), link("deep"))]));
    await unsafe(apply([change("short", link("deep/er/f"), file("x"))]));
    await unsafe(apply([change("short", link("deep/er/f"), null), change("short/x", null, file("x"))]));
    await apply([change("short", link("deep/er/f"), link("deep/er/g"))]);
  });

  test.runIf(process.platform === "linux")("to redirect a link whose name is not UTF-8", async () => {
    const name = Buffer.concat([Buffer.from(`${folder}/`), Buffer.from([0xff])]);
    symlinkSync("deep/../x", name);
    await unsafe(apply([change("deep", null, link("."))]));
    expect(readdirSync(folder, "buffer")).toEqual([Buffer.from([0xff])]);
  });

  test("to write through one of the user's links", async () => {
    mkdirSync(join(base, "elsewhere"));
    symlinkSync(join(base, "elsewhere"), join(folder, "d"));
    await unsafe(apply([change("d/x", null, file("x"))]));
    expect(readdirSync(join(base, "elsewhere"))).toEqual([]);
    await apply([change("d", link(join(base, "elsewhere")), null), change("d/x", null, file("x"))]);
    expect(readTree(folder)).toEqual({ "d/x": "file 644 x" });
    expect(readdirSync(join(base, "elsewhere"))).toEqual([]);
  });

  test("to follow a folder that becomes a link between two steps, and rolls back", async () => {
    const files = (place: string) => {
      for (const name of ["d/same", "d/gone", "d/sub/gone", "d/sub/moved"]) {
        mkdirSync(join(place, name, ".."), { recursive: true });
        writeFileSync(join(place, name), "1");
      }
    };
    files(join(base, "victim"));
    const changes = [
      change("d/same", file("1"), file("2")),
      change("d/made/new", null, file("2")),
      change("d/gone", file("1"), null),
      change("d/sub/gone", file("1"), null),
      change("d/to", file("1"), file("1"), { from: "d/sub/moved" }),
    ];
    const before = readTree(join(base, "victim"));
    const run = async (at: number) => {
      rmSync(folder, { recursive: true, force: true });
      files(folder);
      let steps = 0;
      const swap = () => {
        if (steps++ !== at) return;
        renameSync(join(folder, "d"), join(folder, "aside"));
        symlinkSync("../victim/d", join(folder, "d"));
      };
      await apply(changes, { crashpoint: swap }).catch((error: unknown) => expect(error).toMatchObject({ code: "unsafe" }));
      return steps;
    };
    const last = (await run(-1)) - 1;
    expect(last).toBeGreaterThan(8);
    for (let at = 0; at < last; at++) {
      await run(at);
      expect(readTree(join(base, "victim")), `exchanged before step ${at}`).toEqual(before);
      // After the link is removed, the next apply restores what this one could not.
      rmSync(join(folder, "d"));
      renameSync(join(folder, "aside"), join(folder, "d"));
      await apply([]);
      expect(readdirSync(folder)).toEqual(["d"]);
      if (at < last - 1) expect(readTree(folder), `exchanged before step ${at}`).toEqual(before);
      expect(recordsLeft(base)).toEqual([]);
    }
  });
});

test("applies everything except the paths left out by name", async () => {
  const changes = [change("ok", null, file("x")), change("bad", null, link("/etc/passwd")), change("d/a", null, file("y"))];
  await unsafe(apply(changes));
  await expect(apply(changes, { leaveOut: ["nothing"] })).rejects.toMatchObject({ code: "invalid" });
  expect((await apply(changes, { leaveOut: ["bad", "d/"] })).applied).toEqual(["ok"]);
  expect(readdirSync(folder)).toEqual(["ok"]);
});
