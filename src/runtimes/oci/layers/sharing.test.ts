import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createOciContext } from "../oci-context.ts";
import { guestPath, settings } from "../testing-oci.ts";
import { sharingFindings } from "./sharing.ts";

test("says how points are stored, and leaves nothing behind", async () => {
  const dir = mkdtempSync(join(tmpdir(), "caisson-test-sharing-"));
  try {
    expect(await sharingFindings(createOciContext({ stateDir: dir, guestPath }, settings))).toEqual([
      { level: "ok", text: expect.stringMatching(/^points of sessions by (btrfs|reflink|delta): /) },
    ]);
    expect(readdirSync(dir).filter((name) => name !== "oci")).toEqual([]);
  } finally {
    rmSync(dir, { recursive: true });
  }
});
