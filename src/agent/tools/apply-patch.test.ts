import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { tries } from "../../../test/support/thorough.ts";
import { applyHunks } from "./apply-hunks.ts";
import { applyPatchTool } from "./apply-patch.ts";
import { parsePatch } from "./patch-format.ts";
import { createWorkbench } from "./testing-tools.ts";

const envelope = (...lines: string[]) => ["*** Begin Patch", ...lines, "*** End Patch"].join("\n");

async function apply(files: Record<string, string>, patch: string): Promise<Record<string, string> & { text?: never }> {
  await using bench = await createWorkbench();
  for (const [path, text] of Object.entries(files)) await bench.put(path, text);
  await bench.use(applyPatchTool, { patch });
  const { entries } = await bench.sandbox.list("/workspace", { depth: 9 });
  const found = entries.filter((entry) => entry.kind === "file").map(async ({ name }) => [name, await bench.read(name)] as const);
  return Object.fromEntries(await Promise.all(found));
}

describe("apply_patch with its own format", () => {
  test("adds, updates, moves and deletes in one patch", async () => {
    const patch = envelope(
      "*** Add File: new.txt",
      "+hello",
      "+",
      "+world",
      "*** Update File: a.ts",
      "@@",
      " one",
      "-two",
      "+2",
      "*** Update File: old/name.ts",
      "*** Move to: new/name.ts",
      "@@",
      "-x",
      "+y",
      "*** Delete File: gone.txt",
    );
    expect(await apply({ "a.ts": "one\ntwo\nthree\n", "old/name.ts": "x\n", "gone.txt": "" }, patch)).toEqual({
      "new.txt": "hello\n\nworld\n",
      "a.ts": "one\n2\nthree\n",
      "new/name.ts": "y\n",
    });
  });

  test("finds hunks below anchors, in sequence, and at the end of the file", () => {
    const text = "class A\n  run()\n    x\nclass B\n  run()\n    x\nclass C\n  x\nend\nx\n";
    const hunks = (...lines: string[]) => {
      const [patch] = parsePatch(envelope("*** Update File: f", ...lines));
      return patch?.kind === "update" ? patch.hunks : [];
    };
    const change = (...lines: string[]) => applyHunks(text, hunks(...lines), "f");
    expect(change("@@ class B", "@@ run()", "-    x", "+    y")).toBe(text.replace("class B\n  run()\n    x", "class B\n  run()\n    y"));
    expect(change("@@ class A", "-    x", "+    1", "@@ class B", "-    x", "+    2")).toBe(
      text.replace("    x", "    1").replace("    x", "    2"),
    );
    expect(change("@@ class C", "+  inserted")).toBe(text.replace("class C\n", "class C\n  inserted\n"));
    expect(change("@@", "-x", "+z", "*** End of File")).toBe(text.replace(/x\n$/, "z\n"));
    expect(change("+last")).toBe(`${text}last\n`);
    expect(() => change("@@ class Z", "-    x", "+    y")).toThrow(/class Z/);
  });

  test("ignores white space at line ends, and keeps the file's own", async () => {
    const patch = envelope("*** Update File: a", "@@", " one", "-two", "+2", " three");
    expect(await apply({ a: "one  \ntwo\t\nthree \n" }, patch)).toEqual({ a: "one  \n2\nthree \n" });
    expect(await apply({ a: "one\r\ntwo\r\nthree\r\n" }, patch.replaceAll("\n", "\r\n"))).toEqual({ a: "one\r\n2\r\nthree\r\n" });
    expect(await apply({ a: "one\ntwo\nthree" }, patch)).toEqual({ a: "one\n2\nthree" });
  });

  test.each([
    ["a hunk that does not apply", envelope("*** Update File: a", "@@", "-nowhere", "+x"), "conflict"],
    ["an added file that exists", envelope("*** Add File: b", "+x"), "exists"],
    ["a move onto an existing file", envelope("*** Update File: a", "*** Move to: b", "@@", "-one", "+1"), "exists"],
    ["a missing file", envelope("*** Delete File: c"), "not_found"],
    ["a file that the patch removed", envelope("*** Delete File: a", "*** Update File: a", "@@", "-one", "+1"), "not_found"],
  ])("changes nothing for %s", async (_what, patch, code) => {
    await using bench = await createWorkbench();
    await bench.put("first", "1\n");
    await bench.put("a", "one\n");
    await bench.put("b", "two\n");
    const whole = patch.replace("*** Begin Patch\n", "*** Begin Patch\n*** Update File: first\n@@\n-1\n+changed\n");
    await expect(bench.use(applyPatchTool, { patch: whole })).rejects.toMatchObject({ code });
    expect([await bench.read("first"), await bench.read("a"), await bench.read("b")]).toEqual(["1\n", "one\n", "two\n"]);
  });

  test.each([
    ["an empty patch", "", 1],
    ["a patch without an end", "*** Begin Patch\n*** Add File: a\n+x", 3],
    ["a bare line in a new file", envelope("*** Add File: a", "x"), 3],
    ["a line without a sign", envelope("*** Update File: a", "@@", "xone"), 4],
    ["prose in an envelope", envelope("please change the file"), 2],
    ["prose", "just words", 1],
  ])("rejects %s and names the line", (_what, patch, line) => {
    expect(() => parsePatch(patch)).toThrow(
      expect.objectContaining({ code: "invalid", message: expect.stringContaining(`line ${line}:`) }),
    );
  });

  test("deletes a binary file, but does not update it", async () => {
    await using bench = await createWorkbench();
    await bench.put("logo.png", Buffer.from([0, 255]));
    await expect(bench.use(applyPatchTool, { patch: envelope("*** Update File: logo.png", "@@", "-x", "+y") })).rejects.toMatchObject({
      code: "invalid",
    });
    const result = await bench.use(applyPatchTool, { patch: envelope("*** Delete File: logo.png") });
    expect(result).toMatchObject({ text: "removed logo.png", files: [{ kind: "removed" }] });
  });

  test("exposes every file it touches to permission rules", () => {
    const patch = envelope("*** Update File: /workspace/a", "*** Move to: sub/b", "@@", "-x", "+y", "*** Delete File: c");
    expect(applyPatchTool.subject({ patch })).toBe("apply_patch:a sub/b c");
  });
});

describe("apply_patch with a unified diff", () => {
  test("applies git's output: new, deleted, renamed, empty and quoted files", async () => {
    const patch = `diff --git a/a.txt b/a.txt
index 111..222 100644
--- a/a.txt
+++ b/a.txt
@@ -1,2 +1,2 @@ heading
 one
-two
\\ No newline at end of file
+2
diff --git a/empty.txt b/empty.txt
new file mode 100644
index 000..000
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-x
diff --git a/from.txt b/to.txt
similarity index 100%
rename from from.txt
rename to to.txt
diff --git "a/\\303\\244.txt" "b/\\303\\244.txt"
new file mode 100644
--- /dev/null
+++ "b/\\303\\244.txt"
@@ -0,0 +1 @@
+ä
\\ No newline at end of file
`;
    expect(await apply({ "a.txt": "one\ntwo", "gone.txt": "x\n", "from.txt": "same\n" }, patch)).toEqual({
      "a.txt": "one\n2\n",
      "empty.txt": "",
      "to.txt": "same\n",
      "ä.txt": "ä",
    });
  });

  test("applies models' output: wrong line counts, lost spaces, no prefix", async () => {
    const patch = "--- b/a.txt\n+++ b/a.txt\n@@ -7,1 +9,9 @@\n one\n\n-two\n+2\n@@\n-four\n+4\n";
    expect(await apply({ "b/a.txt": "one\n\ntwo\nthree\nfour\n" }, patch)).toEqual({ "b/a.txt": "one\n\n2\nthree\n4\n" });
  });

  const line = fc.constantFrom("a", "b", "", "-- c", "++ d", "@@ -1 +1 @@", "\\ No", " e", "--- f", "+++ f", "diff --git a/x b/x");
  const change = fc.record({ sign: fc.constantFrom(" " as const, " " as const, " " as const, "+" as const, "-" as const), text: line });

  test("reproduces any change of any file", () => {
    fc.assert(
      fc.property(
        fc.array(change, { minLength: 1, maxLength: 40 }),
        fc.boolean(),
        fc.boolean(),
        fc.nat(3),
        (changes, oldEnds, newEnds, context) => {
          const side = (not: "+" | "-") => changes.filter(({ sign }) => sign !== not).map(({ text }) => text);
          const whole = (lines: string[], ends: boolean) => (lines.length === 0 ? "" : `${lines.join("\n")}${ends ? "\n" : ""}`);
          // An unchanged last line has the same end in both files, and an empty one exists only with its newline.
          const shared = changes.at(-1)?.sign === " ";
          const ends = (lines: string[], wanted: boolean) => wanted || lines.at(-1) === "";
          const before = { lines: side("+"), ends: ends(side("+"), oldEnds) };
          const after = { lines: side("-"), ends: ends(side("-"), shared ? oldEnds : newEnds) };
          fc.pre(before.lines.length > 0 && after.lines.length > 0 && changes.some(({ sign }) => sign !== " "));
          // An unchanged line, including its newline, cannot be the last one of just one file if that file has no
          // newline at its end.
          const last = (not: "+" | "-") => changes.findLastIndex(({ sign }) => sign !== not);
          fc.pre(shared || ((before.ends || changes[last("+")]?.sign === "-") && (after.ends || changes[last("-")]?.sign === "+")));
          const diff = unifiedDiff(changes, { context, before, after });
          const [patch] = parsePatch(diff);
          const got = patch?.kind === "update" ? applyHunks(whole(before.lines, before.ends), patch.hunks, "f") : null;
          expect(got).toBe(whole(after.lines, after.ends));
        },
      ),
      { numRuns: tries(500) },
    );
  });
});

interface Side {
  lines: string[];
  ends: boolean;
}

/** Creates a diff with this many lines of context from a list of changes. */
function unifiedDiff(
  changes: readonly { sign: " " | "+" | "-"; text: string }[],
  options: { context: number; before: Side; after: Side },
): string {
  const out = ["--- a/f", "+++ b/f"];
  const near = changes.map((_, at) =>
    changes.slice(Math.max(0, at - options.context), at + options.context + 1).some(({ sign }) => sign !== " "),
  );
  // A changed newline at the end is a change of the last lines, which the diff must show.
  let old = 0;
  let fresh = 0;
  for (let at = 0; at < changes.length; ) {
    const body: string[] = [];
    const start = { old, fresh };
    for (; at < changes.length && near[at]; at++) {
      const { sign, text } = changes[at] as (typeof changes)[number];
      body.push(`${sign}${text}`);
      if (sign !== "+") old += 1;
      if (sign !== "-") fresh += 1;
      const lastOld = sign !== "+" && old === options.before.lines.length && !options.before.ends;
      const lastNew = sign !== "-" && fresh === options.after.lines.length && !options.after.ends;
      if (lastOld || lastNew) body.push("\\ No newline at end of file");
    }
    if (body.length > 0) {
      const range = (from: number, count: number) => `${count === 0 ? from : from + 1},${count}`;
      out.push(`@@ -${range(start.old, old - start.old)} +${range(start.fresh, fresh - start.fresh)} @@`, ...body);
    } else {
      old += 1;
      fresh += 1;
      at += 1;
    }
  }
  return `${out.join("\n")}\n`;
}
