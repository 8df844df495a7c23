import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { useRunsCli } from "../support/runs-cli.ts";

const cli = useRunsCli();
const ok = async (argv: readonly string[], cwd: string, env: Record<string, string> = {}) => {
  const result = await cli.run(argv, { cwd, env });
  expect(result.code, `${argv.join(" ")}: ${result.stderr}${result.text}`).toBe(0);
  return result;
};

/** Everything confidential that Caisson creates for one sandbox. */
function confidentialOf(sandbox: string): Record<string, string> {
  const folder = join(cli.home(), "sandboxes", sandbox);
  const network = readdirSync(folder).find((name) => /^network-\d+\.json$/.test(name)) ?? "";
  const { authority } = JSON.parse(readFileSync(join(folder, network), "utf8")) as {
    authority: { keyPem: string; certificatePem: string };
  };
  const secondLine = (pem: string) => pem.split("\n")[1] ?? "";
  return {
    "the guest's token": readFileSync(join(folder, "token"), "latin1"),
    // A fork has none before it uses its access.
    ...(existsSync(join(folder, "station-key")) && {
      "the key of its station access": readFileSync(join(folder, "station-key"), "latin1"),
    }),
    "its authority's key": secondLine(authority.keyPem),
    "its authority's certificate": secondLine(authority.certificatePem),
  };
}

/** Returns every file below these folders of the state folder, and what it is. */
function stored(): { path: string; content: string; isSocket: boolean }[] {
  return ["layers", "snapshots", "sessions", "builds"].flatMap((name) => {
    const folder = join(cli.home(), name);
    const entries = existsSync(folder) ? readdirSync(folder, { recursive: true, withFileTypes: true }) : [];
    return entries.map((entry) => {
      const path = join(entry.parentPath, entry.name);
      return { path, content: entry.isFile() ? readFileSync(path, "latin1") : entry.name, isSocket: entry.isSocket() };
    });
  });
}

test("points, snapshots and sessions contain nothing confidential of their sandbox", { timeout: 240_000 }, async () => {
  const cwd = await cli.folder({ "a.txt": "a\n" });
  const secret = join(await cli.folder({ token: "value-of-the-secret" }), "token");
  const env = { ANTHROPIC_API_KEY: "sk-ant-key-of-the-provider" };
  const options = ["--network", "example.org", "--secret", `TOKEN@example.org;from=file:${secret}`, "--gateway", "anthropic"];
  const access = [...options, "--station-access", "--allow-root", "--runtime", "oci"];
  // Programs that read what they are given, and bind a socket.
  const use = `cat /run/caisson/* > /dev/null; env > /dev/null; echo marker-of-the-test | tee marker ~/marker; sudo touch /etc/marker
    python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("own.sock")'; git ls-remote https://example.invalid; true`;

  const { id } = JSON.parse((await ok(["sandbox", "create", ...access, "--json"], cwd, env)).text) as { id: string };
  await ok(["exec", "--sandbox", id, "--", "sh", "-c", use], cwd, env);
  const { text: token } = await ok(["exec", "--sandbox", id, "--", "sh", "-c", "printf %s $CAISSON_SANDBOX_TOKEN"], cwd, env);
  await ok(["sandbox", "snapshot", id, "--name", "taken"], cwd, env);
  await ok(["sandbox", "fork", id], cwd, env);

  const turns = [
    { calls: [{ tool: "bash", arguments: { command: use } }] },
    { calls: [{ tool: "bash", arguments: { command: "sleep 1000" } }] },
  ];
  const model = await cli.script({ turns });
  const going = cli.start(["run", "use it", "--json", "--model", model, ...access], { cwd, env });
  await going.event("step.ended");
  await going.event("tool.started", (event) => event.data.call.includes("2."));
  const { data: created } = await going.event("run.created");
  await ok(["session", "fork", `${created.run}@1`, "--name", "copy"], cwd, env);

  const all = readdirSync(join(cli.home(), "sandboxes")).map(confidentialOf);
  expect(all).toHaveLength(3);
  const known = { "the secret": "value-of-the-secret", "the provider's key": "sk-ant-key-of-the-provider", "its token": token };
  const values = [...all, known].flatMap((each) => Object.entries(each));
  for (const [, value] of values) expect(value.length).toBeGreaterThan(15);
  const files = stored();
  // The search finds what the programs themselves wrote.
  expect(files.filter(({ content }) => content.includes("marker-of-the-test")).length).toBeGreaterThan(3);
  const found = files.flatMap(({ path, content }) =>
    values.flatMap(([what, value]) => (content.includes(value) ? [`${what} in ${path}`] : [])),
  );
  expect(found).toEqual([]);
  expect(files.filter(({ isSocket, path }) => isSocket && !path.includes("/layer/upper/")).map(({ path }) => path)).toEqual([]);
  await ok(["stop", created.run], cwd, env);
  await going.ended;
});
