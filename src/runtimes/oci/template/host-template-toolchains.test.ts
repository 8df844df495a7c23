import { lstatSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { HostTemplate } from "./host-template.ts";
import { makeHome, plantIn, templateOf } from "./testing-home.ts";

const SECRET = "do-not-show";
let root = "";
let home = "";
beforeEach(() => {
  ({ root, home } = makeHome());
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const plant = (files: Record<string, string>) => plantIn(home, files);
const template = (...path: string[]) => templateOf(home, path);

/** Returns every file in the home that a sandbox could read, relative to the home, with its content. */
function visible(found: HostTemplate): Map<string, string> {
  const files = new Map<string, string>();
  const walk = (path: string) => {
    if (found.hidden.includes(path)) return;
    const stat = lstatSync(path);
    if (stat.isDirectory()) for (const name of readdirSync(path)) walk(join(path, name));
    else if (stat.isFile()) files.set(path.slice(home.length + 1), readFileSync(path, "latin1"));
  };
  for (const { source, target } of found.binds) {
    if (!source.startsWith(root)) continue;
    expect(target).toBe(source);
    walk(source);
  }
  for (const { path, content } of found.files) if (path.startsWith(home) && content !== "") files.set(path.slice(home.length + 1), content);
  return files;
}

const pathInside = (found: HostTemplate) =>
  (found.env.PATH ?? "")
    .split(":")
    .filter((entry) => entry.startsWith(home))
    .map((entry) => entry.slice(home.length + 1));

/** Files that every home has and no sandbox may see. */
const homeSecrets = Object.fromEntries(
  [
    ".npmrc",
    ".netrc",
    ".pypirc",
    ".gitconfig",
    ".git-credentials",
    ".ssh/id_ed25519",
    ".aws/credentials",
    ".config/gh/hosts.yml",
    ".docker/config.json",
  ].map((path) => [path, SECRET]),
);

interface Case {
  name: string;
  files: Record<string, string>;
  path: string[];
  /** Files that must be readable inside. */
  sees: string[];
  inside: string[];
  env?: (home: string) => Record<string, string>;
}

const cases: Case[] = [
  {
    name: "cargo and rustup",
    files: {
      ".cargo/bin/cargo": "x",
      ".cargo/credentials.toml": SECRET,
      ".cargo/config.toml": SECRET,
      ".cargo/registry/src/private.rs": SECRET,
      ".rustup/toolchains/stable/bin/rustc": "x",
      ".rustup/settings.toml": `default_toolchain = "stable"\n[overrides]\n"/home/${SECRET}" = "nightly"\n`,
    },
    path: [".cargo/bin"],
    sees: [".cargo/bin/cargo", ".rustup/toolchains/stable/bin/rustc", ".rustup/settings.toml"],
    inside: [".cargo/bin"],
    env: (at) => ({ RUSTUP_HOME: `${at}/.rustup` }),
  },
  {
    name: "pyenv",
    files: {
      ".pyenv/shims/python3": "x",
      ".pyenv/bin/pyenv": "->../libexec/pyenv",
      ".pyenv/libexec/pyenv": "x",
      ".pyenv/version": "3.12.1\n",
      ".pyenv/versions/3.12.1/bin/python3": "x",
      ".pyenv/versions/3.12.1/pip.conf": SECRET,
      ".pyenv/versions/3.12.1/envs/tools/pip.conf": SECRET,
      ".pyenv/.git/config": SECRET,
      ".pyenv/plugins/x/.git/config": SECRET,
    },
    path: [".pyenv/plugins/pyenv-virtualenv/shims", ".pyenv/shims", ".pyenv/bin"],
    sees: [".pyenv/shims/python3", ".pyenv/libexec/pyenv", ".pyenv/versions/3.12.1/bin/python3", ".pyenv/version"],
    inside: [".pyenv/shims", ".pyenv/bin"],
    env: (at) => ({ PYENV_ROOT: `${at}/.pyenv` }),
  },
  {
    name: "nvm",
    files: {
      ".nvm/versions/node/v24.1.0/bin/node": "x",
      ".nvm/versions/node/v24.1.0/lib/node_modules/npm/cli.js": "x",
      ".nvm/versions/node/v24.1.0/lib/node_modules/npm/npmrc": SECRET,
      ".nvm/versions/node/v24.1.0/etc/npmrc": SECRET,
      ".nvm/versions/node/v20.0.0/etc/npmrc": SECRET,
      ".nvm/.git/config": SECRET,
    },
    path: [".nvm/versions/node/v24.1.0/bin"],
    sees: [".nvm/versions/node/v24.1.0/bin/node", ".nvm/versions/node/v24.1.0/lib/node_modules/npm/cli.js"],
    inside: [".nvm/versions/node/v24.1.0/bin"],
  },
  {
    name: "fnm, through the link of a shell",
    files: {
      ".local/share/fnm/node-versions/v24/installation/bin/node": "x",
      ".local/share/fnm/node-versions/v24/installation/etc/npmrc": SECRET,
      "multishell/1": "->../.local/share/fnm/node-versions/v24/installation",
    },
    path: ["multishell/1/bin"],
    sees: [".local/share/fnm/node-versions/v24/installation/bin/node"],
    inside: [".local/share/fnm/node-versions/v24/installation/bin"],
  },
  {
    name: "volta",
    files: {
      ".volta/bin/node": "x",
      ".volta/hooks.json": SECRET,
      ".volta/tools/user/platform.json": '{"node":{"runtime":"24.1.0","npm":null}}',
      ".volta/tools/image/node/24.1.0/bin/node": "x",
      ".volta/tools/image/node/24.1.0/etc/npmrc": SECRET,
    },
    path: [".volta/bin"],
    sees: [".volta/tools/image/node/24.1.0/bin/node"],
    inside: [".volta/tools/image/node/24.1.0/bin"],
  },
  {
    name: "mise, through its shims",
    files: {
      ".local/share/mise/shims/node": "->/usr/bin/mise",
      ".local/share/mise/installs/node/24.1.0/bin/node": "x",
      ".local/share/mise/installs/node/24.1.0/etc/npmrc": SECRET,
      ".local/share/mise/installs/node/latest": "->./24.1.0",
      ".local/share/mise/installs/python/3.9.1/bin/python": "x",
      ".local/share/mise/installs/python/3.12.1/bin/python": "x",
      ".local/share/mise/installs/python/3.12.1/pip.conf": SECRET,
      ".config/mise/config.toml": SECRET,
      ".local/state/mise/x": SECRET,
    },
    path: [".local/share/mise/shims"],
    sees: [".local/share/mise/installs/node/24.1.0/bin/node", ".local/share/mise/installs/python/3.12.1/bin/python"],
    inside: [".local/share/mise/installs/node/24.1.0/bin", ".local/share/mise/installs/python/3.12.1/bin"],
  },
  {
    name: "mise, activated",
    files: { ".local/share/mise/installs/go/1.24.0/bin/go": "x", ".config/mise/config.toml": SECRET },
    path: [".local/share/mise/installs/go/1.24.0/bin"],
    sees: [".local/share/mise/installs/go/1.24.0/bin/go"],
    inside: [".local/share/mise/installs/go/1.24.0/bin"],
  },
  {
    name: "asdf",
    files: {
      ".tool-versions": "python 3.11.2\nnodejs 24.1.0\n",
      ".asdfrc": SECRET,
      ".asdf/shims/python": "x",
      ".asdf/installs/python/3.11.2/bin/python": "x",
      ".asdf/installs/python/3.13.0/bin/python": "x",
      ".asdf/installs/nodejs/24.1.0/bin/node": "x",
      ".asdf/installs/nodejs/24.1.0/.npm/lib": SECRET,
      ".asdf/plugins/x/.git/config": SECRET,
    },
    path: [".asdf/shims"],
    sees: [".asdf/installs/python/3.11.2/bin/python", ".asdf/installs/nodejs/24.1.0/bin/node"],
    inside: [".asdf/installs/nodejs/24.1.0/bin", ".asdf/installs/python/3.11.2/bin"],
  },
  {
    name: "go",
    files: {
      "go/bin/gopls": "x",
      "go/pkg/mod/private/x.go": SECRET,
      ".config/go/env": SECRET,
      "sdk/go1.24.0/VERSION": "go1.24.0",
      "sdk/go1.24.0/bin/go": "x",
    },
    path: ["go/bin", "sdk/go1.24.0/bin"],
    sees: ["go/bin/gopls", "sdk/go1.24.0/bin/go"],
    inside: ["go/bin", "sdk/go1.24.0/bin"],
  },
  {
    name: "sdkman",
    files: {
      ".sdkman/candidates/java/21.0.1-tem/bin/java": "x",
      ".sdkman/candidates/java/current": "->21.0.1-tem",
      ".sdkman/candidates/maven/3.9.0/bin/mvn": "x",
      ".sdkman/candidates/maven/3.9.0/conf/settings.xml": `<settings><servers><server><password>${SECRET}</password></server></servers></settings>`,
      ".sdkman/candidates/maven/current": "->3.9.0",
      ".sdkman/etc/config": SECRET,
      ".m2/settings.xml": SECRET,
    },
    path: [".sdkman/candidates/java/current/bin", ".sdkman/candidates/maven/current/bin"],
    sees: [".sdkman/candidates/java/21.0.1-tem/bin/java"],
    inside: [".sdkman/candidates/java/21.0.1-tem/bin"],
    env: (at) => ({ JAVA_HOME: `${at}/.sdkman/candidates/java/21.0.1-tem` }),
  },
  {
    name: "bun and deno",
    files: {
      ".bun/bin/bun": "x",
      ".bun/install/cache/private": SECRET,
      ".bunfig.toml": SECRET,
      ".deno/bin/deno": "x",
      ".deno/credentials": SECRET,
    },
    path: [".bun/bin", ".deno/bin"],
    sees: [".bun/bin/bun", ".deno/bin/deno"],
    inside: [".bun/bin", ".deno/bin"],
  },
  {
    name: "single programs in ~/.local/bin",
    files: {
      ".local/bin/uv": "\x7fELF…",
      ".local/bin/deploy": `#!/bin/sh\nTOKEN=${SECRET}\n`,
      ".local/bin/just": `#!/bin/sh\n# ${SECRET}`,
    },
    path: [".local/bin"],
    sees: [".local/bin/uv"],
    inside: [".local/bin"],
  },
  {
    name: "agents where their own installers put them",
    files: {
      ".local/bin/claude": "->../share/claude/versions/1.0.58",
      ".local/share/claude/versions/1.0.58": "\x7fELF…",
      ".local/share/claude/token": SECRET,
      ".local/bin/cursor-agent": "->../share/cursor-agent/versions/7/cursor-agent",
      ".local/share/cursor-agent/versions/7/cursor-agent": "#!/bin/sh",
      ".local/share/cursor-agent/versions/7/index.js": "x",
      ".local/bin/codex": "->../lib/node_modules/@openai/codex/bin/codex.js",
      ".local/lib/node_modules/@openai/codex/bin/codex.js": "x",
      ".local/lib/node_modules/private/index.js": SECRET,
      ".local/bin/gemini": "->../../.netrc",
      ".opencode/bin/opencode": "\x7fELF…",
      ".opencode/auth.json": SECRET,
      ".npm-global/bin/qwen": "->../lib/node_modules/qwen/cli.js",
      ".npm-global/lib/node_modules/qwen/cli.js": "x",
      ".npm-global/etc/npmrc": SECRET,
    },
    path: [".local/bin", ".opencode/bin", ".npm-global/bin"],
    sees: [
      ".local/share/claude/versions/1.0.58",
      ".local/share/cursor-agent/versions/7/index.js",
      ".local/lib/node_modules/@openai/codex/bin/codex.js",
      ".opencode/bin/opencode",
      ".npm-global/lib/node_modules/qwen/cli.js",
    ],
    inside: [".local/bin", ".opencode/bin", ".npm-global/bin"],
  },
];

describe("toolchains in the user's home", () => {
  it.each(cases)("$name: show the programs, and no credentials", async ({ files, path, sees, inside, env }) => {
    plant({ ...homeSecrets, ...files });
    const found = await template(...path);
    const seen = visible(found);
    expect([...seen.keys()]).toEqual(expect.arrayContaining(sees));
    expect([...seen].filter(([, content]) => content.includes(SECRET)).map(([name]) => name)).toEqual([]);
    expect(pathInside(found)).toEqual(inside);
    expect(found.env).toMatchObject(env?.(home) ?? {});
    // Mount points exist with all their parents, and no folder above a mount shows its content.
    const folders = new Set(found.folders.map((folder) => folder.path));
    for (const bind of found.binds) {
      for (let at = bind.kind === "folder" ? bind.target : dirname(bind.target); at !== "/"; at = dirname(at))
        expect(folders.has(at), at).toBe(true);
    }
    expect(found.binds.some(({ source }) => home === source || home.startsWith(`${source}/`))).toBe(false);
  });
});
