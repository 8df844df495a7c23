import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { seccompProfile } from "../../src/runtimes/hardening/seccomp.ts";
import { compileSeccomp } from "../../src/runtimes/hardening/seccomp-filter.ts";
import { shell } from "./guest-commands.ts";
import { startGuest, type TestGuest } from "./guest-driver.ts";

const folder = mkdtempSync(join(tmpdir(), "caisson-test-filter-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function guestWith(filter: Uint8Array): Promise<TestGuest> {
  const path = join(folder, "filter");
  writeFileSync(path, filter);
  const fd = openSync(path, "r");
  try {
    return await startGuest({ args: ["--not-init", "--filter-fd", "3"], extraFds: [fd] });
  } finally {
    closeSync(fd);
  }
}

describe("a system call filter", () => {
  const profile = seccompProfile({ arch: process.arch, writesToHost: true });

  test("applies to the guest and to everything it starts", async () => {
    await using guest = await guestWith(compileSeccomp(profile));
    const link = await guest.link();
    const { stdout } = await shell(
      link,
      `cd "$HOME"; touch f && chmod 755 f && ! chmod 4755 f && ! unshare -m true; grep -E '^Seccomp:|NoNew' /proc/$$/status`,
      {
        env: ["PATH=/usr/bin:/bin", `HOME=${guest.folder}`],
      },
    );
    expect(stdout).toBe("NoNewPrivs:\t1\nSeccomp:\t2\n");
    const own = await shell(link, `grep ^Seccomp: /proc/${guest.child.pid}/status`);
    expect(own.stdout).toBe("Seccomp:\t2\n");
  });

  test.each([
    ["empty", Buffer.alloc(0)],
    ["truncated", compileSeccomp(profile).subarray(0, -4)],
    ["refused by the kernel", Buffer.alloc(16, 0xff)],
  ])("stops the guest from starting if it is %s", async (_, filter) => {
    await using guest = await guestWith(filter);
    expect(await guest.exited).not.toBe(0);
  });
});
