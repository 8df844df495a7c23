import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import { imageSource } from "./image-source.ts";

test("tells a name from a path, even if the current folder has such a file", () => {
  for (const name of ["src", "package.json"]) {
    expect(existsSync(name)).toBe(true);
    expect(imageSource(name)).toEqual({ kind: "registry", reference: name });
  }
  expect(imageSource("./src")).toMatchObject({ kind: "rootfs" });
  expect(imageSource("./package.json")).toMatchObject({ kind: "archive" });
  expect(imageSource("oci-archive:package.json")).toMatchObject({ kind: "archive" });
});
