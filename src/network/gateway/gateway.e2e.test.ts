import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { expectNothingLeftAfterEach, useCaisson } from "../../../test/e2e/caisson-process.ts";
import { CANARY } from "../../../test/support/gateway-rig.ts";
import { anthropicEvents, anthropicMessage, sendEvents, sendJson, startModelUpstream } from "../../../test/support/model-upstream.ts";

const { run, home, sandboxes, base } = useCaisson();
expectNothingLeftAfterEach(sandboxes);

/** A typical program, which only knows two variables and the wire. */
const program = `
const ask = (more) => fetch(process.env.ANTHROPIC_BASE_URL + "/v1/messages", {
  method: "POST",
  headers: { "content-type": "application/json", "x-api-key": process.env.ANTHROPIC_API_KEY },
  body: JSON.stringify({ model: "claude-x", max_tokens: 50, messages: [{ role: "user", content: "Greet me." }], ...more }),
});
const hosted = { type: "web_fetch_20250910", name: "web_fetch" };
for (const more of [{ tools: [hosted] }, { stream: true }, { stream: true }, { model: "gpt-x" }]) {
  const answer = await ask(more);
  console.log(answer.status, JSON.stringify(await answer.text()));
}
console.log(JSON.stringify(process.env));
`;

test("a program without a network calls a model within limits and never sees the key", async () => {
  await using upstream = await startModelUpstream({
    "/v1/messages": (response, call) =>
      (call.body as { stream?: boolean }).stream
        ? sendEvents(anthropicEvents(`Your key is ${CANARY}.`, { input: 10, output: 20 }))(response, call)
        : sendJson(200, anthropicMessage("Hello.", { input: 1, output: 1 }))(response, call),
  });
  await mkdir(home(), { recursive: true });
  await writeFile(join(home(), "config.json"), JSON.stringify({ network: { gateway: { anthropic: upstream.url } } }));
  await writeFile(join(base(), "ask.mjs"), program);
  const bounds = ["--gateway", "anthropic", "--gateway-models", "claude-*", "--gateway-tokens", "30"];
  const env = { ANTHROPIC_API_KEY: CANARY };
  const { code, text, stderr } = await run(["exec", ...bounds, "--", "sh", "-c", "node ask.mjs; cat ~/.claude.json"], { env, cwd: base() });
  expect([code, stderr]).toEqual([0, expect.any(String)]);
  const [hosted, first, second, third] = text.split("\n");
  expect(hosted).toMatch(/^400 .*tools\[0\] is the tool .*web_fetch_20250910/);
  expect(first).toMatch(/^200 .*message_stop/);
  expect(second).toMatch(/^400 .*used 30 tokens; the gateway's limit is 30/);
  expect(third).toMatch(/^400 /);
  expect(text).toContain('"hasCompletedOnboarding": true');
  expect(text + stderr).not.toContain(CANARY);
  expect(upstream.calls.map(({ headers }) => headers["x-api-key"])).toEqual([CANARY]);
});
