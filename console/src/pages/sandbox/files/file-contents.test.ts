import { expect, test } from "vitest";
import { contentsOf, SHOWN_BYTES_MAX } from "./file-contents.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const of = (content: Uint8Array, name = "a.txt", sizeBytes = content.length) => contentsOf(name, content, { sizeBytes });

test("allows editing text that round-trips byte for byte", () => {
  expect(of(bytes("héllo\n"))).toEqual({ kind: "text", text: "héllo\n", canEdit: true, note: null });
  expect(of(bytes("a\r\nb\r\n"))).toMatchObject({ canEdit: true });
  expect(of(bytes("\ufeffa"))).toMatchObject({ text: "\ufeffa", canEdit: true });
});

test("shows text as read-only if it does not round-trip", () => {
  expect(of(bytes("a\r\nb\n"))).toMatchObject({ kind: "text", canEdit: false });
  expect(of(bytes("a\rb"))).toMatchObject({ canEdit: false });
  expect(of(Uint8Array.from([0x61, 0xff, 0x62]))).toMatchObject({ kind: "text", text: "a\ufffdb", canEdit: false });
  expect(of(bytes("beginning"), "a.txt", SHOWN_BYTES_MAX * 3)).toMatchObject({ canEdit: false });
});

test("recognizes pictures by name, and everything else with a NUL as binary", () => {
  expect(of(Uint8Array.from([0, 1]), "x.PNG")).toMatchObject({ kind: "picture", type: "image/png" });
  // SVG can contain scripts, so it is shown as text.
  expect(of(bytes("<svg/>"), "x.svg")).toMatchObject({ kind: "text" });
  expect(of(Uint8Array.from([0x61, 0]))).toEqual({ kind: "binary" });
});
