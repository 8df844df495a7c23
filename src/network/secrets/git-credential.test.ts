import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { SecretConfig } from "../../contract/network/network.ts";
import { gitCredentialConfig, gitCredentialEnv } from "./git-credential.ts";

const run = promisify(execFile);

function gitSecret(hosts: string[], more: Record<string, unknown> = {}): SecretConfig {
  return SecretConfig.parse({ hosts, git: {}, ...more });
}

/** Returns what git would send to this URL, or null if it has nothing and would have to ask a person. */
async function askGit(url: string, configs: Record<string, SecretConfig>, more: Record<string, string> = {}): Promise<string | null> {
  const placeholders = Object.fromEntries(Object.keys(configs).map((name) => [name, `placeholder-of-${name}`]));
  const env = {
    PATH: process.env.PATH,
    HOME: "/nonexistent",
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_TERMINAL_PROMPT: "0",
    GIT_ASKPASS: "/bin/false",
    ...placeholders,
    ...gitCredentialEnv(configs, placeholders),
    ...more,
  };
  const child = run("git", ["credential", "fill"], { env });
  child.child.stdin?.end(`url=${url}\n\n`);
  try {
    const { stdout } = await child;
    const field = (name: string) => new RegExp(`^${name}=(.*)$`, "m").exec(stdout)?.[1];
    return `${field("username")}:${field("password")}`;
  } catch {
    return null;
  }
}

test.each([
  ["https://github.com/a/b.git", ["github.com"], {}, "x-access-token:placeholder-of-TOKEN"],
  ["https://github.com:443/a/b.git", ["github.com"], {}, "x-access-token:placeholder-of-TOKEN"],
  ["https://git.example.com:8443/a", ["git.example.com"], { ports: [443, 8443] }, "x-access-token:placeholder-of-TOKEN"],
  ["https://a.example.com/x", ["*.example.com"], {}, "x-access-token:placeholder-of-TOKEN"],
  ["https://a.b.example.com/x", ["*.example.com"], {}, "x-access-token:placeholder-of-TOKEN"],
  ["https://any.where.net/x", ["*"], {}, "x-access-token:placeholder-of-TOKEN"],
  ["https://10.0.0.1/x", ["10.0.0.1"], {}, "x-access-token:placeholder-of-TOKEN"],
  ["https://[::1]/x", ["::1"], {}, "x-access-token:placeholder-of-TOKEN"],
  ["https://github.com/a", ["github.com"], { git: { username: "o'brien $HOME" } }, "o'brien $HOME:placeholder-of-TOKEN"],
  ["https://gitlab.com/a/b.git", ["github.com"], {}, null],
  ["https://example.com/x", ["*.example.com"], {}, null],
  ["https://git.example.com:8443/a", ["git.example.com"], {}, null],
  ["http://github.com/a/b.git", ["github.com"], {}, null],
])("%s with a secret for %j %j: %s", async (url, hosts, more, answer) => {
  expect(await askGit(url, { TOKEN: gitSecret(hosts, more) })).toBe(answer);
});

test("gives git the first of a host's git secrets", async () => {
  const configs = { A: SecretConfig.parse({ hosts: ["x.com"] }), B: gitSecret(["x.com"]), C: gitSecret(["x.com"]) };
  expect(await askGit("https://x.com/", configs)).toBe("x-access-token:placeholder-of-B");
});

test("gives git nothing if the variable was emptied", async () => {
  expect(await askGit("https://x.com/", { TOKEN: gitSecret(["x.com"]) }, { TOKEN: "" })).toBeNull();
});

test("sets no variables without a git secret, and never exposes a placeholder", () => {
  expect(gitCredentialEnv({ A: SecretConfig.parse({ hosts: ["x.com"] }) }, { A: "placeholder" })).toEqual({});
  expect(gitCredentialEnv({ A: gitSecret(["x.com"]) }, {})).toEqual({});
  expect(JSON.stringify(gitCredentialEnv({ A: gitSecret(["x.com"]) }, { A: "placeholder" }))).not.toContain("placeholder");
});

test("disables earlier helpers, which could store the placeholder", () => {
  expect(gitCredentialConfig({ A: gitSecret(["x.com"]) }, { A: "placeholder" })[0]).toEqual(["credential.https://x.com.helper", ""]);
});

test("rejects a username with a line break", () => {
  const configs = { A: gitSecret(["x.com"], { git: { username: "a\npassword=b" } }) };
  expect(() => gitCredentialEnv(configs, { A: "placeholder" })).toThrowError(expect.objectContaining({ code: "invalid" }));
});
