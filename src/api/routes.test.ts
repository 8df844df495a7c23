import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { paths, type RouteName } from "../contract/api/paths.ts";

const stationDir = join(import.meta.dirname, "..", "station");

/** Verbs whose route has another name, where it has one. */
const named: Readonly<Record<string, RouteName>> = {
  "sandboxes.snapshots": "snapshots.list",
  "sandboxes.removeSnapshot": "snapshots.remove",
  "networks.ports": "ports.list",
  "networks.watchPorts": "ports.watch",
  "networks.keepPreview": "previews.open",
  "networks.previews": "previews.list",
  "networks.closePreview": "previews.close",
};

/** Verbs without a route, and why. */
const without: Readonly<Record<string, string>> = {
  "sandboxes.hold": "it lasts: a WebSocket holds the sandbox as long as it is open",
  "networks.preview": "it lasts: over HTTP the station keeps it open, by previews.open",
  "machine.restore": "it needs a state folder that nobody uses",
  "inside.follow": "it is what inside.events gives as a stream of events",
  "uploads.sweep": "the station does it by itself",
  "networks.forward": "its port is the caller's: a WebSocket carries each connection",
};

/** What the methods of a handle are called over HTTP. */
const ofSandbox: Readonly<Record<string, RouteName | `WebSocket: ${string}`>> = {
  spawn: "processes.start",
  attach: "processes.output",
  forget: "processes.forget",
  processes: "processes.list",
  stat: "files.info",
  list: "files.list",
  mkdir: "files.makeFolder",
  move: "files.move",
  remove: "files.remove",
  readFile: "files.read",
  writeFile: "files.write",
  watch: "files.watch",
  tarIn: "files.unpack",
  tarOut: "files.pack",
};
const ofProcess: Readonly<Record<string, RouteName>> = {
  write: "processes.input",
  closeStdin: "processes.closeInput",
  resize: "processes.resize",
  signal: "processes.signal",
  kill: "processes.kill",
};

/** The methods that an interface declares, or has from that of all driven things. */
function methodsOf(file: string, name: string): string[] {
  const text = readFileSync(file, "utf8");
  const [, above = "", body = ""] = new RegExp(`export interface ${name}\\b(.*) \\{\\n([\\s\\S]*?)\\n\\}`).exec(text) ?? [];
  const own = [...body.matchAll(/^ {2}(\w+)(?:<[^>]*>)?\(/gm)].map(([, method]) => method as string);
  return above.includes("extends DrivenVerbs") ? [...own, ...methodsOf(join(stationDir, "driven", "verbs.ts"), "DrivenVerbs")] : own;
}

/** `runs.start` and all the others, as the station's interfaces have them. */
function everyVerb(): string[] {
  const groups = [...readFileSync(join(stationDir, "station.ts"), "utf8").matchAll(/^ {2}readonly (\w+): (\w+);$/gm)];
  const folders = readdirSync(stationDir, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return groups.flatMap(([, group, type]) => {
    const found = folders
      .map(({ name }) => join(stationDir, name, "verbs.ts"))
      .flatMap((file) => {
        try {
          return methodsOf(file, type as string);
        } catch {
          return [];
        }
      });
    expect(found, `the verbs of ${group}`).not.toEqual([]);
    return found.map((verb) => `${group}.${verb}`);
  });
}

test("every verb of the station has a route, or a reason why it has none", () => {
  const verbs = everyVerb();
  expect(verbs).toEqual(expect.arrayContaining(["runs.start", "sandboxes.create", "secrets.set", "machine.stats"]));
  const missing = verbs.filter((verb) => !(verb in paths) && !(verb in named) && !(verb in without));
  expect(missing).toEqual([]);
  for (const verb of [...Object.keys(named), ...Object.keys(without)]) expect(verbs, verb).toContain(verb);
  for (const route of Object.values(named)) expect(Object.keys(paths)).toContain(route);
});

test("so does every method of a sandbox's handle and of a process", () => {
  const seam = join(import.meta.dirname, "..", "sandbox", "sandbox.ts");
  expect(methodsOf(seam, "Sandbox").sort()).toEqual(Object.keys(ofSandbox).sort());
  // Listening is what a request for its output does, until it is given up.
  const live = ["discardOutput", "detach"];
  expect(methodsOf(seam, "Process").sort()).toEqual([...Object.keys(ofProcess), ...live].sort());
  for (const route of [...Object.values(ofSandbox), ...Object.values(ofProcess)]) expect(Object.keys(paths)).toContain(route);
});
