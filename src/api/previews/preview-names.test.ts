import { describe, expect, test } from "vitest";
import { previewNames } from "./preview-names.ts";

const publicUrl = "https://caisson.example.com";
const id = "pv_k3v7q2m5x4ab";
const label = "pv-k3v7q2m5x4ab";

describe("preview names", () => {
  test("replace the star with a separate name for each preview", () => {
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
  ])("resolve %s to %j", (host, found) => {
    expect(previewNames("https://*.previews.example.com", { publicUrl }).idOf(host)).toBe(found);
  });

  test("can be subdomains of the station's name", () => {
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
  ])("reject the pattern %j", (text) => {
    expect(() => previewNames(text, { publicUrl })).toThrow(expect.objectContaining({ code: "invalid" }));
  });

  test("must not include the station's name, and require a public URL", () => {
    expect(() => previewNames("https://*.example.com", { publicUrl })).toThrow(/matches the names of previews/);
    expect(() => previewNames("https://*.previews.example.com", { publicUrl: null })).toThrow(/need a station with a public URL/);
  });
});
