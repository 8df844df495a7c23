import { describe, expect, test } from "vitest";
import type { CommandSpec } from "../command.ts";
import { commands } from "../commands.ts";
import type { CliContext } from "../context.ts";
import { timeoutFrom } from "../sandboxes/start-command.ts";
import { parseArguments } from "./arguments.ts";
import { plainSandbox } from "./plain-sandbox.ts";
import { sandboxFrom } from "./spec-options.ts";

const exec = commands.find((command) => command.path[0] === "exec") as CommandSpec;
/** Only what a spec is made of. */
const context = {
  cwd: "/here",
  config: {
    runtime: "auto",
    limits: { pids: 50, memoryBytes: 2 ** 30 },
    workspace: { hide: [], show: [] },
    secrets: { KNOWN: { from: { file: "/k" }, hosts: ["api.example.org"], ports: [443], owners: ["local"] } },
  },
  variable: (name: string) => (name === "SET" ? "outside" : undefined),
} as unknown as CliContext;
const spec = (...argv: string[]) => {
  const given = parseArguments(exec, [...argv, "--", "true"]);
  return sandboxFrom(context, given, { keep: false, timeoutMs: timeoutFrom(given) }).spec;
};

describe("the spec that options ask for", () => {
  test("the current folder, copy-on-write, without anything else", () => {
    expect(spec()).toMatchObject({
      template: { kind: "host" },
      workspace: { kind: "folder", path: "/here", access: "overlay" },
      network: { mode: "none" },
      limits: { pids: 50, memoryBytes: 2 ** 30 },
      env: {},
      allowRoot: false,
    });
  });
  test.each([[[]], [["--no-workspace"]], [["--tty", "--user", "nobody"]]])(
    "what asks nothing of it is the same without a look at it: %j",
    (argv) => {
      const given = parseArguments(exec, [...argv, "--", "true"]);
      expect(plainSandbox(context, given, { keep: true })).toEqual(sandboxFrom(context, given, { keep: true }));
    },
  );
  test.each([
    ["--timeout", "5s"],
    ["--env", "A=b"],
    ["--name", "Not A Name"],
    ["--network", "open"],
    ["--workspace", "."],
    ["--allow-root"],
  ])("what asks something of it is looked at: %s", (...argv) => {
    expect(plainSandbox(context, parseArguments(exec, [...argv, "--", "true"]), { keep: false })).toBeNull();
  });
  test("so is an image that was configured", () => {
    const configured = { ...context, config: { ...context.config, image: "debian" } };
    expect(plainSandbox(configured, parseArguments(exec, ["--", "true"]), { keep: false })).toBeNull();
  });
  test("options win over the configuration", () => {
    expect(spec("--pids", "7", "--cpus", "0.5", "--disk", "1g", "--output-max", "1m").limits).toEqual({
      pids: 7,
      memoryBytes: 2 ** 30,
      cpus: 0.5,
      diskBytes: 2 ** 30,
      outputBytes: 2 ** 20,
    });
  });
  test("a secret by its name alone is the configuration's, and so are its hosts", () => {
    expect(spec("--secret", "KNOWN")).toMatchObject({
      secrets: { KNOWN: { from: { file: "/k" }, hosts: ["api.example.org"] } },
      network: { mode: "allow", rules: [{ host: "api.example.org", ports: [443] }] },
    });
  });
  test.each([
    ["sub", "/here/sub", "overlay"],
    ["/abs:rw", "/abs", "rw"],
    ["/abs:ro", "/abs", "ro"],
    ["../x:overlay", "/x", "overlay"],
    ["/odd:name/dir", "/odd:name/dir", "overlay"],
    ["/trailing:", "/trailing:", "overlay"],
  ])("--workspace %s", (text, path, access) => {
    expect(spec("--workspace", text).workspace).toEqual({ kind: "folder", path, access });
  });
  test.each([
    [["--workspace", ".:rwx"], "invalid"],
    [["--workspace", ":rw"], "invalid"],
    [["--workspace", ".", "--no-workspace"], "invalid"],
    [["--image", "a", "--snapshot", "sn_aaaaaaaaaaaa"], "invalid"],
    [["--name", "sb_mine"], "invalid"],
    [["--name", "Mine"], "invalid"],
    [["--network", "none", "--network", "example.org"], "invalid"],
    [["--network", "not a host"], "invalid"],
    [["--network", "none", "--secret", "A@example.org"], "invalid"],
    [["--network", "none", "--secret", "A"], "invalid"],
    [["--secret", "A", "--secret", "A"], "invalid"],
    [["--secret", "1A@example.org"], "invalid"],
    [["--secret", "A@example.org", "--secret", "A@example.com"], "invalid"],
    [["--gateway", "telepathy"], "invalid"],
    [["--gateway-cost", "1"], "invalid"],
    [["--env", "1A=x"], "invalid"],
  ] as const)("%j is refused", (argv, code) => {
    expect(() => spec(...argv)).toThrow(expect.objectContaining({ code }));
  });
  test("a network: hosts, registries, secrets whose hosts can then be reached, and models", () => {
    expect(spec("--network", "registries:npm,github.com", "--network", "transparent").network).toMatchObject({
      mode: "allow",
      rules: [{ host: "github.com" }],
      registries: ["npm"],
      transparent: true,
    });
    const { network, secrets } = spec("--secret", "A@api.example.org;from=file:key", "--network", "example.org");
    expect(network).toMatchObject({ mode: "allow", rules: [{ host: "example.org" }, { host: "api.example.org", ports: [443] }] });
    expect(secrets.A?.from).toEqual({ file: expect.stringMatching(/^\/.*\/key$/) });
    expect(spec("--secret", "A@x.org").network).toMatchObject({ mode: "allow", rules: [{ host: "x.org" }] });
    expect(spec("--secret", "A@x.org", "--network", "open").network).toMatchObject({ mode: "open", rules: [] });
    expect(spec("--gateway", "anthropic,openai", "--gateway-cost", "2.5", "--gateway-models", "claude-*").gateway).toEqual({
      wires: ["anthropic", "openai"],
      models: ["claude-*"],
      costUsdMax: 2.5,
    });
  });
  test("variables: given, taken from outside, or not set there", () => {
    expect(spec("--env", "A=b=c", "--env", "SET", "--env", "UNSET", "--env", "EMPTY=").env).toEqual({
      A: "b=c",
      SET: "outside",
      EMPTY: "",
    });
  });
  test("an image's path is taken from the current folder; a reference is left alone", () => {
    expect(spec("--image", "./rootfs").template).toEqual({ kind: "image", reference: "/here/rootfs" });
    expect(spec("--image", "docker.io/library/alpine:3").template).toEqual({ kind: "image", reference: "docker.io/library/alpine:3" });
  });
  test("a timeout beyond the common limit raises it; a shorter one leaves it", () => {
    expect(spec("--timeout", "2h").limits.wallClockMs).toBe(7_200_000);
    expect(spec("--timeout", "5s").limits.wallClockMs).toBeUndefined();
  });
});
