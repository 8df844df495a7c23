import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openLogFile } from "./log-file.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "caisson-test-log-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

describe("a log file", () => {
  test("is rotated within its bounds, without losing lines in between", () => {
    const path = join(folder, "station.log");
    using file = openLogFile(path, { bytesMax: 100, formerMax: 2 });
    for (let index = 0; index < 50; index++) file.write(`line ${String(index).padStart(3, "0")}\n`);
    expect(readdirSync(folder).sort()).toEqual(["station.log", "station.log.1", "station.log.2"]);
    const lines = ["station.log.2", "station.log.1", "station.log"].flatMap((name) =>
      readFileSync(join(folder, name), "utf8").trim().split("\n"),
    );
    expect(lines.at(-1)).toBe("line 049");
    expect(lines).toEqual(lines.map((_, index) => `line ${String(50 - lines.length + index).padStart(3, "0")}`));
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(statSync(path).size).toBeLessThanOrEqual(110);
  });

  test("keeps lines that another process appends before a rotation", () => {
    const path = join(folder, "station.log");
    using file = openLogFile(path, { bytesMax: 10, formerMax: 1 });
    file.write("0123456789\n");
    appendFileSync(path, "theirs\n");
    file.write("ours\n");
    expect(readFileSync(`${path}.1`, "utf8")).toBe("0123456789\ntheirs\n");
    expect(readFileSync(path, "utf8")).toBe("ours\n");
  });
});
