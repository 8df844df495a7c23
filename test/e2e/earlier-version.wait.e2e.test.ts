import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { useRunsCli } from "../support/runs-cli.ts";

const cli = useRunsCli();
const ok = async (argv: readonly string[], cwd: string) => {
  const result = await cli.run(argv, { cwd });
  expect(result.code, `${argv.join(" ")}: ${result.stderr}${result.text}`).toBe(0);
  return result;
};
const bash = (command: string) => ({ calls: [{ tool: "bash", arguments: { command } }] });
const layersIn = () => (existsSync(join(cli.home(), "layers")) ? readdirSync(join(cli.home(), "layers")) : []);

/** Gives a session the form of earlier versions, which stored whole copies of the workspace's layer before each turn. */
function ageSession(session: string, { copy, run }: { copy: string; run: string }): void {
  const dir = join(cli.home(), "sessions", session);
  const layer = join(dir, "layer");
  for (const name of readdirSync(layer))
    if (/^(?:machine|view)\.json$|^points$|^index-|^(?:root|bind)-/.test(name)) rmSync(join(layer, name), { recursive: true });
  rmSync(join(cli.home(), "layers"), { recursive: true });
  renameSync(copy, join(layer, "copy-copy_aaaaaaaaaaaa"));
  const files = { kind: "layer", copy: "copy_aaaaaaaaaaaa" };
  const { points } = JSON.parse(readFileSync(join(dir, "restore-points.json"), "utf8")) as { points: { turnSeq?: number }[] };
  const turnSeq = points.findLast((point) => point.turnSeq !== undefined)?.turnSeq;
  writeFileSync(join(dir, "restore-points.json"), JSON.stringify({ points: [{ run, turnSeq, files }] }));
}

test("points, forks and snapshots of an earlier version stay usable", { timeout: 240_000 }, async () => {
  const cwd = await cli.folder({ "a.txt": "zero\n" });
  const turns = [
    bash("echo one > a.txt; ln -s a.txt link; mkdir d; echo x > d/x; echo home > ~/mine"),
    { say: "One." },
    bash("echo two > a.txt; rm -r link d; mkdir e; echo e > e/e"),
    { say: "Two." },
    bash("echo three > a.txt; cat ~/mine >> a.txt"),
    { say: "Three." },
  ];
  const model = await cli.script({ turns });
  await ok(["run", "first", "--model", model, "--runtime", "oci", "--session", "mine"], cwd);
  const copy = join(cli.base(), "copy");
  execFileSync("cp", ["-a", join(cli.home(), "sessions/mine/layer/upper"), copy]);
  await ok(["run", "--continue", "second"], cwd);
  const [{ run = "" } = {}] = JSON.parse((await ok(["ps", "--all", "--json"], cwd)).text) as { run: string }[];
  ageSession("mine", { copy, run });
  const diff = async (...argv: string[]) => (await ok(["diff", ...argv, "--no-pager"], cwd)).text;
  const then = await diff(run, "--at", "2");
  const now = await diff(run);
  expect([then, now]).toEqual([expect.stringContaining("+one"), expect.stringContaining("+two")]);
  await ok(["session", "fork", `${run}@2`, "--name", "copied"], cwd);
  await ok(["fork", `${run}@2`, "--name", "then"], cwd);
  await ok(["fork", run, "--name", "now"], cwd);
  expect([await diff("copied"), await diff("then"), await diff("now")]).toEqual([then, then, now]);
  expect((await ok(["timeline", run], cwd)).text).toContain("Two.");
  expect((await ok(["snapshot", "du", "mine"], cwd)).text).toContain("copy_aaaaaaaaaaaa");
  const rewound = await ok(["rewind", run, "--to", "2"], cwd);
  const tail = /(run_\w+) has what came after/.exec(rewound.text)?.[1] ?? "";
  expect([await diff(run), await diff(tail)]).toEqual([then, now]);
  // The home folder was not part of those copies: it stays as it is.
  await ok(["run", `--continue=${tail}`, "third"], cwd);
  expect(await diff(tail)).toContain("+home");
  await ok(["undo", tail], cwd);
  expect(await diff(tail)).toBe(now);
  await ok(["undo", tail], cwd).catch(() => null);
  for (const { id } of JSON.parse((await ok(["session", "ls", "--json"], cwd)).text) as { id: string }[])
    await ok(["session", "rm", "--yes", id], cwd);
  expect([readdirSync(join(cli.home(), "sessions")), layersIn()]).toEqual([[], []]);
});

/** Gives a running sandbox the record and the folders of earlier versions. */
function ageSandbox(id: string): void {
  const dir = join(cli.home(), "sandboxes", id);
  const record = JSON.parse(readFileSync(join(dir, "sandbox.json"), "utf8"));
  const { base, templateLayers, rootKey, ...details } = record.details;
  expect([base, templateLayers, rootKey]).toEqual([[], [], "host"]);
  const binds: { source: string; target: string; writable: boolean }[] = details.basis.root.binds;
  const view = readFileSync(join(dir, "view.json"), "utf8");
  for (const [index, { target }] of binds.filter(({ writable }) => writable).entries()) {
    const [, name = ""] = new RegExp(`"(bind-[0-9a-f]+)":"${target}"`).exec(view) ?? [];
    for (const kind of ["upper", "work"]) renameSync(join(dir, `${name}-${kind}`), join(dir, `bind-${kind}-${index}`));
  }
  rmSync(join(dir, "view.json"));
  writeFileSync(join(dir, "sandbox.json"), JSON.stringify({ ...record, details }));
}

test("a sandbox of an earlier version can be stored and forked as a whole", { timeout: 120_000 }, async () => {
  const cwd = await cli.folder({ "a.txt": "zero\n" });
  const create = ["sandbox", "create", "--runtime", "oci", "--allow-root", "--json"];
  const { id } = JSON.parse((await ok(create, cwd)).text) as { id: string };
  ageSandbox(id);
  const inside = async (command: string, ...where: string[]) => (await ok(["exec", ...where, "--", "sh", "-c", command], cwd)).text;
  await inside("echo work > w; echo home > ~/h; sudo sh -c 'echo set > /etc/set; echo tool > /usr/local/lib/tool'", "--sandbox", id);
  const look = "cat w ~/h /etc/set /usr/local/lib/tool";
  const first = (await ok(["sandbox", "snapshot", id], cwd)).text.trim();
  await inside("sudo sh -c 'mv /usr/share/doc /usr/share/moved; echo more >> /etc/set'", "--sandbox", id);
  const second = (await ok(["sandbox", "snapshot", id], cwd)).text.trim();
  const fork = (await ok(["sandbox", "fork", id], cwd)).text.trim();
  expect(await inside(look, "--snapshot", first)).toBe("work\nhome\nset\ntool\n");
  for (const where of [
    ["--snapshot", second],
    ["--sandbox", fork],
  ])
    expect(await inside(`${look}; ls -d /usr/share/doc /usr/share/moved`, ...where).catch((error: Error) => error.message)).toContain(
      "work\nhome\nset\nmore\ntool\n/usr/share/moved\n",
    );
  await ok(["sandbox", "rm", "--all", "--yes"], cwd);
  await ok(["snapshot", "rm", first, second], cwd);
  expect(layersIn()).toEqual([]);
});
