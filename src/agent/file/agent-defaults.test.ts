import { describe, expect, test } from "vitest";
import { AgentDefaults } from "../../contract/agent/agent-defaults.ts";
import { rightsBeyond } from "../rights/rights.ts";
import { settingsOf } from "./define-agent.ts";
import { parseAgentFile } from "./parse-agent-file.ts";

const defaults = AgentDefaults.parse({
  model: "openai/gpt-5",
  harness: { maxSteps: 20, doomLoop: { threshold: 2 } },
  permissions: { "bash:rm*": "deny" },
  hooks: { before: [{ command: "./check" }] },
  sandbox: {
    runtime: "oci",
    network: { mode: "open" },
    env: { A: "1" },
    readOnlyPaths: ["/etc"],
    limits: { cpus: 1 },
    secretNames: ["TOKEN"],
  },
  memory: ["RULES.md"],
});
const file = (frontmatter: string) => parseAgentFile("agents/x.prompt", `---\n${frontmatter}\n---\nYou work.\n`);
const define = (frontmatter: string) => settingsOf(file(frontmatter), defaults);
const rights = (frontmatter: string) => rightsBeyond(define(frontmatter), defaults, {}).map(({ text }) => text);

describe("agent defaults", () => {
  test("apply where a file sets nothing", () => {
    expect(define("description: d")).toMatchObject({
      model: "openai/gpt-5",
      harness: { maxSteps: 20, timeoutMs: 1_800_000, doomLoop: { threshold: 2, action: "pause" } },
      permissions: { "bash:rm*": "deny" },
      hooks: { before: [{ command: "./check" }] },
      sandbox: { runtime: "oci", network: { mode: "open" }, env: { A: "1" }, limits: { cpus: 1 }, secretNames: ["TOKEN"] },
      memory: ["RULES.md"],
    });
  });

  test("are replaced by a file's settings; tables and restriction lists are merged", () => {
    const frontmatter = `
model: openai/other
harness_config: { max_steps: 7 }
hooks: { before: [{ command: ./own }] }
sandbox: { network: none, env: { B: "2" }, read_only_paths: [/opt], memory: 1g }`;
    expect(define(frontmatter)).toMatchObject({
      model: "openai/other",
      harness: { maxSteps: 7, doomLoop: { threshold: 2 } },
      hooks: { before: [{ command: "./check" }, { command: "./own" }] },
      sandbox: {
        network: { mode: "none" },
        env: { A: "1", B: "2" },
        readOnlyPaths: ["/etc", "/opt"],
        limits: { cpus: 1, memoryBytes: 2 ** 30 },
      },
    });
  });

  test("do not replace `template: host` with their image", () => {
    const withImage = { sandbox: { image: "debian:12" } };
    const imageOf = (frontmatter: string) => settingsOf(file(frontmatter), withImage).sandbox.image;
    expect(imageOf("description: d")).toBe("debian:12");
    expect(imageOf("sandbox: { template: example.com/other:1 }")).toBe("example.com/other:1");
    expect(settingsOf(file("sandbox: { template: other:1 }"), withImage).sandbox.template).toBe("other:1");
    expect(imageOf("sandbox: { template: host }")).toBeUndefined();
  });

  test("set what a file may use without requesting rights", () => {
    expect(rights("description: d")).toEqual([]);
    expect(rights("sandbox: { network: open }\nharness_config: { max_steps: 20 }")).toEqual([]);
    expect(rights("harness_config: { max_steps: 21 }")).toEqual(["21 steps (usual: 20)"]);
    expect(rights("sandbox: { cpus: 2 }")).toEqual(["2 processors (usual: 1)"]);
    expect(rights("doom_loop: { threshold: 3 }")).toEqual(["3 repetitions before it counts as a loop (usual: 2)"]);
    expect(rights('permissions: { "bash:rm -rf*": allow }')).toEqual(["do without asking: bash:rm -rf*"]);
    expect(rights("sandbox: { env: { A: '2' } }")).toEqual(["set the variable A=2"]);
  });

  test("reject a name, a prompt, secret sources and mounts", () => {
    for (const wrong of [
      { name: "x" },
      { system: "x" },
      { sandbox: { secrets: {} } },
      { sandbox: { mounts: [] } },
      { sandbox: { cpu: 1 } },
    ])
      expect(AgentDefaults.safeParse(wrong).success, JSON.stringify(wrong)).toBe(false);
    expect(AgentDefaults.parse({ harness: {} })).toEqual({ harness: {} });
  });
});
