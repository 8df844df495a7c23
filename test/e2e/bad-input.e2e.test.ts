import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { stationMode } from "../support/station-modes.ts";
import { expectNothingLeftAfterEach, useCaisson } from "./caisson-process.ts";

const { run, sandboxes, base, home } = useCaisson();
expectNothingLeftAfterEach(sandboxes);

beforeAll(async () => {
  await writeFile(join(base(), "not-an-image"), "this is text");
  await mkdir(join(base(), "empty-folder"));
});

const cases: Record<string, { argv: string[]; says: RegExp; env?: Record<string, string>; code?: number }> = {
  "an unknown command": { argv: ["exce"], says: /unknown command.*[\s\S]*hint: .*exec/ },
  "an unknown sub-command": { argv: ["sandbox", "lss"], says: /sandbox lss[\s\S]*hint: .*sandbox ls/ },
  "an unknown option": { argv: ["exec", "--memroy", "1g", "--", "true"], says: /--memroy[\s\S]*hint: .*--memory/ },
  "an unknown runtime": { argv: ["exec", "--runtime", "vmware", "--", "true"], says: /no runtime "vmware"[\s\S]*hint: .*oci/ },
  "an unknown OCI runtime": { argv: ["exec", "--runtime", "oci", "--oci-runtime", "nosuch", "--", "true"], says: /nosuch[\s\S]*hint: / },
  "no command": { argv: ["exec"], says: /no command was given[\s\S]*hint: / },
  "no command after --": { argv: ["exec", "--"], says: /no command was given[\s\S]*hint: / },
  "a missing program": { argv: ["exec", "--", "no-such-program"], says: /no-such-program[\s\S]*hint: /, code: 127 },
  "a file that is not a program": { argv: ["exec", "--", "/etc/passwd"], says: /\/etc\/passwd[\s\S]*hint: /, code: 126 },
  "a missing cwd": { argv: ["exec", "--cwd", "/no/such/folder", "--", "true"], says: /\/no\/such\/folder[\s\S]*hint: / },
  "a cwd with ..": { argv: ["exec", "--cwd", "/workspace/../etc", "--", "true"], says: /\.\.[\s\S]*hint: / },
  "a cwd of 5,000 characters": { argv: ["exec", "--cwd", `/${"a".repeat(5000)}`, "--", "true"], says: /4,?095[\s\S]*hint: / },
  "a workspace that does not exist": {
    argv: ["exec", "--workspace", "/no/such/folder", "--", "true"],
    says: /\/no\/such\/folder[\s\S]*hint: /,
  },
  "a workspace that is a file": { argv: ["exec", "--workspace", "/etc/passwd", "--", "true"], says: /\/etc\/passwd[\s\S]*hint: / },
  "an unknown workspace mode": { argv: ["exec", "--workspace", ".:rwx", "--", "true"], says: /"rwx" is not a mode[\s\S]*hint: / },
  "a path that is not an image": { argv: ["exec", "--image", "./not-an-image", "--", "true"], says: /not-an-image[\s\S]*hint: / },
  "an image that does not exist": { argv: ["exec", "--image", "./nowhere", "--", "true"], says: /nowhere[\s\S]*hint: / },
  "an empty folder as image": { argv: ["exec", "--image", "./empty-folder", "--", "true"], says: /empty-folder[\s\S]*hint: / },
  "a snapshot that does not exist": { argv: ["exec", "--snapshot", "sn_aaaaaaaaaaaa", "--", "true"], says: /sn_aaaaaaaaaaaa[\s\S]*hint: / },
  "a limit that is not a size": { argv: ["exec", "--memory", "lots", "--", "true"], says: /--memory[\s\S]*hint: / },
  "a limit that is too small": { argv: ["exec", "--memory", "1k", "--", "true"], says: /--memory must be at least 4 MiB[\s\S]*hint: / },
  "a limit above what the machine has": {
    argv: ["exec", "--memory", "100t", "--", "true"],
    // A station grants less than the whole machine.
    says: stationMode === "none" ? /more than this machine has[\s\S]*hint: / : /more than the station has for all sandboxes[\s\S]*hint: /,
  },
  "a limit that cannot be enforced": {
    argv: ["exec", "--runtime", "host", "--no-workspace", "--memory", "1g", "--", "true"],
    says: /memory[\s\S]*hint: /,
  },
  "a network that is not a rule": { argv: ["exec", "--network", "not a host", "--", "true"], says: /"not a host"[\s\S]*hint: .*HOST/ },
  "a network that cannot be enforced": {
    argv: ["exec", "--runtime", "host", "--no-workspace", "--network", "open", "--", "true"],
    says: /network policy \(open\)[\s\S]*hint: /,
  },
  "a secret for no host": { argv: ["exec", "--secret", "TOKEN", "--", "true"], says: /has a secret TOKEN\n[\s\S]*hint: .*NAME@HOST/ },
  "a missing secret": {
    argv: ["exec", "--secret", "CAISSON_NO_SUCH_TOKEN@example.com", "--", "true"],
    says: /CAISSON_NO_SUCH_TOKEN[\s\S]*hint: /,
  },
  "an unknown gateway": { argv: ["exec", "--gateway", "telepathy", "--", "true"], says: /"telepathy"[\s\S]*hint: / },
  "a gateway without a key": {
    argv: ["exec", "--gateway", "anthropic", "--", "true"],
    env: { ANTHROPIC_API_KEY: "" },
    says: /has no key[\s\S]*hint: Set ANTHROPIC_API_KEY/,
  },
  "the network log of a missing run": { argv: ["net", "log", "run_aaaaaaaaaaaa"], says: /run_aaaaaaaaaaaa/ },
  "a network rule for a missing sandbox": {
    argv: ["net", "allow", "sb_aaaaaaaaaaaa", "x.org"],
    says: /sb_aaaaaaaaaaaa[\s\S]*hint: /,
  },
  "an invalid port": { argv: ["open", "sb_aaaaaaaaaaaa", "99999"], says: /99999[\s\S]*hint: / },
  "an invalid variable": { argv: ["exec", "--env", "=x", "--", "true"], says: /--env[\s\S]*hint: / },
  "an invalid sandbox id": { argv: ["exec", "--sandbox", "../../etc", "--", "true"], says: /not a sandbox id[\s\S]*hint: / },
  "a sandbox that does not exist": { argv: ["exec", "--sandbox", "sb_aaaaaaaaaaaa", "--", "true"], says: /sb_aaaaaaaaaaaa[\s\S]*hint: / },
  "an option that an existing sandbox cannot take": {
    argv: ["exec", "--sandbox", "sb_aaaaaaaaaaaa", "--memory", "1g", "--", "true"],
    says: /--memory[\s\S]*hint: /,
  },
  "a dead engine": {
    argv: ["exec", "--runtime", "docker", "--", "true"],
    env: { DOCKER_HOST: "unix:///no/such/engine.sock" },
    says: /\/no\/such\/engine\.sock[\s\S]*hint: /,
  },
  "an engine on another machine": {
    argv: ["exec", "--runtime", "docker", "--", "true"],
    env: { DOCKER_HOST: "tcp://192.0.2.1:2375" },
    says: /192\.0\.2\.1[\s\S]*hint: /,
  },
  "a copy without a sandbox": { argv: ["cp", "a", "b"], says: /exactly one[\s\S]*hint: / },
  "removing nothing": { argv: ["sandbox", "rm"], says: /ID is missing[\s\S]*hint: / },
  "a shell without a terminal": { argv: ["shell"], says: /not a terminal[\s\S]*hint: / },
  "a relative state folder": {
    argv: ["sandbox", "ls"],
    env: { CAISSON_HOME: "here" },
    says: /not an absolute path[\s\S]*hint: .*CAISSON_HOME/,
  },
  "a state folder in /proc": {
    argv: ["exec", "--", "true"],
    env: { CAISSON_HOME: "/proc/x" },
    says: /in \/proc, where nothing can be stored[\s\S]*hint: /,
  },
  "a bad setting in the environment": {
    argv: ["sandbox", "ls"],
    env: { CAISSON_RUNTIME: "Not A Name" },
    says: /configuration is invalid[\s\S]*hint: /,
  },
};

describe("bad input", () => {
  test.each(Object.entries(cases))("reports %s with an exit code, a message and a hint", async (_name, { argv, says, env, code = 125 }) => {
    const result = await run(argv, { ...(env === undefined ? {} : { env }) });
    expect(result.stderr).toMatch(says);
    expect(result.stderr).toMatch(/^caisson: /m);
    expect(result.stderr).not.toMatch(/ at .*\.ts:\d+/);
    expect(result).toMatchObject({ code, text: "" });
  });

  test("prints the error as an object on stdout with --json", async () => {
    const result = await run(["exec", "--json", "--runtime", "vmware", "--", "true"]);
    expect(result.code).toBe(125);
    expect(JSON.parse(result.text)).toMatchObject({
      error: { code: "invalid", message: expect.any(String), hint: expect.any(String), retryable: false },
    });
  });

  test("leaves --json after the command to the command", async () => {
    const result = await run(["exec", "--runtime", "vmware", "--", "prog", "--json"]);
    expect(result).toMatchObject({ code: 125, text: "" });
  });

  test("names the damaged configuration file", async () => {
    const file = join(home(), "config.json");
    await writeFile(file, "{");
    const result = await run(["sandbox", "ls"]);
    await writeFile(file, "{}");
    expect(result.code).toBe(125);
    expect(result.stderr).toContain(file);
  });
});
