import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { beforeEach, describe, expect, it } from "vitest";
import { tarOf } from "../../../sandbox/tar/testing-tar.ts";
import { imageFiles } from "./image-files.ts";
import { archiveOf, dockerArchive, writeLayout } from "./image-fixture.ts";
import { refusal, sound, useImageFolder } from "./testing-image.ts";

const { at, resolve, templates } = useImageFolder();
let stateDir = "";
beforeEach(() => {
  stateDir = at("state");
});

describe("an OCI layout", () => {
  it.each(["gzip", "zstd", "none"] as const)("is unpacked, and its configuration is read (%s)", async (compression) => {
    const [digest] = writeLayout(at("layout"), [{ ...sound, compression }]);
    const image = await resolve(at("layout"));
    expect(image.digest).toBe(digest);
    expect(readFileSync(join(image.rootfsDir, "bin/tool"), "utf8")).toBe("new");
    expect(lstatSync(join(image.rootfsDir, "bin/tool")).mode & 0o7777).toBe(0o755);
    expect(image.config).toEqual({
      env: { PATH: "/usr/bin:/bin", A: "b=c" },
      workdir: "/srv",
      user: "node",
      entrypoint: ["/bin/tool"],
      command: [],
    });
  });

  it("is unpacked once", async () => {
    writeLayout(at("layout"), [sound]);
    const first = await resolve(at("layout"));
    writeFileSync(join(first.rootfsDir, "mark"), "");
    expect(await resolve(`${at("layout")}:one`)).toEqual(first);
    expect(existsSync(join(first.rootfsDir, "mark"))).toBe(true);
  });

  it("is the same for concurrent callers", async () => {
    writeLayout(at("layout"), [sound]);
    const found = await Promise.all([1, 2, 3].map(() => resolve(at("layout"))));
    expect(new Set(found.map(({ rootfsDir }) => rootfsDir)).size).toBe(1);
    expect(templates()).toHaveLength(1);
  });

  it("requires a tag if it has several images", async () => {
    writeLayout(at("layout"), [sound, { ...sound, tag: "two", config: { WorkingDir: "/two" } }]);
    await expect(resolve(at("layout"))).rejects.toThrow(
      expect.objectContaining({ code: "invalid", hint: expect.stringContaining("one, two") }),
    );
    expect((await resolve(`oci:${at("layout")}:two`)).config.workdir).toBe("/two");
    await expect(resolve(`${at("layout")}:three`)).rejects.toThrow(refusal("not_found"));
  });

  it("is unsupported for another processor", async () => {
    writeLayout(at("layout"), [{ ...sound, architecture: "riscv64" }]);
    await expect(resolve(at("layout"))).rejects.toThrow(
      expect.objectContaining({ code: "unsupported", message: expect.stringContaining("riscv64") }),
    );
  });

  it("resolves to the image for this machine among several processors", async () => {
    const digests = writeLayout(at("layout"), [
      { ...sound, config: { WorkingDir: "/here" } },
      { ...sound, architecture: "riscv64" },
    ]);
    const index = JSON.parse(readFileSync(at("layout/index.json"), "utf8")) as {
      manifests: { digest: string; platform?: unknown; annotations?: unknown }[];
    };
    for (const manifest of index.manifests) {
      manifest.platform = {
        os: "linux",
        architecture: manifest.digest === digests[1] ? "riscv64" : process.arch === "x64" ? "amd64" : "arm64",
      };
      delete manifest.annotations;
    }
    writeFileSync(at("layout/index.json"), JSON.stringify(index));
    expect((await resolve(at("layout"))).config.workdir).toBe("/here");
  });

  it("is refused if it is damaged, and leaves nothing", async () => {
    writeLayout(at("layout"), [{ ...sound, compression: "none" }]);
    const blobs = readdirSync(at("layout/blobs/sha256")).map((name) => at(`layout/blobs/sha256/${name}`));
    for (const blob of blobs) {
      const original = readFileSync(blob);
      appendFileSync(blob, Buffer.alloc(512));
      await expect(resolve(at("layout")), blob).rejects.toThrow(refusal("invalid"));
      truncateSync(blob, original.length - 1);
      await expect(resolve(at("layout")), blob).rejects.toThrow(refusal("invalid"));
      rmSync(blob);
      await expect(resolve(at("layout")), blob).rejects.toThrow(refusal("invalid"));
      symlinkSync("/dev/zero", blob);
      await expect(resolve(at("layout")), blob).rejects.toThrow(refusal("invalid"));
      rmSync(blob);
      execFileSync("mkfifo", [blob]);
      await expect(resolve(at("layout")), blob).rejects.toThrow(refusal("invalid"));
      rmSync(blob);
      writeFileSync(blob, original);
    }
    expect(templates()).toEqual([]);
  });
});

it("refuses a configuration that was changed without its digest", async () => {
  writeLayout(at("layout"), [sound]);
  for (const name of readdirSync(at("layout/blobs/sha256"))) {
    const path = at(`layout/blobs/sha256/${name}`);
    const text = readFileSync(path, "latin1");
    if (text.includes('"/srv"')) writeFileSync(path, text.replace('"/srv"', '"/etc"'), "latin1");
  }
  await expect(resolve(at("layout"))).rejects.toThrow(refusal("invalid"));
});

describe("an archive", () => {
  it.each(["plain", "gzip"])("of docker save is unpacked, even with repeated layers (%s)", async (how) => {
    const layer = [{ name: "bin/tool", content: "x" }];
    const archive = dockerArchive({ layers: [layer, [{ name: "etc/x", content: "y" }], layer], config: { WorkingDir: "/w" } });
    writeFileSync(at("image.tar"), how === "gzip" ? gzipSync(archive) : archive);
    const image = await resolve(at("image.tar"));
    expect(readFileSync(join(image.rootfsDir, "bin/tool"), "utf8")).toBe("x");
    expect(image.config.workdir).toBe("/w");
    expect(await resolve(`docker-archive:${at("image.tar")}:app:1`)).toEqual(image);
    await expect(resolve(`${at("image.tar")}:2`)).rejects.toThrow(refusal("not_found"));
  });

  it("of an OCI layout is the same image as the folder", async () => {
    writeLayout(at("layout"), [sound]);
    writeFileSync(at("image.tar"), archiveOf(at("layout")));
    expect(await resolve(at("image.tar"))).toEqual(await resolve(at("layout")));
  });

  it("is read again after it changes", async () => {
    writeFileSync(at("image.tar"), dockerArchive({ layers: [[{ name: "bin/a" }]] }));
    const first = await resolve(at("image.tar"));
    writeFileSync(at("image.tar"), dockerArchive({ layers: [[{ name: "bin/bb" }]] }));
    expect((await resolve(at("image.tar"))).digest).not.toBe(first.digest);
  });

  it("cannot name files outside or lie about its layers", async () => {
    writeFileSync(at("victim"), "untouched");
    const config = JSON.stringify({
      architecture: "arm64",
      os: "linux",
      rootfs: { type: "layers", diff_ids: [`sha256:${"0".repeat(64)}`] },
    });
    for (const layer of ["../victim", "/etc/passwd", "missing"]) {
      const manifest = JSON.stringify([{ Config: "config.json", Layers: [layer] }]);
      writeFileSync(
        at("image.tar"),
        tarOf([
          { name: "../victim", content: "owned" },
          { name: "config.json", content: config },
          { name: "manifest.json", content: manifest },
        ]),
      );
      await expect(resolve(at("image.tar"), { arch: "arm64" })).rejects.toThrow(refusal("invalid"));
    }
    expect(readFileSync(at("victim"), "utf8")).toBe("untouched");
  });
});

describe("a root file system folder", () => {
  it("is used in place", async () => {
    mkdirSync(at("root/etc"), { recursive: true });
    expect(await resolve(at("root"))).toMatchObject({ digest: null, rootfsDir: at("root") });
    expect(existsSync(join(stateDir, "templates"))).toBe(false);
  });

  it("is unsupported for another processor, even behind links", async () => {
    mkdirSync(at("root/usr/bin"), { recursive: true });
    symlinkSync("/usr/bin", at("root/bin"));
    const program = Buffer.alloc(64);
    program.write("\x7fELF", "latin1");
    program.writeUInt16LE(243, 18);
    writeFileSync(at("root/usr/bin/sh"), program);
    await expect(resolve(at("root"))).rejects.toThrow(refusal("unsupported"));
  });
});

describe("imageFiles", () => {
  it("adds the sandbox's user to the image's accounts", async () => {
    writeLayout(at("layout"), [sound]);
    const { rootfsDir } = await resolve(at("layout"));
    const { files } = imageFiles({ rootfsDir });
    expect(files.find(({ path }) => path === "/etc/passwd")?.content).toBe(
      "root:x:0:0:root:/root:/bin/ash\nuser:x:1000:1000:user:/home/user:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh\n",
    );
    expect(files.find(({ path }) => path === "/etc/group")?.content).toBe("root:x:0:\nuser:x:1000:\n");
  });

  it("never reads outside the image", () => {
    mkdirSync(at("root/etc"), { recursive: true });
    writeFileSync(at("secret"), "mallory:x:5:5::/:/bin/sh\n");
    for (const link of [at("secret"), "../../secret", "/dev/zero"]) {
      rmSync(at("root/etc/passwd"), { force: true });
      symlinkSync(link, at("root/etc/passwd"));
      expect(imageFiles({ rootfsDir: at("root") }).files[0]?.content).not.toContain("mallory");
    }
  });
});
