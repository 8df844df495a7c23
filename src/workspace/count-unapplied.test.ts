import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { countUnapplied } from "./count-unapplied.ts";

let base = "";
beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), "caisson-count-"));
  for (const name of ["lower", "layer"]) await mkdir(join(base, name));
});
afterEach(async () => await rm(base, { recursive: true, force: true }));
const put = async (path: string, text: string) => {
  await mkdir(join(base, path, ".."), { recursive: true });
  await writeFile(join(base, path), text);
};
const count = () => countUnapplied({ lower: join(base, "lower"), layers: [join(base, "layer")] });

test("counts files that are new, changed or of another mode or kind", async () => {
  for (const name of ["same", "other", "mode", "link"]) await put(`lower/${name}`, "one");
  await put("layer/same", "one");
  await put("layer/other", "two");
  await put("layer/mode", "one");
  await chmod(join(base, "layer/mode"), 0o755);
  await symlink("one", join(base, "layer/link"));
  await put("layer/deep/new", "new");
  await put("layer/.git/config", "no");
  expect(await count()).toEqual({ files: 4, isMinimum: false });
  await put("lower/.gitignore", "deep/\nother\n");
  expect(await count()).toEqual({ files: 3, isMinimum: false });
});

test("does not follow links in the layer, and stops counting at a limit", async () => {
  await mkdir(join(base, "outside"));
  for (let n = 0; n < 5; n++) await put(`outside/${n}`, "");
  await symlink(join(base, "outside"), join(base, "layer/folder"));
  expect(await count()).toEqual({ files: 1, isMinimum: false });
  for (let n = 0; n < 1100; n++) await writeFile(join(base, "layer", String(n)), "");
  expect(await count()).toEqual({ files: 1000, isMinimum: true });
  await rm(join(base, "layer"), { recursive: true });
  expect(await count()).toBeNull();
});
