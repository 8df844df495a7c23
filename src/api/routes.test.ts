import { expect, test } from "vitest";
import { declaredFacts } from "../../scripts/verb-facts.ts";
import type { Process, Sandbox } from "../sandbox/sandbox.ts";
import type { RouteName } from "../verbs/routes.ts";
import { paths, verbFacts } from "../verbs/verb-facts.ts";
import { allHandlers } from "./handlers/all-handlers.ts";

type Methods<Handle> = { [Name in keyof Handle]: Handle[Name] extends (...args: never[]) => unknown ? Name : never }[keyof Handle];

/** The routes of a sandbox handle. A new method does not compile without one. */
const ofSandbox: Readonly<Record<Extract<Methods<Sandbox>, string>, RouteName | `WebSocket: ${string}`>> = {
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
/** These two need no route: a client discards the output of its request, or disconnects. */
type OfProcess = Exclude<Extract<Methods<Process>, string>, "discardOutput" | "detach">;
const ofProcess: Readonly<Record<OfProcess, RouteName>> = {
  write: "processes.input",
  closeStdin: "processes.closeInput",
  resize: "processes.resize",
  signal: "processes.signal",
  kill: "processes.kill",
};

test("verb facts match the declarations; `node scripts/verb-facts.ts` writes them", () => {
  const { facts, paths: declaredPaths } = declaredFacts();
  expect(verbFacts).toEqual(facts);
  expect(paths).toEqual(declaredPaths);
});

test("every route has a handler, and every handle method has a route", () => {
  const handled = Object.keys(allHandlers({ server: {} as never }));
  expect(handled.sort()).toEqual(Object.keys(paths).sort());
  for (const route of [...Object.values(ofSandbox), ...Object.values(ofProcess)]) expect(handled).toContain(route);
});
