import { execFile, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type RegistryProxy, startRegistryProxy } from "../../../test/support/network/registries/registry-proxy.ts";
import { DEBIAN_SUITE, type RegistryServer, startRegistryServer } from "../../../test/support/network/registries/registry-server.ts";
import { debianHost } from "./registries/debian.ts";
import { npmHosts } from "./registries/npm.ts";

/**
 * Real clients as installed on this machine, with the settings of a sandbox and none of the machine's own, behind a
 * sandbox's proxy.
 */
let folder: string;
let registry: RegistryServer;
let proxy: RegistryProxy;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "caisson-test-"));
  registry = await startRegistryServer();
  proxy = await openProxy();
});
afterEach(async () => {
  await proxy[Symbol.asyncDispose]();
  await registry[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

function openProxy(options: { offline?: boolean } = {}): Promise<RegistryProxy> {
  const registries = ["npm", "pypi", "crates", "go", "debian"] as const;
  return startRegistryProxy({ cacheDir: join(folder, "cache"), registries, upstreams: registry.upstreams, folder, ...options });
}

const found = (program: string) => (process.env.PATH ?? "").split(delimiter).some((place) => existsSync(join(place, program)));

/** Runs with a fresh home each time, so that only the mirror remembers anything. */
function run(argv: readonly string[], options: { cwd?: string; env?: Record<string, string>; home?: string } = {}) {
  const home = options.home ?? mkdtempSync(join(folder, "home-"));
  const env = { PATH: process.env.PATH, HOME: home, LANG: "C.UTF-8", ...proxy.env, ...options.env };
  return new Promise<{ code: number; output: string }>((resolve) => {
    const [program = "", ...rest] = argv;
    execFile(program, rest, { cwd: options.cwd ?? home, env, timeout: 50_000, maxBuffer: 1 << 24 }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : 1, output: `${stdout}\n${stderr}` });
    });
  });
}

/** Stops the registry and starts a new mirror that shares only the cache, like another process. */
async function goOffline(): Promise<void> {
  await registry.stop();
  await proxy[Symbol.asyncDispose]();
  proxy = await openProxy();
}

function project(name: string, files: Record<string, string>): string {
  const path = join(folder, name);
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(dirname(join(path, file)), { recursive: true });
    writeFileSync(join(path, file), text);
  }
  return path;
}

const manifest = JSON.stringify({ name: "x", version: "1.0.0", dependencies: { "@caisson/scoped": "^2.0.0", "caisson-old": "*" } });

test.skipIf(!found("npm"))("npm installs despite an unanswered audit request, and again offline", async () => {
  const first = project("first", { "package.json": manifest });
  const installed = await run(["npm", "install", "--audit"], { cwd: first });
  expect(installed, installed.output).toMatchObject({ code: 0 });
  expect(installed.output).not.toContain("found 0 vulnerabilities");
  expect(readFileSync(join(first, "node_modules/caisson-left/index.js"), "utf8")).toContain("1.1.0");
  await goOffline();
  const second = project("second", { "package.json": manifest });
  const again = await run(["npm", "install"], { cwd: second });
  expect(again, again.output).toMatchObject({ code: 0 });
  expect(existsSync(join(second, "node_modules/@caisson/scoped/index.js"))).toBe(true);
});

const publicNpm = `https://${npmHosts.npm}`;
const isPublicReachable = () =>
  fetch(`${publicNpm}/left-pad`, { signal: AbortSignal.timeout(5_000) }).then(
    ({ ok }) => ok,
    () => false,
  );

test.skipIf(!found("npm"))("npm's lock file names the public registry, and npm ci follows it outside", async () => {
  const cwd = project("inside", { "package.json": manifest });
  const installed = await run(["npm", "install"], { cwd });
  expect(installed, installed.output).toMatchObject({ code: 0 });
  const lock = readFileSync(join(cwd, "package-lock.json"), "utf8");
  expect(lock.match(/"resolved": "[^"]+"/g)).toEqual(
    ["@caisson/scoped/-/scoped-2.0.0.tgz", "caisson-left/-/caisson-left-1.1.0.tgz", "caisson-old/-/caisson-old-0.0.1.tgz"].map(
      (path) => `"resolved": "${publicNpm}/${path}"`,
    ),
  );
  const outside = project("outside", { "package.json": manifest, "package-lock.json": lock });
  await proxy[Symbol.asyncDispose]();
  const none = Object.fromEntries(Object.keys(proxy.env).map((name) => [name, ""]));
  const again = await run(["npm", "ci"], { cwd: outside, env: { ...none, npm_config_registry: registry.upstreams.npm } });
  expect(again, again.output).toMatchObject({ code: 0 });
  expect(readFileSync(join(outside, "package-lock.json"), "utf8")).toBe(lock);
  proxy = await openProxy();
});

test("yarn and pnpm write the same lock files as outside", async ({ skip }) => {
  const clients = otherClients((await isPublicReachable()) ? publicNpm : null);
  if (clients === null) skip("they are not here, and the public registry cannot be reached");
  const yarn = project("yarn", { "package.json": manifest });
  const installed = await run([join(clients as string, "yarn"), "install", "--no-progress"], { cwd: yarn });
  expect(installed, installed.output).toMatchObject({ code: 0 });
  const lock = readFileSync(join(yarn, "yarn.lock"), "utf8");
  expect(lock.match(/resolved "[^"#]+/g)).toHaveLength(3);
  for (const resolved of lock.match(/resolved "[^"#]+/g) ?? []) expect(resolved).toMatch(/^resolved "https:\/\/registry\.yarnpkg\.com\//);
  const pnpm = project("pnpm", { "package.json": manifest });
  const added = await run([join(clients as string, "pnpm"), "install"], { cwd: pnpm });
  expect(added, added.output).toMatchObject({ code: 0 });
  expect(readFileSync(join(pnpm, "pnpm-lock.yaml"), "utf8")).not.toMatch(/https?:|127\.0\.0\.1/);
});

/**
 * Returns the folder of their programs. They are fetched once into this clone's cache, because they are too large to
 * install with everything else.
 */
function otherClients(publicRegistry: string | null): string | null {
  const cache = join(import.meta.dirname, "../../../node_modules/.cache/caisson-test-clients");
  const programs = join(cache, "node_modules/.bin");
  if (existsSync(join(programs, "pnpm"))) return programs;
  if (publicRegistry === null) return null;
  mkdirSync(cache, { recursive: true });
  // Without a package.json, npm installs into the surrounding project.
  writeFileSync(join(cache, "package.json"), "{}");
  const argv = [
    "install",
    "--prefix",
    cache,
    "--no-save",
    "--no-audit",
    "--no-fund",
    `--registry=${publicRegistry}`,
    "yarn@1.22.22",
    "pnpm@9.15.9",
  ];
  return spawnSync("npm", argv, { cwd: cache, timeout: 60_000 }).status === 0 ? programs : null;
}

test.skipIf(!found("npm"))("npm ci follows a lock file with addresses of the public registry", async () => {
  const shasum = async (name: string, version: string) => {
    const page = await fetch(`${registry.url}/npm/${name}/${version}`);
    return ((await page.json()) as { dist: { integrity: string } }).dist.integrity;
  };
  const packages = {
    "": { name: "x", version: "1.0.0", dependencies: { "caisson-left": "^1.0.0" } },
    "node_modules/caisson-left": {
      version: "1.0.0",
      resolved: `${publicNpm}/caisson-left/-/caisson-left-1.0.0.tgz`,
      integrity: await shasum("caisson-left", "1.0.0"),
    },
  };
  const lock = JSON.stringify({ name: "x", version: "1.0.0", lockfileVersion: 3, requires: true, packages });
  const cwd = project("locked", { "package.json": JSON.stringify(packages[""]), "package-lock.json": lock });
  const installed = await run(["npm", "ci"], { cwd });
  expect(installed, installed.output).toMatchObject({ code: 0 });
  expect(readFileSync(join(cwd, "node_modules/caisson-left/index.js"), "utf8")).toContain("1.0.0");
});

test.skipIf(!found("npm"))("npm reports at once that an offline mirror lacks a package", async () => {
  await proxy[Symbol.asyncDispose]();
  proxy = await openProxy({ offline: true });
  const cwd = project("nothing", { "package.json": manifest });
  const failed = await run(["npm", "install"], { cwd });
  expect(failed.code).toBe(1);
  expect(failed.output).toContain("offline");
});

test.skipIf(!found("npm"))("npm installs from the public registry if it is reachable, and again offline", async ({ skip }) => {
  const start = (options: { offline?: boolean } = {}) =>
    startRegistryProxy({ cacheDir: join(folder, "public"), registries: ["npm"], folder, ...options });
  await proxy[Symbol.asyncDispose]();
  proxy = await start();
  if (!(await isPublicReachable())) skip("the public registry cannot be reached from here");
  const files = { "package.json": JSON.stringify({ name: "x", version: "1.0.0", dependencies: { "left-pad": "1.3.0" } }) };
  for (const name of ["first", "second"]) {
    const cwd = project(name, files);
    const installed = await run(["npm", "install"], { cwd });
    expect(installed, installed.output).toMatchObject({ code: 0 });
    expect(existsSync(join(cwd, "node_modules/left-pad/index.js"))).toBe(true);
    await proxy[Symbol.asyncDispose]();
    proxy = await start({ offline: true });
  }
});

test.skipIf(!found("pip"))("pip installs a wheel and its dependency, and again without the registry", async () => {
  const install = (target: string) =>
    run(["pip", "install", "--target", join(folder, target), "caisson-wheel"], {
      env: { PIP_CONFIG_FILE: "/dev/null", PIP_DISABLE_PIP_VERSION_CHECK: "1", PYENV_ROOT: join(homedir(), ".pyenv") },
    });
  const installed = await install("one");
  expect(installed, installed.output).toMatchObject({ code: 0 });
  expect(readFileSync(join(folder, "one/caisson_dep.py"), "utf8")).toContain("1.2");
  await goOffline();
  const again = await install("two");
  expect(again, again.output).toMatchObject({ code: 0 });
  expect(existsSync(join(folder, "two/caisson_wheel.py"))).toBe(true);
});

test.skipIf(!found("cargo"))("cargo fetches, and again without the registry", async () => {
  const files = {
    "Cargo.toml": '[package]\nname = "x"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\ncaisson-tiny = "0.1"\n',
    "src/main.rs": 'fn main() { println!("{}", caisson_tiny::NAME); }\n',
  };
  const env = { RUSTUP_HOME: process.env.RUSTUP_HOME ?? join(homedir(), ".rustup"), CARGO_NET_RETRY: "0" };
  const fetchInto = (name: string) => run(["cargo", "fetch"], { cwd: project(name, files), env });
  const fetched = await fetchInto("one");
  expect(fetched, fetched.output).toMatchObject({ code: 0 });
  await goOffline();
  const again = await fetchInto("two");
  expect(again, again.output).toMatchObject({ code: 0 });
  const lock = readFileSync(join(folder, "two/Cargo.lock"), "utf8");
  expect(lock).toContain('version = "0.1.0"\nsource = "registry+https://github.com/rust-lang/crates.io-index"');
  expect(lock).not.toContain("127.0.0.1");
});

test.skipIf(!found("apt-get"))("apt updates and downloads with its sources unchanged, and again offline", async () => {
  const host = debianHost;
  const apt = (name: string) => {
    const root = join(folder, name);
    for (const part of [
      "etc/apt/sources.list.d",
      "etc/apt/apt.conf.d",
      "etc/apt/preferences.d",
      "var/lib/apt/lists/partial",
      "var/cache/apt/archives/partial",
      "var/lib/dpkg",
    ])
      mkdirSync(join(root, part), { recursive: true });
    writeFileSync(join(root, "etc/apt/sources.list"), `deb [trusted=yes] http://${host}/debian ${DEBIAN_SUITE} main\n`);
    writeFileSync(join(root, "var/lib/dpkg/status"), "");
    const settings = proxy.files.find(({ path }) => path === proxy.env.APT_CONFIG);
    writeFileSync(join(root, "apt.conf"), `${settings?.text}Dir "${root}";\nAPT::Sandbox::User "root";\n`);
    const env = { APT_CONFIG: join(root, "apt.conf") };
    return {
      update: () => run(["apt-get", "update"], { env }),
      download: () => run(["apt-get", "download", "caisson-tool"], { env, cwd: root }),
      root,
    };
  };
  for (const name of ["one", "two"]) {
    const { update, download, root } = apt(name);
    const updated = await update();
    expect(updated, updated.output).toMatchObject({ code: 0 });
    expect(updated.output).not.toMatch(/^(W|E):/m);
    const downloaded = await download();
    expect(downloaded, downloaded.output).toMatchObject({ code: 0 });
    expect(
      readFileSync(join(root, "caisson-tool_1.0_all.deb")).equals(
        registry.body("/debian/pool/main/c/caisson-tool/caisson-tool_1.0_all.deb"),
      ),
    ).toBe(true);
    if (name === "one") await goOffline();
  }
});

test.skipIf(!found("go"))("go gets a module, and again without the registry", async () => {
  const files = { "go.mod": "module x\n\ngo 1.20\n", "x.go": 'package x\n\nimport _ "example.com/Tiny"\n' };
  const env = { GOSUMDB: "off", GOFLAGS: "-modcacherw" };
  for (const name of ["one", "two"]) {
    const got = await run(["go", "get", "example.com/Tiny@latest"], { cwd: project(name, files), env });
    expect(got, got.output).toMatchObject({ code: 0 });
    if (name === "one") await goOffline();
  }
});
