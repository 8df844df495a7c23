import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { filesWith, textWith } from "./canary.ts";

const value = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";

test("finds a value in every common encoding", () => {
  const base64 = (text: string) => Buffer.from(text).toString("base64");
  const texts = [value, `x${value}y`, base64(value), base64(`x-access-token:${value}`), base64(`u:${value}`), base64(`ab:${value}!`)];
  for (const text of [...texts, Buffer.from(value).toString("hex"), Buffer.from(`a?${value}`).toString("base64url")]) {
    expect(textWith(text, value), text).not.toEqual([]);
  }
  expect(textWith(base64("ghp_another56789abcdefghijklmnopqrstuvwxyz"), value)).toEqual([]);
  expect(textWith(value.slice(0, 30), value)).toEqual([]);
});

test("finds a value in files of any kind", () => {
  const folder = mkdtempSync(join(tmpdir(), "caisson-test-"));
  try {
    mkdirSync(join(folder, "a/b"), { recursive: true });
    writeFileSync(join(folder, "a/b/c"), Buffer.concat([Buffer.alloc(100_000), Buffer.from(value)]));
    writeFileSync(join(folder, "a/d"), "nothing");
    expect(filesWith(folder, value)).toEqual([join(folder, "a/b/c")]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
