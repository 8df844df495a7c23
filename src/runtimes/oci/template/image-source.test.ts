import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import { imageSource } from "./image-source.ts";

test("a name is a name, also when something in the current folder is called so; a path is a path", () => {
  for (const name of ["src", "package.json"]) {
    expect(existsSync(name)).toBe(true);
    expect(imageSource(name)).toEqual({ kind: "registry", reference: name });
  }
  expect(imageSource("./src")).toMatchObject({ kind: "rootfs" });
  expect(imageSource("./package.json")).toMatchObject({ kind: "archive" });
  expect(imageSource("oci-archive:package.json")).toMatchObject({ kind: "archive" });
});
