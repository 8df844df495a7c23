import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createInside, type Inside } from "../support/network/inside.ts";
import { useMachine } from "../support/network/run-in.ts";
import { useCaisson } from "./caisson-process.ts";

const machine = useMachine();
const network = "api.example.com,GET cdn.example.net/public,git.example.com,npm.example.org,pypi.example.org";
const NOT_ALLOWED = /evil\.example\.net is not on this sandbox's list of allowed hosts/;

describe("unmodified programs", () => {
  let inside: Inside;
  beforeAll(async () => {
    inside = await createInside(machine, ["--network", network]);
  });
  afterAll(() => inside.remove());
  const both = async (script: string) => {
    const { code, stdout, stderr } = await inside.sh(script);
    return { code, said: stdout + stderr };
  };

  test("curl", async () => {
    for (const url of ["http://api.example.com/x", "https://api.example.com/x"]) {
      expect(JSON.parse(await inside.ok(`curl -sS -d body ${url}`)), url).toMatchObject({ method: "POST", path: "/x", body: "body" });
    }
    expect((await both("curl -sS http://evil.example.net/")).said).toMatch(NOT_ALLOWED);
    expect(await both("curl -sSv https://evil.example.net/")).toMatchObject({ code: 56, said: expect.stringMatching(NOT_ALLOWED) });
    expect((await both("curl -sS --proxy socks5h://127.0.0.1:19080 https://api.example.com/socks")).said).toContain('"path":"/socks"');
    expect((await both("curl -sS --proxy socks5h://127.0.0.1:19080 https://evil.example.net/")).said).toMatch(
      /SOCKS5 connection to evil\.example\.net\. \(2\)/,
    );
  });

  test("method and path rules apply to https, and denials name them", async () => {
    expect(await inside.ok("curl -sS https://cdn.example.net/public/a")).toContain('"path":"/public/a"');
    expect((await both("curl -sS -X POST https://cdn.example.net/public/a")).said).toMatch(/POST is not allowed on cdn\.example\.net/);
    for (const path of ["/publicity", "/", "/public/../private", "/public/%2e%2e/private"]) {
      expect((await both(`curl -sS --path-as-is 'https://cdn.example.net${path}'`)).said, path).toMatch(/path_not_allowed/);
    }
  });

  test("git clones and fetches, and reports a denied host", async () => {
    const url = machine.internet.repository("tools");
    expect(await inside.ok(`cd /tmp && git clone -q ${url} && cat tools/README && git -C tools fetch -q && echo fetched`)).toBe(
      "from the rig\nfetched\n",
    );
    expect(await both("cd /tmp && git clone -q https://evil.example.net/x.git 2>&1")).toMatchObject({
      code: 128,
      said: expect.stringMatching(/403/),
    });
  });

  test("npm install", async () => {
    const install = "mkdir -p /tmp/npm && cd /tmp/npm && npm init -y >/dev/null && npm install --no-audit --no-fund";
    const ok = await both(`${install} --registry https://npm.example.org/ @caisson/scoped && node -p 'require("caisson-left")'`);
    expect(ok, ok.said).toMatchObject({ code: 0, said: expect.stringContaining("caisson-left 1.1.0") });
    const denied = await both(`${install} --fetch-retries 0 --registry https://evil.example.net/ caisson-left`);
    expect(denied.code).not.toBe(0);
    expect(denied.said).toMatch(NOT_ALLOWED);
  });

  test("pip install", async () => {
    const install = "PIP_DISABLE_PIP_VERSION_CHECK=1 /usr/bin/python3 -m pip install --break-system-packages --retries 1 --target /tmp/pip";
    const ok = await both(
      `${install} -i https://pypi.example.org/simple/ caisson-wheel && PYTHONPATH=/tmp/pip /usr/bin/python3 -c 'import caisson_wheel; print(caisson_wheel.value)'`,
    );
    expect(ok, ok.said).toMatchObject({ code: 0, said: expect.stringContaining("caisson-wheel 1.0") });
    const denied = await both(`${install} -i https://evil.example.net/simple/ caisson-wheel`);
    expect(denied.code).not.toBe(0);
    expect(denied.said).toMatch(NOT_ALLOWED);
  });

  test("node with fetch and with http", async () => {
    const fetching = (url: string) =>
      `fetch("${url}").then(r => r.text()).then(console.log, e => console.log(e.message, e.cause?.message ?? ""))`;
    expect(await inside.ok(`node -e '${fetching("https://api.example.com/node")}'`)).toContain('"path":"/node"');
    expect(await inside.ok(`node -e '${fetching("http://api.example.com/node")}'`)).toContain('"path":"/node"');
    expect(await inside.ok(`node -e '${fetching("https://evil.example.net/")}'`)).toMatch(NOT_ALLOWED);
    const own = 'require("https").get("https://api.example.com/own", r => r.pipe(process.stdout)).on("error", console.log)';
    expect(await inside.ok(`node -e '${own}'`)).toContain('"path":"/own"');
  });

  test("python with urllib, and with requests if it is installed", async () => {
    const get = (url: string) => `import urllib.request as u; print(u.urlopen("${url}").read().decode())`;
    expect(await inside.ok(`python3 -c '${get("https://api.example.com/py")}'`)).toContain('"path":"/py"');
    expect((await both(`python3 -c '${get("https://evil.example.net/")}'`)).said).toMatch(NOT_ALLOWED);
    const requests = await both(`python3 -c 'import requests; print(requests.get("https://api.example.com/requests").text)'`);
    if (!requests.said.includes("No module named")) expect(requests.said).toContain('"path":"/requests"');
  });

  test.skipIf(!existsSync("/usr/bin/java"))("java", async () => {
    const source = (url: string) => `
      import java.net.*; import java.net.http.*;
      public class Get { public static void main(String[] a) throws Exception {
        System.out.println(new String(new URL("${url}").openStream().readAllBytes()));
        System.out.println(HttpClient.newHttpClient().send(HttpRequest.newBuilder(URI.create("${url}")).build(), HttpResponse.BodyHandlers.ofString()).body());
      } }`;
    const run = (url: string) => both(`cat > /tmp/Get.java <<'END'\n${source(url)}\nEND\njava /tmp/Get.java 2>&1`);
    const ok = await run("https://api.example.com/java");
    if (/compiler|jdk\.compiler/.test(ok.said)) return;
    expect(ok.said.match(/"path":"\/java"/g), ok.said).toHaveLength(2);
    expect((await run("https://evil.example.net/")).said).toMatch(/403|evil/);
  });
});

describe("packages through the host's cache (--network registries)", () => {
  test("work for npm and pip without settings, the second time from the cache", async () => {
    const { internet, home } = machine;
    mkdirSync(home, { recursive: true });
    const registries = { npm: "https://npm.example.org/", pypi: "https://pypi.example.org/" };
    writeFileSync(join(home, "config.json"), JSON.stringify({ network: { caFiles: [internet.certificates.authorityFile], registries } }));
    const script = [
      "cd /tmp && npm init -y >/dev/null && npm install --no-audit --no-fund @caisson/scoped >/dev/null",
      'grep -c \'"resolved": "https://npm.example.org/\' package-lock.json',
      "node -p 'require(\"caisson-left\")'",
      "/usr/bin/python3 -m pip install -q --break-system-packages --target /tmp/pip caisson-wheel",
      "PYTHONPATH=/tmp/pip /usr/bin/python3 -c 'import caisson_wheel; print(caisson_wheel.value)'",
      "curl -sS -o /dev/null -w '%{http_code}\\n' http://npm.example.org/caisson-left",
    ].join(" && ");
    await internet.world.seen({ take: true });
    for (const time of ["first", "second"]) {
      const ran = await machine.run(["exec", "--no-workspace", "--network", "registries", "--", "sh", "-c", script]);
      expect(ran, `${time}: ${ran.stderr}`).toMatchObject({ code: 0, stdout: "2\ncaisson-left 1.1.0\ncaisson-wheel 1.0\n403\n" });
      const paths = (await internet.world.seen({ take: true })).requests.map(({ path }) => path);
      if (time === "first") expect(paths).toContain("/caisson-left/-/caisson-left-1.1.0.tgz");
      else expect(paths.filter((path) => /\.(tgz|whl)$/.test(path))).toEqual([]);
    }
    rmSync(join(home, "config.json"));
  });

  test("report an unreachable registry and an unknown host on standard error", async () => {
    const { home } = machine;
    const registries = { npm: "https://nowhere.example.org/" };
    writeFileSync(join(home, "config.json"), JSON.stringify({ network: { registries } }));
    const script = "curl -s -o /dev/null https://unknown.example.com; cd /tmp && npm view --fetch-retries=0 caisson-left";
    const ran = await machine.run(["exec", "--no-workspace", "--network", "registries:npm,unknown.example.com", "--", "sh", "-c", script]);
    rmSync(join(home, "config.json"));
    const reports = ran.stderr.split("\n").filter((line) => line.startsWith("caisson: network: "));
    expect(reports).toEqual([
      expect.stringMatching(
        /^caisson: network: Unknown host: a connection to unknown\.example\.com:443\. Why: there is no host named .*\(unknown_host\)$/,
      ),
      expect.stringMatching(
        /^caisson: network: the npm registry is not available: nowhere\.example\.org cannot be reached: .*\(unknown_host\)$/,
      ),
    ]);
  });
});

const npm = { host: "registry", domain: "npmjs.org" };
const reachable =
  spawnSync("curl", ["-sf", "-o", "/dev/null", "--max-time", "5", `https://${npm.host}.${npm.domain}/is-number`]).status === 0;

/** Uses this machine's network, not the rig's. */
describe.skipIf(!reachable)(`the machine's real npm registry${reachable ? "" : " (not reachable from here)"}`, () => {
  const { run } = useCaisson();
  test("npm install works through an allow-list and through the cache", async () => {
    const install =
      "cd /tmp && npm init -y >/dev/null && npm install --no-audit --no-fund is-number >/dev/null && node -p 'require(\"is-number\")(5)'";
    for (const network of [`${npm.host}.${npm.domain}`, "registries:npm"]) {
      const ran = await run(["exec", "--no-workspace", "--network", network, "--", "sh", "-c", install]);
      expect(ran, network + ran.stderr).toMatchObject({ code: 0, text: "true\n" });
    }
  });
});
