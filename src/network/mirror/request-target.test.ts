import fc from "fast-check";
import { expect, test } from "vitest";
import { tries } from "../../../test/support/thorough.ts";
import type { RegistryName } from "../../contract/network/network.ts";
import type { Packages } from "./packages.ts";
import { createRegistries } from "./registries/registries.ts";
import { pathSegments } from "./request-target.ts";

test.each([
  ["/npm/a", ["npm", "a"]],
  ["/npm/@s%2fa?x=%zz", ["npm", "@s/a"]],
  ["/pypi/simple/a/", ["pypi", "simple", "a"]],
  ["/debian/g%2b%2b", ["debian", "g++"]],
  ["http://deb.example/debian/a", null],
  ["/", null],
  ["/a//b", null],
  ["/a/./b", null],
  ["/a/%2E%2e/b", null],
  ["/a%2f%2fb", null],
  ["/a#b", null],
  ["http://h", null],
  ["https://h/a", null],
  ["", null],
])("parses %s", (target, expected) => {
  expect(pathSegments(target)).toEqual(expected);
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

test("only ever asks a registry below its own address", async () => {
  const base = "https://registry.example/base/";
  const upstreams = Object.fromEntries((["npm", "pypi", "crates", "go", "debian"] satisfies RegistryName[]).map((name) => [name, base]));
  const packages: Packages = {
    obtain: async () => ({ kind: "missing", freshness: "miss", status: 404 }),
    firstListed: async ([file]) => (file === undefined ? null : { file, digest: `sha256:${"a".repeat(64)}` }),
    close: async () => undefined,
  };
  const registries = createRegistries({ upstreams, packages });
  const elsewhere = "https://files.pythonhosted.org/";
  let routed = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { minLength: 1, maxLength: 8 }), async (pieces) => {
      const segments = pathSegments(`/${pieces.join("/")}`);
      if (segments === null) return;
      for (const segment of segments.flatMap((one) => one.split("/"))) expect(["", ".", ".."]).not.toContain(segment);
      for (const registry of registries) {
        for (const address of registry.addresses) {
          const request = { method: "GET", segments, accept: "", base: new URL(`https://${address.host}${address.path}`) };
          const result = await Promise.resolve(address.route(request)).catch(() => null);
          if (result?.kind !== "resource") continue;
          routed++;
          const { href } = result.resource.url;
          const own = registry.name === "pypi" ? [base, "https://registry.example/", elsewhere] : [base];
          expect(own.some((one) => href.startsWith(one))).toBe(true);
          expect(new URL(href).search + new URL(href).hash).toBe("");
        }
      }
    }),
    { numRuns: tries(3000) },
  );
  expect(routed).toBeGreaterThan(50);
});
