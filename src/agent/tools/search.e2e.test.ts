import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import { grepTool } from "./search.ts";
import { createWorkbench, type Workbench } from "./testing-tools.ts";

describe.each(["ripgrep", "plain grep"])("grep with %s", (which) => {
  let bench: Workbench;
  let path: string;
  beforeAll(async () => {
    path = await mkdtemp(join(tmpdir(), "caisson-test-path-"));
    bench = await createWorkbench({ real: true });
    await bench.put("src/a.ts", "const one = 1;\nconst Two = 2;\n");
    await bench.put("src/deep/b.md", "# one\n");
    await bench.put(".hidden/c.ts", "one hidden\n");
    await bench.put("node_modules/x/d.ts", "one dependency\n");
    await bench.put(".git/config", "one config\n");
    await bench.put("bin.dat", Buffer.from([0, 111, 110, 101]));
    await bench.put("odd name: 3:x.txt", "colon\n");
    await bench.put("big.txt", Buffer.alloc(11 * 1024 * 1024, "huge\n"));
  });
  afterAll(async () => {
    await bench[Symbol.asyncDispose]();
    await rm(path, { recursive: true });
  });
  const grep = async (args: object) => {
    const context = bench.context();
    if (which === "plain grep") context.sandbox = withoutRipgrep(context.sandbox, path);
    return await bench.use(grepTool, args, context);
  };

  test("returns path, line and text, and skips build and dependency folders", async () => {
    expect((await grep({ pattern: "one" })).text).toBe(".hidden/c.ts:1:one hidden\nsrc/a.ts:1:const one = 1;\nsrc/deep/b.md:1:# one");
    expect((await grep({ pattern: "^const T\\w+", path: "src" })).text).toBe("src/a.ts:2:const Two = 2;");
    expect((await grep({ pattern: "two", ignore_case: true })).text).toBe("src/a.ts:2:const Two = 2;");
    expect((await grep({ pattern: "one|zwei", path: "/workspace/src/deep/b.md" })).text).toBe("src/deep/b.md:1:# one");
    expect((await grep({ pattern: "colon" })).text).toContain("colon");
    expect((await grep({ pattern: "huge" })).text).toBe("No line matches.");
  });

  test("filters by name or path", async () => {
    expect((await grep({ pattern: "one", include: "*.md" })).text).toBe("src/deep/b.md:1:# one");
    expect((await grep({ pattern: "one", include: "*.{md,txt}" })).text).toBe("src/deep/b.md:1:# one");
    expect((await grep({ pattern: "one", include: "src/**/*.ts" })).text).toBe("src/a.ts:1:const one = 1;");
  });

  test("tells a malformed expression from a missing path and from no match", async () => {
    expect(await grep({ pattern: "(" })).toMatchObject({ outcome: "error", text: expect.stringMatching(/grep failed: .*\(/s) });
    expect(await grep({ pattern: "x", path: "nowhere" })).toMatchObject({
      outcome: "error",
      text: expect.stringContaining("does not exist"),
    });
    expect(await grep({ pattern: "no such text anywhere" })).toMatchObject({ outcome: "ok", text: "No line matches." });
    expect(await grep({ pattern: "-e", path: "src" })).toMatchObject({ outcome: "ok" });
  });

  test("shows at most 100 matches, and cuts long lines", async () => {
    await bench.put("many.txt", "match\n".repeat(150));
    await bench.put("wide.txt", `needle ${"w".repeat(5000)}\n`);
    const many = (await grep({ pattern: "match", path: "many.txt" })).text.split("\n");
    expect(many.filter((line) => line.startsWith("many.txt:"))).toHaveLength(100);
    expect(many.at(-1)).toContain("more than 100 matches");
    const wide = (await grep({ pattern: "needle" })).text;
    expect(wide).toContain("wide.txt:1:needle www");
    expect(wide.length).toBeLessThan(2200);
  });
});

/** Returns the same sandbox with a PATH without rg. */
function withoutRipgrep(sandbox: Sandbox, folder: string): Sandbox {
  const script = 'for each in find grep; do ln -sf "$(command -v $each)" "$1"; done';
  return {
    ...sandbox,
    async spawn(options) {
      await (await sandbox.spawn({ argv: ["/bin/sh", "-c", script, "sh", folder] })).ended;
      return await sandbox.spawn({ ...options, env: { ...options.env, PATH: folder } });
    },
  };
}
