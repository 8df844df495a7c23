import { describe, expect, test } from "vitest";
import { previewNames } from "./preview-names.ts";

const publicUrl = "https://caisson.example.com";
const id = "pv_k3v7q2m5x4ab";
const label = "pv-k3v7q2m5x4ab";

describe("what previews are called", () => {
  test("each has a name of its own in the place of the star", () => {
    const names = previewNames("https://*.Previews.example.com/", { publicUrl });
    expect(names.pattern).toBe("https://*.previews.example.com");
    expect(names.originOf(id)).toBe(`https://${label}.previews.example.com`);
    expect(previewNames("https://*.previews.example.com:8443", { publicUrl })).toMatchObject({
      pattern: "https://*.previews.example.com:8443",
    });
  });

  test.each([
    [`${label}.previews.example.com`, id],
    [`${label.toUpperCase()}.PREVIEWS.example.com:443`, id],
    [`${label}.previews.example.com.`, id],
    [`x.${label}.previews.example.com`, ""],
    ["previews.example.com", ""],
    ["other.previews.example.com", ""],
    ["caisson.example.com", null],
    [`${label}.previews.example.com.evil.test`, null],
    [`${label}previews.example.com`, null],
    ["127.0.0.1:7433", null],
    ["", null],
  ])("%s stands for %j", (host, found) => {
    expect(previewNames("https://*.previews.example.com", { publicUrl }).idOf(host)).toBe(found);
  });

  test("below the station's own name they are apart from it, too", () => {
    const names = previewNames("https://*.caisson.example.com", { publicUrl });
    expect(names.idOf("caisson.example.com")).toBeNull();
    expect(names.idOf(`${label}.caisson.example.com`)).toBe(id);
  });

  test.each([
    "http://*.previews.example.com",
    "https://previews.example.com",
    "https://*",
    "https://*.com/x",
    "https://a.*.example.com",
    "*.a.b",
    "",
  ])("%j is no name for them", (text) => {
    expect(() => previewNames(text, { publicUrl })).toThrow(expect.objectContaining({ code: "invalid" }));
  });

  test("the station's own name is never a preview's, and a station without one has none for them", () => {
    expect(() => previewNames("https://*.example.com", { publicUrl })).toThrow(/is one of those for previews/);
    expect(() => previewNames("https://*.previews.example.com", { publicUrl: null })).toThrow(/need a station that others reach/);
  });
});
