import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { reachOfHeld, reachOfRun, reachOfShip } from "../src/contract/api/reach.ts";
import { parseAgentReference } from "../src/contract/machine-names.ts";
import { parseModelName } from "../src/contract/model-name.ts";
import { StartRun } from "../src/contract/run-verbs.ts";
import { SandboxSpec } from "../src/contract/sandbox.ts";
import { StartShip } from "../src/contract/ship-verbs.ts";
import { imageSource } from "../src/runtimes/oci/template/image-source.ts";
import { shipTarget } from "../src/station/ships/ship-target.ts";
import { checkAddress } from "../src/workspace/git/address.ts";
import { checkSubmoduleOrigin } from "../src/workspace/git/submodule-origin.ts";

/** Texts made of the pieces that the parsers look at, in any order. */
const pieces = [
  ...[
    "oci:",
    "oci-archive:",
    "docker-archive:",
    "docker:",
    "docker://",
    "file:",
    "file://",
    "FILE://",
    "ssh://",
    "git://",
    "http://",
    "https://",
    "ext::",
  ],
  ...["/", "//", "./", "../", "~", ".", "..", ":", "@", "-", "%2f", "%00", "\\", "?", "#", " ", "\n", "\0", "[::1]"],
  ...["tmp", "etc", "debian", "12", "a", "user", "host.test", "127.0.0.1", "localhost", "5000", "sha256", "scripted:", "demo", ".prompt"],
];
const text = fc
  .array(fc.constantFrom(...pieces), { minLength: 1, maxLength: 7 })
  .map((parts) => parts.join(""))
  .filter((each) => each !== "");

const many = { numRuns: 4000 };

/** What the acting code makes of it; null when it refuses. */
function acted<Result>(act: () => Result): Result | null {
  try {
    return act();
  } catch {
    return null;
  }
}

describe("whatever passes for a token that may only run", () => {
  test("as an image is fetched from a registry or is not an image", () => {
    fc.assert(
      fc.property(text, (reference) => {
        const spec = SandboxSpec.safeParse({ template: { kind: "image", reference } });
        if (!spec.success || reachOfHeld({ spec: spec.data }).length > 0) return;
        expect(acted(() => imageSource(reference))?.kind ?? "registry").toBe("registry");
      }),
      many,
    );
  });

  test("as a git source is one address by https, and so are the places of its submodules", () => {
    fc.assert(
      fc.property(text, text, (url, place) => {
        const source = { kind: "git" as const, url, submodules: true, submodulesFrom: [place] };
        if (reachOfRun(StartRun.parse({ task: "x", source })).length > 0) return;
        checkAddress(url);
        expect(new URL(url).protocol).toBe("https:");
        for (const scheme of ["file:///tmp", "ssh://git@host.test/x", "http://host.test/x", "git://host.test/x", "git@host.test:x"]) {
          expect(() => checkSubmoduleOrigin({ name: "x", address: scheme }, { source: url, allowed: [place] })).toThrow();
        }
      }),
      many,
    );
  });

  test("as a ship's target is not a folder of the machine", () => {
    fc.assert(
      fc.property(text, (to) => {
        if (reachOfShip(StartShip.parse({ of: "x", to })).length > 0) return;
        const target = acted(() => shipTarget({ to, forge: "git" }, { kind: "empty" }));
        if (target !== null) expect(target).toMatchObject({ allowPrivate: false, remote: expect.stringMatching(/^https:/) });
      }),
      many,
    );
  });

  test("as an agent or a model names no file", () => {
    fc.assert(
      fc.property(text, text, (agent, model) => {
        if (reachOfRun(StartRun.parse({ task: "x", agent, model })).length > 0) return;
        expect(parseAgentReference(agent).kind).toBe("name");
        expect(["provider", "demo", undefined]).toContain(parseModelName(model)?.kind);
      }),
      many,
    );
  });

  test("is something: the forms that people write do pass", () => {
    const image = (reference: string) => reachOfHeld({ spec: SandboxSpec.parse({ template: { kind: "image", reference } }) });
    for (const reference of ["debian:12", "docker://debian:12", "ghcr.io/a/b:c", "mine"]) expect(image(reference)).toEqual([]);
    const source = {
      kind: "git" as const,
      url: "https://u:p@host.test/x.git",
      submodules: true,
      submodulesFrom: ["other.test", "https://o.test"],
    };
    expect(reachOfRun(StartRun.parse({ task: "x", source, model: "openai/x", agent: "coder", settings: { ociRuntime: "crun" } }))).toEqual(
      [],
    );
  });
});
