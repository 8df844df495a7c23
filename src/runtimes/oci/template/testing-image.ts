import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect } from "vitest";
import { resolveImage } from "./image.ts";
import type { FixtureImage } from "./image-fixture.ts";
import { type UnpackRequest, unpackImage } from "./unpack-image.ts";
import type { RunInside } from "./unpack-process.ts";

/** Unpacks in this process, which saves a start of Node for each test; image.e2e.test.ts covers the real one. */
const inProcess: RunInside = async (argv) => {
  const request = JSON.parse(readFileSync(argv.at(-1) ?? "", "utf8")) as UnpackRequest;
  const answer = await unpackImage(request).then(
    (counts) => ({ counts }),
    (error: unknown) => ({ error }),
  );
  return [JSON.stringify(answer)];
};

export const refusal = (code: string) => expect.objectContaining({ code });

export const sound: FixtureImage = {
  tag: "one",
  layers: [
    [
      { name: "etc/", type: "5" },
      {
        name: "etc/passwd",
        content: "root:x:0:0:root:/root:/bin/ash\nnode:x:1000:1000::/home/node:/bin/sh\nuser:x:77:77::/:/bin/sh\nbroken\n",
      },
      { name: "bin/tool", content: "old", mode: 0o4755 },
    ],
    [{ name: "bin/tool", content: "new", mode: 0o755 }],
  ],
  config: {
    Env: ["PATH=/usr/bin:/bin", "A=b=c", "no-name", "1x=y"],
    WorkingDir: "/srv",
    User: "node",
    Entrypoint: ["/bin/tool"],
    Cmd: null,
  },
};

/** Gives each test of the file a separate folder, with its state in `state`, and helpers for it. */
export function useImageFolder() {
  let folder = "";
  let stateDir = "";
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "caisson-test-"));
    stateDir = join(folder, "state");
  });
  afterEach(() => {
    try {
      // No draft may remain, only complete templates and their names.
      if (existsSync(join(stateDir, "templates")))
        expect(readdirSync(join(stateDir, "templates")).filter((name) => !/^(image-|(references|uses)$)/.test(name))).toEqual([]);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  const resolve = (reference: string, options: Partial<Parameters<typeof resolveImage>[0]> = {}) =>
    resolveImage({ reference, stateDir, inside: inProcess, keepOwners: false, ...options });
  const templates = () =>
    existsSync(join(stateDir, "templates")) ? readdirSync(join(stateDir, "templates")).filter((name) => name.startsWith("image-")) : [];
  return { at: (name: string) => join(folder, name), resolve, templates };
}
