import { describe, expect, test } from "vitest";
import type { CommandDefinition } from "../command.ts";
import { commands } from "../commands.ts";
import type { CliContext } from "../context.ts";
import { timeoutFrom } from "../sandboxes/start-command.ts";
import { parseArguments } from "./arguments.ts";
import { parseSandboxOptions } from "./parse-sandbox-options.ts";
import { plainSandbox } from "./plain-sandbox.ts";

const exec = commands.find((command) => command.path[0] === "exec") as CommandDefinition;
/** The parts of a CLI context that sandbox options read. */
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
const config = (...argv: string[]) => {
  const args = parseArguments(exec, [...argv, "--", "true"]);
  return parseSandboxOptions(context, args, { keep: false, timeoutMs: timeoutFrom(args) }).spec;
};

describe("sandbox options", () => {
  test("default to a copy-on-write view of the current folder and no network", () => {
    expect(config()).toMatchObject({
      template: { kind: "host" },
      workspace: { kind: "folder", path: "/here", access: "overlay" },
      network: { mode: "none" },
      limits: { pids: 50, memoryBytes: 2 ** 30 },
      env: {},
      allowRoot: false,
    });
  });
  test.each([[[]], [["--no-workspace"]], [["--tty", "--user", "1000"]]])("give the same sandbox without schemas: %j", (argv) => {
    const args = parseArguments(exec, [...argv, "--", "true"]);
    expect(plainSandbox(context, args, { keep: true })).toEqual(parseSandboxOptions(context, args, { keep: true }));
  });
  test.each([
    ["--timeout", "5s"],
    ["--env", "A=b"],
    ["--name", "Not A Name"],
    ["--network", "open"],
    ["--workspace", "."],
    ["--allow-root"],
  ])("need the schemas if one of them must be checked: %s", (...argv) => {
    expect(plainSandbox(context, parseArguments(exec, [...argv, "--", "true"]), { keep: false })).toBeNull();
  });
  test("need the schemas if an image is configured", () => {
    const configured = { ...context, config: { ...context.config, image: "debian" } };
    expect(plainSandbox(configured, parseArguments(exec, ["--", "true"]), { keep: false })).toBeNull();
  });
  test("set the size of /tmp and the protected paths", () => {
    expect(config("--shm-size", "256m").shmBytes).toBe(2 ** 28);
    expect(config("--tmp", "8m", "--read-only-path", "/workspace/a", "--read-only-path", "/etc", "--denied-path", "/opt")).toMatchObject({
      tmpBytes: 8 * 2 ** 20,
      readOnlyPaths: ["/workspace/a", "/etc"],
      deniedPaths: ["/opt"],
    });
    expect(() => config("--denied-path", "opt")).toThrow("--denied-path must be absolute");
    expect(() => config("--tmp", "1k")).toThrow("--tmp must be at least");
  });
  test("override the configuration", () => {
    expect(config("--pids", "7", "--cpus", "0.5", "--disk", "1g", "--output-max", "1m").limits).toEqual({
      pids: 7,
      memoryBytes: 2 ** 30,
      cpus: 0.5,
      diskBytes: 2 ** 30,
      outputBytes: 2 ** 20,
    });
  });
  test("take a secret and its hosts from the configuration if only its name is given", () => {
    expect(config("--secret", "KNOWN")).toMatchObject({
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
  ])("accept --workspace %s", (text, path, access) => {
    expect(config("--workspace", text).workspace).toEqual({ kind: "folder", path, access });
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
  ] as const)("reject %j", (argv, code) => {
    expect(() => config(...argv)).toThrow(expect.objectContaining({ code }));
  });
  test("set hosts, registries, secrets with their hosts, and model gateways", () => {
    expect(config("--network", "registries:npm,github.com", "--network", "transparent").network).toMatchObject({
      mode: "allow",
      rules: [{ host: "github.com" }],
      registries: ["npm"],
      transparent: true,
    });
    const { network, secrets } = config("--secret", "A@api.example.org;from=file:key", "--network", "example.org");
    expect(network).toMatchObject({ mode: "allow", rules: [{ host: "example.org" }, { host: "api.example.org", ports: [443] }] });
    expect(secrets.A?.from).toEqual({ file: expect.stringMatching(/^\/.*\/key$/) });
    expect(config("--secret", "A@x.org").network).toMatchObject({ mode: "allow", rules: [{ host: "x.org" }] });
    expect(config("--secret", "A@x.org", "--network", "open").network).toMatchObject({ mode: "open", rules: [] });
    expect(config("--gateway", "anthropic,openai", "--gateway-cost", "2.5", "--gateway-models", "claude-*").gateway).toEqual({
      wires: ["anthropic", "openai"],
      models: ["claude-*"],
      costUsdMax: 2.5,
    });
  });
  test("set variables, or pass them on if they are set outside", () => {
    expect(config("--env", "A=b=c", "--env", "SET", "--env", "UNSET", "--env", "EMPTY=").env).toEqual({
      A: "b=c",
      SET: "outside",
      EMPTY: "",
    });
  });
  test("resolve an image path in the current folder, but not an image reference", () => {
    expect(config("--image", "./rootfs").template).toEqual({ kind: "image", reference: "/here/rootfs" });
    expect(config("--image", "docker.io/library/alpine:3").template).toEqual({ kind: "image", reference: "docker.io/library/alpine:3" });
  });
  test("raise the time limit for a longer timeout, and keep it for a shorter one", () => {
    expect(config("--timeout", "2h").limits.wallClockMs).toBe(7_200_000);
    expect(config("--timeout", "5s").limits.wallClockMs).toBeUndefined();
  });
});
