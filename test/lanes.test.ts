import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "..");
const script = readFileSync(join(root, "scripts/test"), "utf8");

test("end-to-end tests that go beside the others are there, and share nothing with them", () => {
  const list = /^waiting_files=\((.*?)^\)/ms.exec(script)?.[1] ?? "";
  const files = execFileSync("bash", ["-c", `printf '%s\\n' ${list.replaceAll("\n", " ")}`], { encoding: "utf8" })
    .trim()
    .split("\n");
  expect(files.length).toBeGreaterThan(5);
  for (const file of files) {
    const text = readFileSync(join(root, file), "utf8");
    expect([file, text.match(/\b(ordinaryUser|useDockerEngine|cpuMs)\b/g)]).toEqual([file, null]);
  }
});
