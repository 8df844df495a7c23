import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { good, line } from "../cli/terminal/line.ts";
import { createOutput } from "../cli/terminal/output.ts";
import { createPager, pagerCommand } from "./pager.ts";

describe("the choice of pager", () => {
  const path = "/usr/bin:/bin";
  test.each([
    [{ CAISSON_PAGER: "most -s", PAGER: "more" }, ["most", "-s"]],
    [{ PAGER: "more" }, ["more"]],
    [{ CAISSON_PAGER: "", PAGER: "more" }, []],
    [{ PAGER: "cat" }, []],
    [{ PAGER: "more", TERM: "dumb" }, []],
  ])("%j: %j", (variables, words) => expect(pagerCommand(variables, path)).toEqual(words));

  test("is less if it is installed", () => expect(pagerCommand({}, "/nowhere")).toEqual([]));
});

describe("a pager", () => {
  let folder = "";
  let fd = -1;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "caisson-test-"));
    fd = openSync(join(folder, "screen"), "a");
  });
  afterEach(async () => {
    closeSync(fd);
    await rm(folder, { recursive: true, force: true });
  });
  const screen = () => readFileSync(join(folder, "screen"), "utf8");
  const terminal = { getWindowSize: () => [100, 30], on() {}, off() {} } as never;
  /** Creates a pager that runs this script, with a file as the terminal. */
  const paged = (script: string, options: { terminal?: null } = {}) => {
    writeFileSync(join(folder, "pager.mjs"), script);
    const output = createOutput({ fd, terminal: options.terminal === null ? null : terminal });
    const variables = { CAISSON_PAGER: `${process.execPath} ${join(folder, "pager.mjs")}`, PATH: process.env.PATH ?? "" };
    return createPager({ stdout: output, stderr: output, variables, path: "" });
  };
  const copies = `import { writeFileSync, readFileSync } from "node:fs"; writeFileSync(new URL("read", import.meta.url), readFileSync(0));`;

  test("gets the whole text in color, with control sequences escaped", async () => {
    const pager = paged(copies);
    const output = await pager.open();
    for (let index = 0; index < 2_000; index++) await output.print(good(`line ${index} \x1b]0;title\x07`));
    await pager.close();
    const read = readFileSync(join(folder, "read"), "utf8");
    expect(read.split("\n")).toHaveLength(2_001);
    expect(read).toContain("\x1b[32mline 1999 ");
    expect(read).not.toContain("\x1b]0;");
    expect(screen()).toBe("");
  });

  test("can exit early without an error or a wait", async () => {
    const pager = paged("process.exit(0)");
    const output = await pager.open();
    for (let index = 0; index < 5_000; index++) await output.print(line`${"x".repeat(200)}`);
    await output.broken;
    await pager.close();
    expect(screen()).toBe("");
  });

  test("is not used for a file or a pipe", async () => {
    const pager = paged(copies, { terminal: null });
    await (await pager.open()).print(line`plain`);
    await pager.close();
    expect(screen()).toBe("plain\n");
  });

  test("is skipped with a notice if it is not installed", async () => {
    const output = createOutput({ fd, terminal });
    const pager = createPager({ stdout: output, stderr: output, variables: { PAGER: "no-such-pager" }, path: "" });
    await (await pager.open()).print(line`plain`);
    await pager.close();
    expect(screen()).toBe("caisson: the pager no-such-pager cannot be started: no such program\nplain\n");
  });
});
