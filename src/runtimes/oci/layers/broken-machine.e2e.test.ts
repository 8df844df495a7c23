import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { OwnedSandbox } from "../../../sandbox/sandbox.ts";
import { createOciRuntime, type OciRuntime } from "../runtime.ts";
import { asRoot, configOf, guestPath, nothing, remainsOf, settings, sh } from "../testing-oci.ts";

let base: string;
let stateDir: string;
let folder: string;
let runtime: OciRuntime;
const bytesMax = 1024 ** 3;
const newLayer = (name: string) => {
  const layer = join(base, name);
  mkdirSync(layer, { mode: 0o755 });
  return layer;
};
const machine = (layer: string) => runtime.create(configOf({ workspace: { kind: "folder", path: folder, layer }, allowRoot: true }));
const points = () => {
  if (runtime.points === undefined) throw new Error("the runtime has no points");
  return runtime.points;
};

beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "caisson-test-"));
  stateDir = join(base, "state");
  folder = join(base, "folder");
  for (const path of ["a/b/c", "d"]) mkdirSync(join(folder, path), { recursive: true });
  for (const name of ["a/b/c/one", "a/two", "d/three", "four"]) writeFileSync(join(folder, name), name);
  runtime = createOciRuntime({ stateDir, guestPath }, settings);
});
afterEach(async () => {
  for (const { id } of await runtime.list()) await (await runtime.open(id)).destroy();
  await runtime[Symbol.asyncDispose]();
  expect(remainsOf(stateDir)).toEqual(nothing);
  rmSync(base, { recursive: true, force: true });
});

/** Prints each file with its type, mode, owner, size, holes, links, target, content and attributes. */
const LOOK = `import hashlib, os, stat
def look(top):
    for folder, names, files in sorted(os.walk(top)):
        for name in sorted(names + files):
            path = os.path.join(folder, name)
            s = os.lstat(path)
            kind = stat.S_IFMT(s.st_mode)
            if kind == stat.S_IFSOCK: continue
            more = os.readlink(path) if kind == stat.S_IFLNK else ''
            if kind == stat.S_IFREG:
                with open(path, 'rb') as f: more = hashlib.md5(f.read(1 << 22)).hexdigest()
            size = s.st_size if kind == stat.S_IFREG else 0
            sparse = kind == stat.S_IFREG and s.st_blocks * 512 < s.st_size - (1 << 20)
            links = s.st_nlink if kind == stat.S_IFREG else 0
            try: attributes = [(n, os.getxattr(path, n, follow_symlinks=False)) for n in sorted(os.listxattr(path, follow_symlinks=False)) if n.startswith('user.')]
            except OSError: attributes = []
            print(ascii(path), oct(s.st_mode), s.st_uid, s.st_gid, size, sparse, links, ascii(more), attributes)
for top in ['/workspace', '/home/user', '/etc', '/opt', '/srv', '/var/lib/caisson-test', '/usr/bin', '/usr/sbin', '/usr/lib/caisson-test', '/usr/local']: look(top)
`;
const look = async (sandbox: OwnedSandbox) => {
  const { text, complaint } = await sh(sandbox, `cat > /tmp/look.py <<'END'\n${LOOK}END\npython3 /tmp/look.py`, "root");
  expect(complaint).toBe("");
  return text.split("\n");
};

/** What an agent with root does before the point: a package, files of every kind, and settings. */
const SETUP = `set -e
mkdir -p /tmp/pkg/DEBIAN /tmp/pkg/usr/lib/caisson-test /tmp/pkg/usr/bin
printf 'Package: caisson-test\\nVersion: 1\\nArchitecture: all\\nMaintainer: x <x@example.org>\\nDescription: x\\n' > /tmp/pkg/DEBIAN/control
echo data > /tmp/pkg/usr/lib/caisson-test/data; printf '#!/bin/sh\\necho tool\\n' > /tmp/pkg/usr/bin/caisson-tool; chmod 755 /tmp/pkg/usr/bin/caisson-tool
dpkg-deb --root-owner-group -b /tmp/pkg /tmp/pkg.deb > /dev/null
mkdir -p /var/lib/dpkg/info /var/lib/dpkg/updates /var/lib/dpkg/triggers; touch /var/lib/dpkg/status /var/lib/dpkg/available
dpkg --force-all --log=/dev/null -i /tmp/pkg.deb > /dev/null 2>&1 || dpkg-deb -x /tmp/pkg.deb /
caisson-tool | grep -q tool
mkdir -p /etc/caisson-test /var/lib/caisson-test /opt/x /srv/deep/er; echo set > /etc/caisson-test/a; echo 127.0.0.9 here >> /etc/hosts; echo var > /var/lib/caisson-test/v
echo o > /opt/x/o; chown 1000:50 /opt/x/o; chmod 4755 /opt/x/o; chmod 1777 /srv/deep; chmod 0 /srv/deep/er`;
const FILES = `set -e
cd /workspace; echo one > one; ln one hard; ln -s one soft; ln -s /nowhere/at/all dangling; mkfifo pipe
printf x > "$(printf 'new\\nline')"; printf x > "$(printf 'bytes\\377\\001')"; printf x > ' lead'; printf x > '-rf'; printf x > 'back\\\\slash:,"'; printf x > .wh.kept
python3 -c 'import os; os.makedirs("/".join(["long" * 60] * 6)); os.setxattr("one", "user.test", b"v"); f=open("sparse","wb"); f.truncate(1 << 26); f.seek(1 << 25); f.write(b"x"); f.close()'
python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'
echo home > ~/.profile-x; mkdir -p ~/.cache/deep; echo c > ~/.cache/deep/c; chmod 700 ~/.cache
mkdir -p node_modules/pkg/bin; echo '{}' > node_modules/pkg/package.json; ln -s ../pkg/bin node_modules/.bin; mv a moved; mv moved/b moved/b2; rm d/three; rmdir d; mkdir d; echo again > d/again; chmod 600 four`;

/** What it does afterwards. Each line may fail, because those before it broke the machine. */
const BREAK_FILES = `cd /workspace; mv moved a; mv a/b2 elsewhere; rm -rf d node_modules; ln -sfn / d; rm hard; echo more >> one; rm -f pipe; mkdir pipe; chmod 000 four; rm -f sparse soft; mkdir soft; touch soft/in
python3 -c 'import os; os.removexattr("one", "user.test")'; rm -rf -- -rf ' lead' long*; rm -rf ~/.cache ~/.profile-x; ln -s /etc ~/.cache; find . -newer /proc/1 -type f -exec chmod 777 {} +`;
const BREAK_ROOT = `rm -rf /etc/caisson-test /var/lib/caisson-test /usr/lib/caisson-test; echo broken > /etc/caisson-test; chmod -R 777 /opt; rm -rf /srv/deep; mkdir -p /srv/deep/er/more
mv /etc /etc-moved 2>/dev/null; mv /usr/lib/python3 /usr/lib/python-moved; mv /usr/sbin /usr/sbin-moved; ln -s /tmp /usr/sbin; chown 12:12 /usr/local/*; mv /usr/share/perl5 /usr/local/perl-moved
rm -rf /usr/bin /bin/sh`;

describe.skipIf(!asRoot)("a machine that root broke", () => {
  test("is after a restore as it was, in every file", { timeout: 300_000 }, async () => {
    const layer = newLayer("layer");
    const sandbox = await machine(layer);
    expect(await sh(sandbox, SETUP, "root")).toMatchObject({ ended: { kind: "exited", exitCode: 0 }, complaint: "" });
    expect(await sh(sandbox, FILES)).toMatchObject({ ended: { kind: "exited", exitCode: 0 }, complaint: "" });
    const before = await look(sandbox);
    expect(before.length).toBeGreaterThan(300);
    const { id } = await points().take(layer, { sandbox: sandbox.id, bytesMax });
    await sh(sandbox, BREAK_FILES);
    await points().take(layer, { sandbox: sandbox.id, bytesMax });
    await sh(sandbox, BREAK_ROOT, "root").catch(() => null);
    await expect(sh(sandbox, "true", "root")).rejects.toMatchObject({ code: "not_found" });
    const second = await points().take(layer, { sandbox: sandbox.id, bytesMax });
    expect(second.isNew).toBe(true);
    await sandbox.destroy();
    await points().restore(layer, id);
    const again = await machine(layer);
    expect(await look(again)).toEqual(before);
    expect((await sh(again, "caisson-tool; cat moved/b2/c/one")).text).toBe("tool\na/b/c/one");
    // It works, and its next point stores what comes next.
    await sh(again, "echo after > after");
    expect(await points().take(layer, { sandbox: again.id, bytesMax })).toMatchObject({ files: 1 });
    await again.destroy();
    // The host's folder was not touched.
    expect(readdirSync(folder, { recursive: true }).sort()).toEqual(["a", "a/b", "a/b/c", "a/b/c/one", "a/two", "d", "d/three", "four"]);
    await runtime.removeLayer?.(layer);
  });

  test("can be forked 300 times in a row, and each fork is as quick as the first", { timeout: 300_000 }, async () => {
    let from = newLayer("layer-0");
    const first = await machine(from);
    await sh(first, "echo 0 > count; mv a moved");
    await first.destroy();
    const times: number[] = [];
    for (let depth = 1; depth <= 300; depth++) {
      const to = newLayer(`layer-${depth}`);
      const before = performance.now();
      await points().fork(from, to, { bytesMax });
      times.push(performance.now() - before);
      // The rest would be forks without a change, which have the same layers.
      if (depth % 6 === 0) {
        const sandbox = await machine(to);
        await sh(sandbox, `echo ${depth} >> count; touch made-${depth}`);
        await sandbox.destroy();
      }
      await runtime.removeLayer?.(from);
      from = to;
    }
    const last = await machine(from);
    expect((await sh(last, "wc -l < count; ls | grep -c made; cat moved/two")).text).toBe("51\n50\na/two");
    await last.destroy();
    const median = (some: readonly number[]) => some.toSorted((a, b) => a - b)[some.length >> 1] ?? 0;
    const [early, late] = [median(times.slice(6, 36)), median(times.slice(-30))];
    console.log(`a fork takes ${early.toFixed(1)} ms at first and ${late.toFixed(1)} ms after 300`);
    expect(late).toBeLessThan(5 * early + 50);
    await runtime.removeLayer?.(from);
  });
});
