import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { reachOfHeld, reachOfRun, reachOfShip } from "../src/contract/api/required-scopes.ts";
import { parseAgentReference } from "../src/contract/machine/machine-names.ts";
import { parseModelName } from "../src/contract/model/model-name.ts";
import { StartRun } from "../src/contract/run/run-verbs.ts";
import { SandboxConfig } from "../src/contract/sandbox/sandbox.ts";
import { StartShip } from "../src/contract/ship/ship-verbs.ts";
import { imageSource } from "../src/runtimes/oci/template/image-source.ts";
import { shipTarget } from "../src/station/pull-requests/ship-target.ts";
import { checkAddress } from "../src/workspace/git/address.ts";
import { checkSubmoduleOrigin } from "../src/workspace/git/submodule-origin.ts";

/** Random texts, made of the pieces that the parsers look for. */
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

/** Returns the result of the code that acts on a text, or null if that code rejects it. */
function acted<Result>(act: () => Result): Result | null {
  try {
    return act();
  } catch {
    return null;
  }
}

describe("a token with only the scope run", () => {
  test("gets images only from a registry", () => {
    fc.assert(
      fc.property(text, (reference) => {
        const config = SandboxConfig.safeParse({ template: { kind: "image", reference } });
        if (!config.success || reachOfHeld({ spec: config.data }).length > 0) return;
        expect(acted(() => imageSource(reference))?.kind ?? "registry").toBe("registry");
      }),
      many,
    );
  });

  test("gets git sources and their submodules only over https", () => {
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

  test("cannot ship to a folder of the machine", () => {
    fc.assert(
      fc.property(text, (to) => {
        if (reachOfShip(StartShip.parse({ of: "x", to })).length > 0) return;
        const target = acted(() => shipTarget({ to, forge: "git" }, { kind: "empty" }));
        if (target !== null) expect(target).toMatchObject({ allowPrivate: false, remote: expect.stringMatching(/^https:/) });
      }),
      many,
    );
  });

  test("cannot name a file as an agent or a model", () => {
    fc.assert(
      fc.property(text, text, (agent, model) => {
        if (reachOfRun(StartRun.parse({ task: "x", agent, model })).length > 0) return;
        expect(parseAgentReference(agent).kind).toBe("name");
        expect(["provider", "demo", undefined]).toContain(parseModelName(model)?.kind);
      }),
      many,
    );
  });

  test("can use the forms that people write", () => {
    const image = (reference: string) => reachOfHeld({ spec: SandboxConfig.parse({ template: { kind: "image", reference } }) });
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
