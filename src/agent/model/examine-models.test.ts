import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { startModelServer } from "../../../test/support/model-server.ts";
import { examineModels } from "./examine-models.ts";

const KEY = "sk-value-that-nobody-sees";
let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "caisson-test-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

describe("the model report of doctor", () => {
  test("names the keys that are set, and never a value", async () => {
    const env = { ANTHROPIC_API_KEY: KEY, OPENAI_BASE_URL: `http://user:${KEY}@example.com/v1`, GEMINI_API_KEY: "" };
    const report = await examineModels({ models: { env }, defaultModel: "anthropic/x", ask: undefined });
    expect(report).toMatchObject({ default: "anthropic/x", asked: null });
    expect(report.providers).toEqual([
      { name: "anthropic", keys: ["ANTHROPIC_API_KEY"], set: ["ANTHROPIC_API_KEY"] },
      { name: "openai", keys: ["OPENAI_API_KEY"], set: ["OPENAI_BASE_URL"] },
      { name: "google", keys: ["GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY"], set: [] },
    ]);
    expect(JSON.stringify(report)).not.toContain(KEY);
  });

  const ask = async (model: string, env: Record<string, string>, timeoutMs = 5_000) =>
    (await examineModels({ models: { env }, defaultModel: undefined, ask: model, timeoutMs })).asked;

  test("reports a model that answers", async () => {
    await using server = await startModelServer(() => ({ say: "ready" }));
    expect(await ask("compatible/m", { OPENAI_BASE_URL: server.url })).toMatchObject({ model: "compatible/m", answers: true });
    expect(server.requests).toHaveLength(1);
  });

  test("reports a refused key, a silent server and a missing key with the fix", async () => {
    await using refusing = await startModelServer(() => ({ status: 401, body: `{"error":{"message":"bad key ${KEY}"}}` }));
    const refused = await ask("compatible/m", { OPENAI_BASE_URL: refusing.url, OPENAI_API_KEY: KEY });
    expect(refused).toMatchObject({ answers: false });
    expect(JSON.stringify(refused)).not.toContain(KEY);
    await using silent = await startModelServer(() => ({ stall: true }));
    expect(await ask("compatible/m", { OPENAI_BASE_URL: silent.url }, 300)).toMatchObject({
      answers: false,
      problem: "no answer within 0.3 s",
    });
    expect(await ask("openai/gpt-5", {})).toMatchObject({ answers: false, fix: expect.stringContaining("OPENAI_API_KEY") });
    expect(await ask("nonsense", {})).toMatchObject({ answers: false, fix: expect.stringContaining("PROVIDER/MODEL") });
  });

  test("accepts a scripted model", async () => {
    const script = join(folder, "script.json");
    await writeFile(script, JSON.stringify({ turns: [{ say: "ready" }] }));
    expect(await ask(`scripted:${script}`, {})).toMatchObject({ model: `scripted:${script}`, answers: true });
  });
});
