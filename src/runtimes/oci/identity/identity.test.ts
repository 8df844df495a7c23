import { chmodSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { refuseForeignGroup } from "./identity.ts";

let stateDir: string;
beforeEach(() => {
  stateDir = mkdtempSync(join(tmpdir(), "caisson-test-"));
});
afterEach(() => rmSync(stateDir, { recursive: true }));

test("refuses only a state folder whose inherited group has no id inside", () => {
  const { gid } = statSync(stateDir);
  const refuse = (outside: number) => () => refuseForeignGroup(stateDir, { gids: [{ inside: 0, outside, count: 1 }] });
  expect(refuse(gid + 1)).not.toThrow();
  chmodSync(stateDir, 0o2700);
  expect(refuse(gid)).not.toThrow();
  expect(refuse(gid + 1)).toThrow(expect.objectContaining({ code: "unavailable", hint: expect.stringContaining("chgrp") }));
  expect(() => refuseForeignGroup(join(stateDir, "not there yet"), { gids: [] })).not.toThrow();
});
