import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { OwnedSandbox } from "../../../sandbox/sandbox.ts";
import { createOciRuntime, type OciRuntime } from "../runtime.ts";
import { asRoot, configOf, guestPath, nothing, remainsOf, settings, sh } from "../testing-oci.ts";
import { type LayerWork, work } from "./testing-layer-crash.ts";

let base: string;
let stateDir: string;
let folder: string;
let runtime: OciRuntime;
/** A session whose forks merge the chain of layers with their first point. */
let origin: string;
let originPoints: string[];
let layers = 0;
const bytesMax = 1024 ** 3;
const CHAIN = 15;

const newLayer = () => {
  layers += 1;
  const layer = join(base, `layer-${layers}`);
  mkdirSync(layer, { mode: 0o755 });
  return layer;
};
const machine = (layer: string, view?: string) =>
  runtime.create(configOf({ workspace: { kind: "folder", path: folder, layer, ...(view === undefined ? {} : { view }) } }));
const take = async (layer: string, sandbox: OwnedSandbox) => {
  const point = await runtime.points?.take(layer, { sandbox: sandbox.id, bytesMax });
  return point?.id ?? "";
};

/** Runs the work in a separate process. Returns the crash points that it passed, the one at which it died last. */
async function inProcess(request: LayerWork): Promise<{ signal: string | null; code: number | null; points: string[]; complaint: string }> {
  const program = join(import.meta.dirname, "testing-layer-crash.ts");
  const child = spawn(process.execPath, [program, JSON.stringify(request)], { stdio: ["ignore", "pipe", "pipe"] });
  let text = "";
  let complaint = "";
  child.stdout.on("data", (chunk: Buffer) => {
    text += chunk.toString();
  });
  child.stderr.on("data", (chunk: Buffer) => {
    complaint += chunk.toString();
  });
  const [code, signal] = await once(child, "close");
  return { code, signal, points: text.trimEnd().split("\n"), complaint };
}

interface Scene {
  layer: string;
  sandbox: OwnedSandbox | null;
  request: LayerWork;
}

/** Prepares a fork of the origin with a change, and whatever the work needs. */
async function prepare(what: LayerWork["what"]): Promise<Scene> {
  const layer = newLayer();
  await runtime.points?.fork(origin, layer, { point: originPoints.at(-1) ?? "", bytesMax });
  let sandbox: OwnedSandbox | null = await machine(layer);
  await sh(sandbox, "echo new > new; rm count; mv d moved");
  let other = "";
  if (what === "restore" || what === "removePoint") {
    other = await take(layer, sandbox);
    await sh(sandbox, "echo newer > new; rm -r moved");
    if (what === "removePoint") await take(layer, sandbox);
  }
  if (what === "snapshot") other = `named-${layers}`;
  if (what === "removeSnapshot") other = await sandbox.snapshot();
  if (what === "fork") other = newLayer();
  if (["restore", "fork", "removeLayer", "removeSnapshot"].includes(what)) {
    await sandbox.destroy();
    sandbox = null;
  }
  return { layer, sandbox, request: { stateDir, what, layer, other, sandbox: sandbox?.id ?? "" } };
}

const NEW = "e moved new: new";
const LOOK = "echo $(ls): $(cat new)";

/** Returns what is wrong with the store: half layers, unused ones, lost ones, and leftovers. */
function problems({ layer }: Scene): string[] {
  const root = join(stateDir, "layers");
  const found: string[] = [];
  for (const name of readdirSync(root)) {
    if (!/^ly_[a-z2-7]{12}$/.test(name)) {
      found.push(`half a layer: ${name}`);
      continue;
    }
    const names = readdirSync(join(root, name));
    if (!existsSync(join(root, name, "references")) || readdirSync(join(root, name, "references")).length === 0)
      found.push(`an unused layer: ${name}`);
    for (const other of names) if (!["layer.json", "references", "delta", "whole"].includes(other)) found.push(`in a layer: ${other}`);
    const { parent } = JSON.parse(readFileSync(join(root, name, "layer.json"), "utf8"));
    if (parent !== null && !names.includes("whole") && !existsSync(join(root, parent))) found.push(`${name} lacks ${parent}`);
  }
  for (const name of existsSync(join(stateDir, "snapshots")) ? readdirSync(join(stateDir, "snapshots")) : [])
    if (!existsSync(join(stateDir, "snapshots", name, "snapshot.json")) || name.startsWith(".")) found.push(`half a snapshot: ${name}`);
  for (const each of [origin, layer])
    for (const name of existsSync(join(each, "points")) ? readdirSync(join(each, "points")) : [])
      if (!existsSync(join(root, name))) found.push(`a lost point: ${name}`);
  return found;
}

/** What a machine shows after its work is done, each as `LOOK` prints it. */
async function outcome({ layer, sandbox, request }: Scene): Promise<string[]> {
  const { what, other } = request;
  const texts: string[] = [];
  const show = async (shown: OwnedSandbox) => void texts.push((await sh(shown, LOOK)).text);
  if (what === "take") {
    for (const id of (await runtime.points?.list(layer)) ?? []) {
      await using view = await machine(layer, id);
      await show(view);
    }
  } else if (what === "restore" || what === "fork") {
    await using again = await machine(what === "fork" ? other : layer);
    await show(again);
  } else if (what === "removePoint" && sandbox !== null) texts.push((await runtime.points?.list(layer))?.length === 1 ? NEW : "a point");
  else if (what === "snapshot") {
    for (const { id, name } of await runtime.snapshots()) {
      if (name !== other) continue;
      await using copy = await runtime.create(configOf({ template: { kind: "snapshot", id } }));
      await show(copy);
    }
  } else if (what === "forkSandbox") {
    for (const { id } of await runtime.list()) if (id !== sandbox?.id) await show(await runtime.open(id));
  } else texts.push(NEW);
  return texts;
}

async function clear({ layer, sandbox, request }: Scene): Promise<void> {
  for (const { id } of await runtime.list()) if (id !== sandbox?.id) await (await runtime.open(id)).destroy();
  await sandbox?.destroy();
  for (const { id } of await runtime.snapshots()) await runtime.removeSnapshot(id);
  await runtime.removeLayer?.(layer);
  if (request.what === "fork") await runtime.removeLayer?.(request.other);
}

/** Numbers the crash points that a process passed. Of many with one name, the first, second and last are enough. */
function numbered(points: readonly string[]): string[] {
  const counts = Map.groupBy(points, (name) => name);
  return [...counts].flatMap(([name, { length }]) =>
    [...new Set([1, 2, length])].filter((at) => at <= length).map((at) => `${name}#${at}`),
  );
}

describe.skipIf(!asRoot)("kill -9 at every write of the layer store", () => {
  beforeAll(async () => {
    base = mkdtempSync(join(tmpdir(), "caisson-test-"));
    stateDir = join(base, "state");
    folder = join(base, "folder");
    mkdirSync(join(folder, "d/deep"), { recursive: true });
    mkdirSync(join(folder, "e"));
    writeFileSync(join(folder, "d/deep/file"), "x");
    runtime = createOciRuntime({ stateDir, guestPath }, settings);
    origin = newLayer();
    originPoints = [];
    const sandbox = await machine(origin);
    for (let step = 1; step <= CHAIN; step++) {
      await sh(sandbox, `echo ${step} > count; echo ${step} > ~/count`);
      originPoints.push(await take(origin, sandbox));
    }
    await sandbox.destroy();
  });
  afterAll(async () => {
    for (const { id } of await runtime.list()) await (await runtime.open(id)).destroy();
    await runtime[Symbol.asyncDispose]();
    rmSync(base, { recursive: true, force: true });
  });

  const works = ["take", "restore", "fork", "removePoint", "removeLayer", "snapshot", "forkSandbox", "removeSnapshot"] as const;
  test.each(works)("%s leaves all or nothing, and can be repeated", { timeout: 600_000 }, async (what) => {
    const whole = await prepare(what);
    const done = await inProcess(whole.request);
    expect([done.code, done.complaint]).toEqual([0, ""]);
    const points = numbered(done.points);
    expect(points.length).toBeGreaterThan(2);
    if (what === "take") expect(points).toEqual(expect.arrayContaining(["layer.merged:before#1", "layer.published:after#1"]));
    await clear(whole);
    const wrong: string[] = [];
    for (const crashAt of points) {
      const scene = await prepare(what);
      const died = await inProcess({ ...scene.request, crashAt });
      const tell = (text: string) => wrong.push(`${crashAt}: ${text}`);
      if (died.signal !== "SIGKILL") tell(`did not die: ${died.complaint}`);
      await runtime.sweep();
      for (const problem of problems(scene)) tell(problem);
      for (const text of ["restore", "fork", "removePoint"].includes(what) ? [] : await outcome(scene))
        if (text !== NEW) tell(`half: ${text}`);
      await work(runtime, scene.request).catch((error: Error) => what.startsWith("remove") || tell(`again: ${error.message}`));
      for (const text of await outcome(scene)) if (text !== NEW) tell(`after the repetition: ${text}`);
      const left = readdirSync(scene.layer).filter((name) => /^old-|\.tmp$/.test(name) || name.startsWith("index-"));
      if (left.length > (existsSync(join(scene.layer, "machine.json")) ? 1 : 0)) tell(`left: ${left.join(" ")}`);
      await clear(scene);
      for (const problem of problems(scene)) tell(`cleared: ${problem}`);
    }
    console.log(`${what}: ${points.length} crashes at ${points.join(" ")}`);
    expect(wrong).toEqual([]);
    // Nothing in use was removed: the origin has its files.
    await using view = await machine(origin, originPoints.at(-1));
    expect((await sh(view, "echo $(ls) $(cat count ~/count d/deep/file)")).text).toBe(`count d e ${CHAIN} ${CHAIN} x`);
  });

  test("a sweep that dies is finished by the next one", { timeout: 300_000 }, async () => {
    const wrong: string[] = [];
    const remains = async () => {
      // An unfinished merge, a half layer, a removal that began, and a fork whose machine was not written.
      const scene = await prepare("fork");
      await inProcess({ ...scene.request, what: "take", sandbox: "", crashAt: "layer.merged:before#1" });
      await inProcess({ ...scene.request, crashAt: "machine.written:before#1" });
      const sandbox = await machine(scene.layer);
      await sh(sandbox, "echo > more");
      await inProcess({ ...scene.request, what: "take", sandbox: sandbox.id, crashAt: "layer.published:after#1" });
      await inProcess({ ...scene.request, what: "take", sandbox: sandbox.id, crashAt: "layer.drafted:after#1" });
      await sandbox.destroy();
      return scene;
    };
    const first = await remains();
    const { points, code } = await inProcess({ ...first.request, what: "sweep" });
    expect(code).toBe(0);
    expect(points).toContain("layer.removed:after");
    await clear(first);
    for (const crashAt of numbered(points)) {
      const scene = await remains();
      const died = await inProcess({ ...scene.request, what: "sweep", crashAt });
      if (died.signal !== "SIGKILL") wrong.push(`${crashAt}: did not die`);
      await runtime.sweep();
      for (const problem of problems(scene)) wrong.push(`${crashAt}: ${problem}`);
      await clear(scene);
    }
    expect(wrong).toEqual([]);
  });

  test("nothing is left when everything was removed", async () => {
    for (const name of readdirSync(base).filter((each) => each.startsWith("layer-"))) await runtime.removeLayer?.(join(base, name));
    expect(readdirSync(join(stateDir, "layers"))).toEqual([]);
    await runtime[Symbol.asyncDispose]();
    expect(remainsOf(stateDir)).toEqual(nothing);
  });
});
