import fc from "fast-check";
import { expect, test } from "vitest";
import type { RegistryName } from "../../contract/network.ts";
import type { Packages } from "./packages.ts";
import { createRegistries } from "./registries/registries.ts";
import { parseTarget } from "./request-target.ts";

test.each([
  ["/npm/a", { host: null, segments: ["npm", "a"] }],
  ["/npm/@s%2fa?x=%zz", { host: null, segments: ["npm", "@s/a"] }],
  ["/pypi/simple/a/", { host: null, segments: ["pypi", "simple", "a"] }],
  ["http://Deb.Example:80/debian/g%2b%2b", { host: "deb.example:80", segments: ["debian", "g++"] }],
  ["/", null],
  ["/a//b", null],
  ["/a/./b", null],
  ["/a/%2E%2e/b", null],
  ["/a%2f%2fb", null],
  ["/a#b", null],
  ["http://h", null],
  ["https://h/a", null],
  ["", null],
])("%s", (target, expected) => {
  expect(parseTarget(target)).toEqual(expected);
});

const piece = fc.oneof(
  fc.constantFrom(
    "npm",
    "pypi",
    "crates",
    "go",
    "debian",
    "-",
    "@v",
    "@latest",
    "simple",
    "own",
    "files",
    "dl",
    "dists",
    "pool",
    "sumdb",
    "by-hash",
    "SHA256",
    "..",
    ".",
    "%2e%2e",
  ),
  fc.constantFrom(
    "a",
    "@s",
    "@s%2fb",
    "1",
    "2",
    "ab",
    "cd",
    "abcd",
    "1.0.0",
    "a-1.0.0.tgz",
    "v1.0.0.zip",
    "list",
    "%2f",
    "%5c",
    "a%3Fb",
    "a%23b",
    "http:",
    "a@b",
    "%40evil.example",
  ),
  fc.string({ maxLength: 12 }),
);

test("whatever is asked for, the registry is only ever asked below its own address", async () => {
  const base = "https://registry.example/base/";
  const upstreams = Object.fromEntries((["npm", "pypi", "crates", "go", "debian"] satisfies RegistryName[]).map((name) => [name, base]));
  const packages: Packages = {
    obtain: async () => ({ kind: "missing", freshness: "miss", status: 404 }),
    digestOf: async () => null,
    close: async () => undefined,
  };
  const registries = createRegistries({ upstreams, origin: "http://127.0.0.1:1", packages });
  const elsewhere = `https://${["files", "pythonhosted", "org"].join(".")}/`;
  let routed = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { minLength: 1, maxLength: 8 }), async (pieces) => {
      const target = parseTarget(`/${pieces.join("/")}`);
      if (target === null) return;
      for (const segment of target.segments.flatMap((one) => one.split("/"))) expect(["", ".", ".."]).not.toContain(segment);
      for (const registry of registries) {
        const segments = registry.keepsPrefix ? target.segments : target.segments.slice(1);
        const result = await Promise.resolve(registry.route({ method: "GET", segments, accept: "" })).catch(() => null);
        if (result?.kind !== "resource") continue;
        routed++;
        const { href } = result.resource.url;
        const own = registry.name === "pypi" ? [base, "https://registry.example/", elsewhere] : [base];
        expect(own.some((one) => href.startsWith(one))).toBe(true);
        expect(new URL(href).search + new URL(href).hash).toBe("");
      }
    }),
    { numRuns: 3000 },
  );
  expect(routed).toBeGreaterThan(50);
});
