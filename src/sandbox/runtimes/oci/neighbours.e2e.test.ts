import { lstatSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SandboxSpec, type SandboxSpecInput } from "../../../contract/sandbox.ts";
import { connectGuest } from "../../guest/connection.ts";
import { createOciRuntime, type OciOptions, type OciRuntime } from "./runtime.ts";

const guestPath = join(import.meta.dirname, "../../../../guest/build/caisson-guest");
const settings: OciOptions = { home: "/root", path: process.env.PATH ?? "" };
const asRoot = process.getuid?.() === 0;

let stateDir: string;
let runtime: OciRuntime;
const create = (input: SandboxSpecInput = {}) => runtime.create(SandboxSpec.parse(input));

/** What one sandbox could reach or use up of another's. */
describe.skipIf(!asRoot)("sandboxes beside each other", () => {
  beforeEach(() => {
    stateDir = mkdtempSync(join(tmpdir(), "caisson-test-"));
    runtime = createOciRuntime({ stateDir, guestPath }, settings);
  });
  afterEach(async () => {
    await runtime[Symbol.asyncDispose]();
    await runtime.sweep();
    for (const { id } of await runtime.list()) await (await runtime.open(id)).destroy();
    rmSync(stateDir, { recursive: true, force: true });
  });

  it("whoever finds a guest's socket still needs its token", async () => {
    await using sandbox = await create({ keep: true });
    const folder = join(stateDir, "sandboxes", sandbox.id);
    const socketPath = join(folder, "guest.sock");
    for (const token of [undefined, Buffer.alloc(64, "0")]) {
      await expect(connectGuest({ socketPath, token, timeoutMs: 5_000 })).rejects.toMatchObject({ code: "denied" });
    }
    expect(lstatSync(join(folder, "token")).mode & 0o777).toBe(0o600);
    const again = await runtime.open(sandbox.id);
    expect(await again.processes()).toEqual(expect.any(Array));
    await again.release();
  });
});
