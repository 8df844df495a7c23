import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { beforeEach, describe, expect, it } from "vitest";
import { tarOf } from "../../../sandbox/tar/testing-tar.ts";
import { writeLayout } from "./image-fixture.ts";
import { refusal, sound, useImageFolder } from "./testing-image.ts";

const { at, resolve, templates } = useImageFolder();
let folder = "";
beforeEach(() => {
  folder = at(".");
});

describe("a hostile image", () => {
  it.each(["dev", "proc", "sys", "etc"])("is refused with a link in place of /%s", async (name) => {
    writeFileSync(at("victim"), "untouched");
    writeLayout(at("layout"), [
      { layers: [[{ name: "bin/sh" }, { name, type: "2", link: folder }, { name: `${name}/victim`, content: "owned" }]] },
    ]);
    await expect(resolve(at("layout"))).rejects.toThrow(refusal("unsafe"));
    expect(readFileSync(at("victim"), "utf8")).toBe("untouched");
    expect(templates()).toEqual([]);
  });

  it("is refused as a folder with such links", async () => {
    mkdirSync(at("root/bin"), { recursive: true });
    symlinkSync("/dev", at("root/dev"));
    await expect(resolve(at("root"))).rejects.toThrow(refusal("unsafe"));
  });

  it("is refused if it grows without end, wherever the bytes are", async () => {
    const limits = { bytesMax: 100_000, entriesMax: 100 };
    writeLayout(at("layout"), [{ layers: [[{ name: "zeros", content: Buffer.alloc(1_000_000) }]] }]);
    await expect(resolve(at("layout"), { limits })).rejects.toThrow(refusal("too_large"));
    // After the end of a layer, and of the archive.
    writeLayout(at("trailing"), [{ layers: [[{ name: "a" }]], trailingBytes: 1_000_000 }]);
    await expect(resolve(at("trailing"), { limits })).rejects.toThrow(refusal("too_large"));
    const trailing = Buffer.concat([tarOf([{ name: "a" }]), Buffer.alloc(1_000_000)]);
    writeFileSync(at("bomb.tar.gz"), gzipSync(trailing));
    await expect(resolve(at("bomb.tar.gz"), { limits })).rejects.toThrow(refusal("too_large"));
    expect(templates()).toEqual([]);
  });
});

describe("a reference that cannot be resolved", () => {
  it("is refused with a hint that says what is accepted", async () => {
    writeFileSync(at("text"), "hello");
    mkdirSync(at("empty"));
    for (const reference of [at("text"), at("empty"), "/dev/null", "--option", "UPPER CASE", "a b", ""]) {
      await expect(resolve(reference), reference).rejects.toThrow(
        expect.objectContaining({ code: "invalid", hint: expect.stringContaining("docker save") }),
      );
    }
    for (const reference of [at("nothing"), "./nothing", `oci:${at("nothing")}`])
      await expect(resolve(reference), reference).rejects.toThrow(refusal("not_found"));
  });

  it("is unavailable without skopeo if it is a name in a registry", async () => {
    const fetch = resolve("registry.invalid/app:1", { env: { PATH: folder } });
    await expect(fetch).rejects.toThrow(
      expect.objectContaining({ code: "unavailable", hint: expect.stringContaining("apt install skopeo") }),
    );
  });

  it("leaves nothing if the request was cancelled before the start", async () => {
    writeLayout(at("layout"), [sound]);
    await expect(resolve(at("layout"), { signal: AbortSignal.abort(), inside: undefined })).rejects.toThrow(refusal("cancelled"));
    expect(templates()).toEqual([]);
  });
});
