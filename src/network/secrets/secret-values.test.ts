import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { SecretConfig } from "../../contract/network/network.ts";
import { readSecretFile } from "./read-secret-file.ts";
import type { RunSecretCommand } from "./secret-book.ts";
import { createSecretValues } from "./secret-values.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "caisson-secret-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

interface Environment {
  env?: Record<string, string>;
  runCommand?: RunSecretCommand;
}

function valuesOf(from: unknown, { env = {}, runCommand = async () => "" }: Environment = {}) {
  const warnings: string[] = [];
  const clock = { now: 1_000_000 };
  const values = createSecretValues({
    configs: { TOKEN: SecretConfig.parse({ from, hosts: ["example.com"] }) },
    env,
    readFile: readSecretFile,
    runCommand,
    warn: (text) => warnings.push(text),
    now: () => clock.now,
  });
  return { values, warnings, clock };
}

async function refusal(value: Promise<string>): Promise<string> {
  try {
    return `it was had: ${await value}`;
  } catch (error) {
    expect(error).toMatchObject({ code: "denied", details: { reason: "secret_unavailable", secret: "TOKEN" } });
    expect((error as Error).cause).toBeUndefined();
    return (error as Error).message;
  }
}

test("reads a variable, the secret's own or another", async () => {
  expect(await valuesOf("env", { env: { TOKEN: "value-of-token" } }).values.get("TOKEN")).toBe("value-of-token");
  expect(await valuesOf({ env: "OTHER" }, { env: { OTHER: "value-of-other" } }).values.get("TOKEN")).toBe("value-of-other");
  expect(await refusal(valuesOf({ env: "toString" }).values.get("TOKEN"))).toContain("its variable is not set");
});

test("reads a file without its last line end, and warns once if others can read it", async () => {
  const path = join(folder, "token");
  writeFileSync(path, "value-of-file\n", { mode: 0o600 });
  const { values, warnings, clock } = valuesOf({ file: path });
  expect(await values.get("TOKEN")).toBe("value-of-file");
  expect(warnings).toEqual([]);
  chmodSync(path, 0o644);
  for (let time = 0; time < 3; time++) {
    clock.now += 60_000;
    await values.get("TOKEN");
  }
  expect(warnings).toEqual([expect.stringContaining("chmod 600")]);
});

test.each([
  ["a folder", () => folder, "not a regular file"],
  ["a device that never ends", () => "/dev/zero", "not a regular file"],
  ["a missing file", () => join(folder, "none"), "ENOENT"],
  ["a relative path", () => "token", "not absolute"],
  [
    "an oversized file",
    () => {
      writeFileSync(join(folder, "long"), "x".repeat(65_537));
      return join(folder, "long");
    },
    "more than 65536 bytes",
  ],
])("rejects %s as a secret's file, without naming its path inside", async (_what, path, why) => {
  const { values, warnings } = valuesOf({ file: path() });
  const message = await refusal(values.get("TOKEN"));
  expect(message).toContain(why);
  expect(message).not.toContain(folder);
  expect(warnings.join()).toContain(path());
});

test("runs a command with limits, and does not repeat its output on failure", async () => {
  const calls: unknown[] = [];
  const good = valuesOf(
    { command: ["pass", "show", "token"] },
    {
      runCommand: async (...call) => {
        calls.push(call);
        return "value-of-command\r\n";
      },
    },
  );
  expect(await good.values.get("TOKEN")).toBe("value-of-command");
  expect(calls).toEqual([[["pass", "show", "token"], { timeoutMs: 30_000, bytesMax: 65_536 }]]);
  const bad = valuesOf(
    { command: ["pass", "show"] },
    {
      runCommand: async () => {
        throw Object.assign(new Error("Command failed: hunter2-is-the-value"), { code: 3, stdout: "hunter2-is-the-value" });
      },
    },
  );
  const message = await refusal(bad.values.get("TOKEN"));
  expect(message).toContain("exit 3");
  expect(message + bad.warnings.join()).not.toContain("hunter2");
});

test.each([
  ["", "empty"],
  ["seven77", "fewer than 8"],
  ["x".repeat(8193), "more than 8192"],
  ["first\nsecond line", "line breaks"],
  ["first\u0000second", "control characters"],
  ["pässwörter", "other than ASCII"],
  [" begins-so", "a space"],
  ["ends-so ", "a space"],
])("rejects %j without repeating it", async (value, why) => {
  const { values } = valuesOf("env", { env: { TOKEN: value } });
  const message = await refusal(values.get("TOKEN"));
  expect(message).toContain(why);
  if (value.length > 8) expect(message).not.toContain(value);
  expect(values.known("TOKEN")).toEqual([]);
  expect(values.peek("TOKEN")).toBeNull();
});

test("fetches a value once a minute, and remembers old ones", async () => {
  let calls = 0;
  const { values, clock } = valuesOf({ command: ["x"] }, { runCommand: async () => `value-number-${++calls}` });
  expect(await Promise.all([values.get("TOKEN"), values.get("TOKEN")])).toEqual(["value-number-1", "value-number-1"]);
  clock.now += 59_999;
  expect(await values.get("TOKEN")).toBe("value-number-1");
  clock.now += 1;
  expect(await values.get("TOKEN")).toBe("value-number-2");
  for (let more = 0; more < 5; more++) {
    clock.now += 60_000;
    await values.get("TOKEN");
  }
  expect(values.known("TOKEN")).toEqual([7, 6, 5, 4].map((number) => `value-number-${number}`));
});

test("asks a failing source again only after a while, and uses no old value", async () => {
  let calls = 0;
  const { values, clock } = valuesOf(
    { command: ["x"] },
    {
      runCommand: async () => {
        calls += 1;
        if (calls === 2) throw new Error("no");
        return "value-of-command";
      },
    },
  );
  await values.get("TOKEN");
  clock.now += 60_000;
  await refusal(values.get("TOKEN"));
  clock.now += 4_999;
  await refusal(values.get("TOKEN"));
  expect(calls).toBe(2);
  clock.now += 1;
  expect(await values.get("TOKEN")).toBe("value-of-command");
});

test("has no value for an unknown secret", async () => {
  const { values } = valuesOf("env", { env: { toString: "value-of-something" } });
  await expect(values.get("toString")).rejects.toMatchObject({ details: { reason: "secret_unavailable" } });
});
