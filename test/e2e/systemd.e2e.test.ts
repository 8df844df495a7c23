import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, globSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, test } from "vitest";

const vm = join(import.meta.dirname, "..", "vm");
const isThere =
  process.getuid?.() === 0 &&
  ["/lib/systemd/systemd", "/usr/bin/dbus-daemon"].every(existsSync) &&
  globSync("/usr/lib/*/security/pam_systemd.so").length > 0;

/** Needs systemd, dbus and libpam-systemd, which most machines have but containers do not. */
describe.skipIf(!isThere)("a station under systemd", () => {
  test.each(["root", "dev"])("serves the commands of %s, restarts after kill -9 with its sandbox, and stops", async (user) => {
    const child = spawn(join(vm, "here"), ["--user", user, join(vm, "scripts", "unit")], { stdio: ["ignore", "pipe", "pipe"] });
    const outputs = Promise.all([text(child.stdout), text(child.stderr)]);
    const [code] = await once(child, "exit");
    const [out, err] = await outputs;
    expect(code, `${out}\n${err}`).toBe(0);
    expect(out).toContain("go through its socket");
    expect(out).toContain("the unit held");
  });
});
