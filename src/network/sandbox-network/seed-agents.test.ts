import { expect, test } from "vitest";
import { CaissonError } from "../../contract/error/error.ts";
import { insideEnv } from "../sandbox-setup/inside-env.ts";
import { seedAgents } from "./seed-agents.ts";

function home(there: Record<string, string> = {}) {
  const files: Record<string, string> = { ...there };
  const writeFile = async (path: string, data: unknown) => {
    if (files[path] !== undefined) throw new CaissonError("exists", "it exists");
    files[path] = String(data);
    return { bytes: 0 };
  };
  return { files, sandbox: { writeFile } as never };
}

test("writes the first-run settings of agents, for their gateway only", async () => {
  const { files, sandbox } = home();
  await seedAgents(sandbox, { wires: ["anthropic"] });
  expect(Object.keys(files)).toEqual(["/home/user/.claude.json"]);
  const env = insideEnv({
    policy: { mode: "none" },
    placeholders: {},
    secrets: {},
    mirrorEnv: {},
    gateway: { wires: ["anthropic", "openai"] },
  } as never);
  expect(JSON.parse(files["/home/user/.claude.json"] ?? "")).toMatchObject({
    hasCompletedOnboarding: true,
    customApiKeyResponses: { approved: [env.ANTHROPIC_API_KEY?.slice(-20)] },
    projects: { "/workspace": { hasTrustDialogAccepted: true } },
  });
  await seedAgents(sandbox, { wires: ["openai"] });
  expect(files["/home/user/.codex/config.toml"]).toContain(`base_url = "${env.OPENAI_BASE_URL}"`);
});

test("keeps existing files, and writes nothing without a gateway", async () => {
  const own = { "/home/user/.claude.json": "mine" };
  const { files, sandbox } = home(own);
  await seedAgents(sandbox, { wires: ["anthropic"] });
  await seedAgents(sandbox, undefined);
  expect(files).toEqual(own);
});

test("reports a failing sandbox", async () => {
  const lost = { writeFile: () => Promise.reject(new CaissonError("lost", "it is gone")) };
  await expect(seedAgents(lost as never, { wires: ["openai"] })).rejects.toMatchObject({ code: "lost" });
});
