import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { mountBtrfs, type SmallDisk } from "../../../../test/support/small-disk.ts";
import type { MachinePoints } from "../../../sandbox/machine-points.ts";
import type { OwnedSandbox } from "../../../sandbox/sandbox.ts";
import { createOciRuntime, type OciRuntime } from "../runtime.ts";
import { asRoot, configOf, guestPath, nothing, remainsOf, settings, sh } from "../testing-oci.ts";

let base: string;
let stateDir: string;
let folder: string;
let runtime: OciRuntime;
const bytesMax = 1024 ** 3;
const points = (): MachinePoints => {
  if (runtime.points === undefined) throw new Error("the runtime has no points");
  return runtime.points;
};
const newLayer = (name: string) => {
  const layer = join(base, name);
  mkdirSync(layer, { mode: 0o755 });
  return layer;
};
const machine = (layer: string, view?: string) =>
  runtime.create(
    configOf({ workspace: { kind: "folder", path: folder, layer, ...(view === undefined ? {} : { view }) }, allowRoot: true }),
  );

/** Lists every file of the machine that a test may change, with all that a program can see of it. */
const LOOK = `cd / && find workspace home/user usr/lib/python3 usr/local etc/caisson-test -printf '%p %y %m %U %l %s %n\\n' 2>/dev/null | grep -v ' d .* [0-9]* [0-9]*$' | sort
  find workspace home/user etc/caisson-test -type f -exec md5sum {} + 2>/dev/null | sort
  find workspace home/user -type d | sort`;
const look = async (sandbox: OwnedSandbox) => (await sh(sandbox, LOOK, "root")).text;
/** Merged layers share their files by hard links, which programs inside see in the files' link counts. */
const withoutLinkCounts = (text: string) => text.replace(/ \d+$/gm, "");

const disks = [
  { name: "this file system", mount: null },
  { name: "btrfs", mount: mountBtrfs },
];

describe.skipIf(!asRoot).each(disks)("points of a machine on $name", ({ name, mount }) => {
  let disk: SmallDisk | undefined;
  beforeAll(() => {
    disk = mount?.();
  });
  afterAll(() => disk?.remove());
  beforeEach(() => {
    base = mkdtempSync(join(disk?.folder ?? tmpdir(), "caisson-test-"));
    stateDir = join(base, "state");
    folder = join(base, "folder");
    for (const path of ["a/b/c", "a/d", "e"]) mkdirSync(join(folder, path), { recursive: true });
    for (const name of ["a/b/c/one", "a/b/two", "a/d/three", "e/four", "five"]) writeFileSync(join(folder, name), name);
    runtime = createOciRuntime({ stateDir, guestPath }, settings);
  });
  afterEach(async () => {
    await runtime[Symbol.asyncDispose]();
    await runtime.sweep();
    for (const { id } of await runtime.list()) await (await runtime.open(id)).destroy();
    expect(remainsOf(stateDir)).toEqual(nothing);
    rmSync(base, { recursive: true, force: true });
  });

  it("stores points in subvolumes on btrfs only", async () => {
    const layer = newLayer("layer");
    const sandbox = await machine(layer);
    await sh(sandbox, "echo 1 > file");
    const { id } = await points().take(layer, { sandbox: sandbox.id, bytesMax });
    expect(existsSync(join(stateDir, "layers", id ?? "", "tree"))).toBe(name === "btrfs");
    const { findings } = await runtime.probe();
    expect(findings.map(({ text }) => text)).toContainEqual(
      expect.stringMatching(name === "btrfs" ? /^points of sessions by btrfs/ : /^points of sessions by (reflink|delta)/),
    );
    await sandbox.destroy();
    await runtime.removeLayer?.(layer);
  });

  it("restores the root, the home folder and the workspace after the tree was broken", async () => {
    const layer = newLayer("layer");
    const sandbox = await machine(layer);
    await sh(sandbox, "mkdir /etc/caisson-test; echo set > /etc/caisson-test/a; echo prog > /usr/local/bin/prog", "root");
    await sh(sandbox, "echo home > ~/.config; ln -s five /workspace/link; mkfifo /workspace/pipe; chmod 600 /workspace/five");
    const before = await look(sandbox);
    const { id } = await points().take(layer, { sandbox: sandbox.id, bytesMax });
    await sh(sandbox, "rm -rf /usr/lib/python3 /etc/caisson-test /usr/local/bin; mv /usr/share/doc /usr/share/moved", "root");
    await sh(sandbox, "mv /workspace/a /workspace/z; rm -rf /workspace/e ~/.config; echo more >> /workspace/five");
    const broken = await look(sandbox);
    const second = await points().take(layer, { sandbox: sandbox.id, bytesMax });
    expect(broken).not.toBe(before);
    await sandbox.destroy();
    await points().restore(layer, id);
    const again = await machine(layer);
    expect(await look(again)).toBe(before);
    expect((await sh(again, "ls -d /usr/share/doc /usr/share/moved")).text).toBe("/usr/share/doc");
    await again.destroy();
    await points().restore(layer, second.id);
    const forward = await machine(layer);
    expect(await look(forward)).toBe(broken);
    await forward.destroy();
    expect(readdirSync(folder).sort()).toEqual(["a", "e", "five"]);
    await runtime.removeLayer?.(layer);
  });

  it("takes no point if nothing changed, and stores only what changed", async () => {
    const layer = newLayer("layer");
    const sandbox = await machine(layer);
    await sh(sandbox, "for n in $(seq 200); do head -c 20000 /dev/urandom > file-$n; done");
    const first = await points().take(layer, { sandbox: sandbox.id, bytesMax });
    expect(first).toMatchObject({ isNew: true, files: 200 });
    await sh(sandbox, "cat file-1 > /dev/null; touch x; rm x");
    expect(await points().take(layer, { sandbox: sandbox.id, bytesMax })).toEqual({ id: first.id, files: 0, bytes: 0, isNew: false });
    await sh(sandbox, "echo 1 >> file-1; rm file-2; mv file-3 file-three");
    const second = await points().take(layer, { sandbox: sandbox.id, bytesMax });
    expect(second).toMatchObject({ isNew: true, files: 4 });
    expect(second.bytes).toBeLessThan(100_000);
    await sandbox.destroy();
    await runtime.removeLayer?.(layer);
  });

  it("refuses more bytes than allowed, and leaves nothing behind", async () => {
    const layer = newLayer("layer");
    const sandbox = await machine(layer);
    await sh(sandbox, "head -c 3000000 /dev/urandom > big; truncate -s 10G sparse");
    const before = readdirSync(layer);
    await expect(points().take(layer, { sandbox: sandbox.id, bytesMax: 1_000_000 })).rejects.toMatchObject({ code: "too_large" });
    expect(readdirSync(join(stateDir, "layers"))).toEqual([]);
    expect(readdirSync(layer)).toEqual(before);
    expect((await points().take(layer, { sandbox: sandbox.id, bytesMax })).bytes).toBeLessThan(4_000_000);
    await sandbox.destroy();
    await runtime.removeLayer?.(layer);
  });

  it("merges long chains, and keeps each point as it was", async () => {
    const layer = newLayer("layer");
    const sandbox = await machine(layer);
    const seen: { id: string; text: string }[] = [];
    for (let step = 0; step < 40; step++) {
      await sh(
        sandbox,
        `echo ${step} > step-${step}; rm -f step-${step - 3}; mkdir -p d/${step % 5}; echo ${step} >> d/${step % 5}/log; rm -rf d/${(step + 2) % 5}`,
      );
      const { id } = await points().take(layer, { sandbox: sandbox.id, bytesMax });
      if (step % 7 === 0 && id !== null) seen.push({ id, text: await look(sandbox) });
    }
    await sandbox.destroy();
    for (const { id, text } of seen) {
      await using view = await machine(layer, id);
      expect(withoutLinkCounts(await look(view))).toBe(withoutLinkCounts(text));
    }
    const [first, ...others] = seen;
    for (const { id } of others) await points().remove(layer, id);
    if (first === undefined) throw new Error("no point");
    await points().restore(layer, first.id);
    const again = await machine(layer);
    expect(withoutLinkCounts(await look(again))).toBe(withoutLinkCounts(first.text));
    await again.destroy();
    await runtime.removeLayer?.(layer);
    expect(readdirSync(join(stateDir, "layers"))).toEqual([]);
  });

  it("starts sandboxes from a snapshot of a session's sandbox beside the session", async () => {
    const layer = newLayer("layer");
    const sandbox = await machine(layer);
    await sh(sandbox, "echo stored > five; echo stored > ~/five");
    await points().take(layer, { sandbox: sandbox.id, bytesMax });
    const id = await sandbox.snapshot();
    await sh(sandbox, "echo session > five");
    const copy = await runtime.create(configOf({ template: { kind: "snapshot", id } }));
    expect((await sh(copy, "cat five ~/five; echo copy > five; echo copy > only; echo copy > ~/only")).text).toBe("stored\nstored");
    expect((await sh(sandbox, "cat five ~/five; ls only ~/only 2>/dev/null")).text).toBe("session\nstored");
    await copy.destroy();
    await runtime.removeSnapshot(id);
    await sandbox.destroy();
    await runtime.removeLayer?.(layer);
  });

  it("stores a moved folder after the sandbox that moved it has ended", async () => {
    const layer = newLayer("layer");
    const sandbox = await machine(layer);
    await sh(sandbox, "mv a moved");
    await sandbox.destroy();
    const { id } = await points().take(layer, { bytesMax });
    await points().restore(layer, null);
    await using view = await machine(layer, id ?? "");
    expect((await sh(view, "cat moved/b/c/one; ls")).text).toBe("a/b/c/onee\nfive\nmoved");
    await runtime.removeLayer?.(layer);
  });

  it("keeps every layer when the state folder is moved", async () => {
    const layer = join(stateDir, "sessions", "mine", "layer");
    mkdirSync(layer, { recursive: true, mode: 0o755 });
    const sandbox = await machine(layer);
    await sh(sandbox, "echo first > five");
    const { id } = await points().take(layer, { sandbox: sandbox.id, bytesMax });
    await sandbox.destroy();
    await runtime[Symbol.asyncDispose]();
    const moved = join(base, "moved");
    renameSync(stateDir, moved);
    // The process that made the references has ended.
    for (const name of readdirSync(join(moved, "layers"))) {
      const references = join(moved, "layers", name, "references");
      for (const file of readdirSync(references)) {
        const reference = JSON.parse(readFileSync(join(references, file), "utf8"));
        writeFileSync(join(references, file), JSON.stringify({ ...reference, maker: { ...reference.maker, startTicks: 1 } }));
      }
    }
    runtime = createOciRuntime({ stateDir: moved, guestPath }, settings);
    await runtime.sweep();
    const there = join(moved, "sessions", "mine", "layer");
    {
      await using view = await machine(there, id ?? "");
      expect((await sh(view, "cat five")).text).toBe("first");
    }
    await runtime.removeLayer?.(there);
    expect(readdirSync(join(moved, "layers"))).toEqual([]);
  });

  it("forks forks in a row, which outlive each other", async () => {
    let from = newLayer("layer-0");
    const first = await machine(from);
    await sh(first, "echo 0 > count");
    await first.destroy();
    for (let depth = 1; depth <= 30; depth++) {
      const to = newLayer(`layer-${depth}`);
      await points().fork(from, to, { bytesMax });
      if (depth % 5 === 0) {
        const sandbox = await machine(to);
        expect((await sh(sandbox, `cat count; echo ${depth} >> count; sed -i 1d count; touch made-${depth}`)).text).toBe(String(depth - 5));
        await sandbox.destroy();
      }
      await runtime.removeLayer?.(from);
      from = to;
    }
    const last = await machine(from);
    expect((await sh(last, "cat count; ls | grep -c made")).text).toBe("30\n6");
    await last.destroy();
    await runtime.removeLayer?.(from);
    expect(readdirSync(join(stateDir, "layers"))).toEqual([]);
  });

  it.each([1, 2, 3, 4, 5, 6])("equals the machine after random changes (seed %i)", async (seed) => {
    const layer = newLayer("layer");
    const sandbox = await machine(layer);
    const seen: { id: string | null; text: string }[] = [];
    for (let step = 0; step < 6; step++) {
      await sh(sandbox, randomChanges(seed * 100 + step, 25));
      const { id } = await points().take(layer, { sandbox: sandbox.id, bytesMax });
      seen.push({ id, text: await look(sandbox) });
    }
    await sandbox.destroy();
    for (const { id, text } of seen) {
      if (id === null) continue;
      await using view = await machine(layer, id);
      expect(await look(view)).toBe(text);
    }
    await points().restore(layer, seen[2]?.id ?? null);
    const again = await machine(layer);
    expect(await look(again)).toBe(seen[2]?.text);
    await again.destroy();
    await runtime.removeLayer?.(layer);
    expect(existsSync(join(stateDir, "layers")) ? readdirSync(join(stateDir, "layers")) : []).toEqual([]);
  });
});

/** Returns a script with changes of every kind, in the workspace and the home folder. Failing ones do nothing. */
function randomChanges(seed: number, count: number): string {
  let state = seed * 7919 + 1;
  const random = (below: number) => {
    state = (state * 1103515245 + 12345) % 2147483648;
    return Math.floor((state / 2147483648) * below);
  };
  const name = () => "abcdef"[random(6)] ?? "a";
  const path = () => [random(4) === 0 ? "/home/user" : "/workspace", ...Array.from({ length: 1 + random(3) }, name)].join("/");
  const kinds = [
    () => `echo ${random(1e6)} > ${path()}`,
    () => `echo x >> ${path()}`,
    () => `mkdir -p ${path()}`,
    () => `rm -f ${path()}`,
    () => `rm -rf ${path()}`,
    () => `mv -T ${path()} ${path()}`,
    () => `mv -T ${path()} ${path()}`,
    () => `python3 -c 'import os,sys; os.rename(*sys.argv[1:])' ${path()} ${path()}`,
    () => `ln -f ${path()} ${path()}`,
    () => `ln -sfT five ${path()}`,
    () => `chmod ${["600", "644", "755"][random(3)]} ${path()}`,
    () => `truncate -c -s ${random(99_999)} ${path()}`,
  ];
  return Array.from({ length: count }, () => `${(kinds[random(kinds.length)] ?? (() => ":"))()} 2>/dev/null`).join("\n");
}
