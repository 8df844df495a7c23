import { expect, test } from "vitest";
import { readSides } from "./read-changes.ts";
import { reviewMessage } from "./review-comments.ts";

function tar(entries: Record<string, Uint8Array | string>): Uint8Array {
  const blocks: Uint8Array[] = [];
  for (const [name, content] of Object.entries(entries)) {
    const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
    const head = new Uint8Array(512);
    head.set(new TextEncoder().encode(name));
    head.set(new TextEncoder().encode(bytes.length.toString(8).padStart(11, "0")), 124);
    const padded = new Uint8Array(Math.ceil(bytes.length / 512) * 512);
    padded.set(bytes);
    blocks.push(head, padded);
  }
  blocks.push(new Uint8Array(1024));
  return Uint8Array.from(blocks.flatMap((block) => [...block]));
}

const side = (digest: string) => ({ digest, kind: "file" });
const manifest = (before: unknown, after: unknown) => JSON.stringify({ files: [{ path: "a.ts", before, after }] });

test("reads both sides of a file from its archive", () => {
  const archive = tar({ "manifest.json": manifest(side("1"), side("2")), "content/1": "old\n", "content/2": "new\n" });
  expect(readSides(archive, "a.ts")).toEqual({ before: "old\n", after: "new\n", isOther: false });
});

test("reads no old side of a new file, and flags content that is not text", () => {
  expect(readSides(tar({ "manifest.json": manifest(null, side("2")), "content/2": "" }), "a.ts")).toEqual({
    before: null,
    after: "",
    isOther: false,
  });
  const binary = tar({ "manifest.json": manifest(null, side("2")), "content/2": new Uint8Array([1, 0, 2]) });
  expect(readSides(binary, "a.ts").isOther).toBe(true);
  expect(readSides(tar({ "manifest.json": manifest(side("1"), side("2")), "content/2": "x" }), "a.ts").isOther).toBe(true);
});

test("sorts comments by file and line into one message", () => {
  const side = "after" as const;
  const message = reviewMessage([
    { path: "b.ts", side, line: 1, code: "b", text: "fourth" },
    { path: "a.ts", side, line: 9, code: "  nine", text: "third " },
    { path: "a.ts", side: "before", line: 2, code: "two", text: "second" },
    { path: "a.ts", side, line: null, code: "", text: "first" },
  ]);
  expect(message).toBe(
    "Please look at these comments on your changes:\n\na.ts\nfirst\n\na.ts:2 (before the change)\n> two\nsecond\n\na.ts:9\n> nine\nthird\n\nb.ts:1\n> b\nfourth",
  );
});
