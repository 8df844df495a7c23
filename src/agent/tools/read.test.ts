import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { READ_CHARACTERS_MAX } from "./limits.ts";
import { readTool } from "./read.ts";
import { createWorkbench, type Workbench } from "./testing-tools.ts";

describe("read", () => {
  let bench: Workbench;
  beforeAll(async () => {
    bench = await createWorkbench();
  });
  afterAll(() => bench[Symbol.asyncDispose]());
  const read = async (path: string, options: object = {}) => (await bench.use(readTool, { path, ...options })).text;

  test("numbers lines, and continues from an offset with a limit", async () => {
    await bench.put("a.txt", "one\ntwo\nthree\nfour\n");
    expect(await read("a.txt")).toBe("     1\tone\n     2\ttwo\n     3\tthree\n     4\tfour");
    expect(await read("/workspace/a.txt", { offset: 2, limit: 2 })).toBe(
      "     2\ttwo\n     3\tthree\n\n[1 more line; continue with offset 4]",
    );
    expect(await read("a.txt", { offset: 9 })).toBe("(the file has only 4 lines)");
  });

  test("states its limits and obeys them", async () => {
    expect(readTool.description).toMatch(/2000 lines of at most 2000 characters, 100000 characters/);
    await bench.put("many.txt", Array.from({ length: 2500 }, (_, at) => `${at + 1}`).join("\n"));
    expect(await read("many.txt")).toMatch(/\t2000\n\n\[500 more lines; continue with offset 2001\]$/);
    await bench.put("wide.txt", `${"w".repeat(1500)}\n`.repeat(100));
    const wide = await read("wide.txt");
    expect(wide.length).toBeLessThan(READ_CHARACTERS_MAX * 1.1);
    expect(wide).toMatch(/\[33 more lines; continue with offset 68\]$/);
    expect(await read("wide.txt", { offset: 68 })).toMatch(/^ {4}68\tw/);
  });

  test("cuts a line that is too long, and reads on by column to its end", async () => {
    const line = Array.from({ length: 60_000 }, (_, at) => `${at}.`).join("");
    await bench.put("long.txt", `short\n${line}\nlast`);
    const first = await read("long.txt");
    expect(first).toContain(`[the line has ${line.length} characters; continue with offset 2 and column 2001]`);
    expect(first).toMatch(/ {5}3\tlast$/);
    let whole = line.slice(0, 2000);
    for (let column: number | undefined = 2001; column !== undefined; ) {
      const piece = await read("long.txt", { offset: 2, column });
      const more = /\n\n\[\d+ more characters in this line; continue with column (\d+)\]$/.exec(piece);
      whole += more ? piece.slice(0, more.index) : piece;
      column = more ? Number(more[1]) : undefined;
    }
    expect(whole).toBe(line);
    expect(await read("long.txt", { offset: 1, column: 6 })).toBe("(line 1 has only 5 characters)");
  });

  test("reads a file of many megabytes like a small one", async () => {
    await bench.put("big.log", `${"x".repeat(99)}\n`.repeat(300_000));
    expect(await read("big.log", { limit: 1 })).toMatch(/more lines follow; continue with offset 2\]$/);
    expect(await read("big.log", { offset: 299_999 })).toBe(`299999\t${"x".repeat(99)}\n300000\t${"x".repeat(99)}`);
  });

  test("handles empty, CRLF, binary, non-UTF-8 and missing files", async () => {
    await bench.put("empty.txt", "");
    expect(await read("empty.txt")).toBe("(the file is empty)");
    await bench.put("crlf.txt", "a\r\nb\r\n");
    expect(await read("crlf.txt")).toBe("     1\ta\n     2\tb");
    await bench.put("umlaut.txt", "ä".repeat(40_000));
    expect((await read("umlaut.txt", { column: 1 })).replaceAll("ä", "")).toBe("");
    await bench.put("latin.txt", Buffer.from([0x66, 0xfc, 0x72, 10]));
    expect(await read("latin.txt")).toBe("     1\tf\uFFFDr");
    await bench.put("picture.png", Buffer.from([137, 80, 0, 1]));
    await expect(read("picture.png")).rejects.toMatchObject({ code: "invalid", hint: expect.stringContaining("bash") });
    await expect(read("/workspace")).rejects.toMatchObject({ code: "invalid" });
    await expect(read("missing.txt")).rejects.toMatchObject({ code: "not_found" });
  });

  test("rejects invalid arguments", async () => {
    for (const args of [{}, { path: "" }, { path: "a", offset: 0 }, { path: "a", limit: 9999 }, { path: "a", depth: 1 }, { path: 7 }]) {
      expect(readTool.parameters.safeParse(args).success).toBe(false);
    }
  });
});
