import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { parseSecret } from "../../contract/network/network-text.ts";
import { createAgentSource } from "./agent-source.ts";
import { createTrustStore } from "./trust-store.ts";

let dir = "";
let notices: string[] = [];
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "caisson-test-source-"));
  notices = [];
});
afterEach(() => rm(dir, { recursive: true, force: true }));

const put = async (path: string, frontmatter: string) => {
  await mkdir(dirname(join(dir, path)), { recursive: true });
  await writeFile(join(dir, path), `---\n${frontmatter}\n---\nYou work.\n`);
};
const trust = () => createTrustStore({ stateDir: join(dir, "state") });
const source = () =>
  createAgentSource({
    places: {
      cwd: join(dir, "work"),
      ownFolder: join(dir, "own"),
      namedFolders: [join(dir, "named")],
      folders: [join(dir, "work", "agents")],
    },
    trust: trust(),
    secrets: { TOKEN: parseSecret("TOKEN@api.example.org").config },
    limits: {},
    defaults: {},
    onNotice: (line) => notices.push(line),
  });
const agree = async (path: string) => {
  const text = `---\n${path}\n---\nYou work.\n`;
  await trust().record({ path: join(dir, "work/agents/a.prompt"), source: text, rights: ["reach x.org"] });
};

describe("an agent in a project folder", () => {
  test("is rejected before its template is evaluated", async () => {
    await put("work/agents/a.prompt", "sandbox: { network: [x.org] }");
    await writeFile(join(dir, "work/agents/a.prompt"), "---\nsandbox: { network: [x.org] }\n---\n{{#if broken}}");
    await expect(source().load("a")).rejects.toMatchObject({ code: "denied" });
    await expect(source().load("a", { isTrusted: true })).rejects.toMatchObject({ code: "invalid" });
  });

  test("runs with a notice if it only has a prompt and tighter limits", async () => {
    await put("work/agents/a.prompt", "sandbox: { memory: 1g }");
    expect(await source().load("a")).toMatchObject({ name: "a", sandbox: { limits: { memoryBytes: 2 ** 30 } } });
    expect(notices).toEqual(["the agent a is agents/a.prompt, a file that is not your own"]);
  });

  test("is rejected by name and by path if it requests more rights", async () => {
    await put("work/agents/a.prompt", "sandbox: { network: [x.org], allow_root: true }");
    for (const name of ["a", "agents/a.prompt", join(dir, "work/agents/a.prompt")]) {
      await expect(source().load(name)).rejects.toMatchObject({
        code: "denied",
        message: expect.stringMatching(/agents\/a\.prompt requests rights[\s\S]*\+ be root inside[\s\S]*\+ reach x\.org/),
        hint: expect.stringContaining("caisson trust agents/a.prompt"),
        details: { rights: [{ field: "sandbox.allowRoot" }, { field: "sandbox.network" }, { text: "reach x.org" }] },
      });
    }
  });

  test("needs trust in its exact content, except for command-line settings", async () => {
    const frontmatter = "sandbox: { network: [x.org] }";
    await put("work/agents/a.prompt", frontmatter);
    expect(await source().load("a", { overrides: new Set(["sandbox.network"]) })).toMatchObject({ name: "a" });
    await agree(frontmatter);
    expect(await source().load("a")).toMatchObject({ sandbox: { network: { mode: "allow" } } });
    await put("work/agents/a.prompt", "sandbox: { network: [x.org, evil.org] }");
    await expect(source().load("a")).rejects.toMatchObject({
      code: "denied",
      message: expect.stringMatching(/has changed since you trusted it[\s\S]*\n {2}reach x\.org\n\+ reach evil\.org/),
    });
    await put("work/agents/a.prompt", `${frontmatter} # and a remark`);
    await expect(source().load("a")).rejects.toMatchObject({ code: "denied" });
  });

  test.each([
    ["sandbox: { secrets: { X: { hosts: [e.test], from: { command: [id] } } } }", "define the secret in your configuration"],
    ["sandbox: { image: / }", "--image"],
  ])("with %s is rejected even if trusted", async (frontmatter, hint) => {
    await put("work/agents/a.prompt", frontmatter);
    await agree(frontmatter);
    await expect(source().load("a")).rejects.toMatchObject({
      code: "denied",
      message: expect.stringContaining("cannot be granted"),
      hint: expect.stringContaining(hint),
    });
    expect(await source().load("a", { isTrusted: true })).toMatchObject({ name: "a" });
  });

  test("gets a secret from the user's configuration once it is trusted", async () => {
    const frontmatter = "sandbox: { secrets: [TOKEN] }";
    await put("work/agents/a.prompt", frontmatter);
    await expect(source().load("a")).rejects.toMatchObject({ code: "denied" });
    await agree(frontmatter);
    expect((await source().load("a")).sandbox.secrets).toMatchObject({ TOKEN: { from: "env", hosts: ["api.example.org"] } });
    await put("work/agents/b.prompt", "sandbox: { secrets: [OTHER] }");
    const overriddenFields = new Set(["sandbox.secretNames.OTHER"]);
    expect((await source().load("b", { overrides: overriddenFields })).sandbox.secrets).toEqual({});
    await expect(source().load("b", { isTrusted: true })).rejects.toMatchObject({
      code: "not_found",
      hint: expect.stringContaining("secrets"),
    });
  });

  test("does not replace a built-in agent of the same name", async () => {
    await put("work/agents/coder.prompt", "sandbox: { mode: host }");
    expect((await source().load("coder")).sandbox.runtime).toBeUndefined();
    expect(notices).toEqual(["agents/coder.prompt is not used: the agent coder is the built-in one. To use it, name the file."]);
    await expect(source().load("agents/coder.prompt")).rejects.toMatchObject({ code: "denied" });
  });
});

test("grants the user's own agent everything except a machine path as its image", async () => {
  await put("own/a.prompt", "sandbox: { network: [open], secrets: { X: { hosts: [e.test], from: { command: [id] } } } }");
  await put("work/agents/a.prompt", "description: theirs");
  expect(await source().load("a")).toMatchObject({ sandbox: { network: { mode: "open" }, secrets: { X: { from: { command: ["id"] } } } } });
  expect(notices).toEqual(["agents/a.prompt is not used: the agent a is your own. To use it, name the file."]);
  await put("own/b.prompt", "sandbox: { image: / }");
  await expect(source().load("b")).rejects.toMatchObject({ code: "denied", hint: expect.stringContaining("--image /") });
  expect(await source().load("b", { overrides: new Set(["sandbox.image"]) })).toMatchObject({ name: "b" });
});

test("searches configured folders first, but trusts their files no more than others", async () => {
  await put("named/coder.prompt", "sandbox: { memory: 1g }");
  expect((await source().load("coder")).sandbox.limits.memoryBytes).toBe(2 ** 30);
  await put("named/coder.prompt", "sandbox: { mode: host }");
  await expect(source().load("coder")).rejects.toMatchObject({ code: "denied" });
});
