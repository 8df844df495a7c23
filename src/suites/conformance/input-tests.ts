import type { NetworkPolicy } from "../../contract/network/network.ts";
import type { ConformanceContext, ConformanceTest } from "./context.ts";
import { rejectsWith, start, within, writeText } from "./expectations.ts";

const badPaths = {
  "with ..": "/workspace/../etc/passwd",
  "with NUL": "/workspace/a\0b",
  "of 5,000 characters": `/workspace/${"x/".repeat(2500)}`,
  "that is empty": "",
};

/** Input that must be rejected. */
export const inputTests: ConformanceTest[] = [
  {
    name: "input: a malformed path is invalid in every method",
    async run(context) {
      const sandbox = await context.sandbox();
      for (const [what, path] of Object.entries(badPaths)) {
        const calls: Record<string, () => Promise<unknown>> = {
          stat: () => sandbox.stat(path),
          list: () => sandbox.list(path),
          mkdir: () => sandbox.mkdir(path),
          "move from": () => sandbox.move(path, "/workspace/x"),
          "move to": () => sandbox.move("/workspace/x", path),
          remove: () => sandbox.remove(path),
          readFile: () => sandbox.readFile(path),
          writeFile: () => writeText(sandbox, path, "x"),
          watch: () => sandbox.watch(path),
          tarIn: () => sandbox.tarIn(path, Buffer.alloc(1024)),
          tarOut: () => sandbox.tarOut(path),
          cwd: () => start(sandbox, "folder", { cwd: path }),
        };
        for (const [name, call] of Object.entries(calls)) await rejectsWith(context, "invalid", `${name} of a path ${what}`, call);
      }
      await within(context, "ping", sandbox.ping());
      return undefined;
    },
  },
  {
    name: "input: a command without a program, with NUL or with a bad variable is invalid",
    async run(context) {
      const sandbox = await context.sandbox();
      await invalidSpawn(context, "no argv", () => sandbox.spawn({ argv: [] }));
      await invalidSpawn(context, "an empty program", () => sandbox.spawn({ argv: [""] }));
      await invalidSpawn(context, "NUL in an argument", () => start(sandbox, "print", { args: ["a\0b"] }));
      await invalidSpawn(context, "a variable's name with =", () => start(sandbox, "exit", { args: ["0"], env: { "A=B": "c" } }));
      await invalidSpawn(context, "NUL in a variable", () => start(sandbox, "exit", { args: ["0"], env: { A: "a\0b" } }));
      await invalidSpawn(context, "an invalid ref", () => start(sandbox, "exit", { args: ["0"], ref: "not a ref/../" }));
      await invalidSpawn(context, "a negative timeout", () => start(sandbox, "exit", { args: ["0"], timeoutMs: -1 }));
      await invalidSpawn(context, "a terminal without a size", () => start(sandbox, "exit", { args: ["0"], pty: { cols: 0, rows: -3 } }));
      return undefined;
    },
  },
  {
    name: "input: an unknown user is invalid or denied",
    async run(context) {
      const sandbox = await context.sandbox();
      for (const user of ["no-such-user", "-1", "1e3", "99999999999999999999"]) {
        await rejectsWith(context, ["invalid", "denied"], `spawning as ${user}`, () => start(sandbox, "user", { user }));
        await rejectsWith(context, ["invalid", "denied"], `stat as ${user}`, () => sandbox.stat("/workspace", { user }));
      }
      return undefined;
    },
  },
  {
    name: "input: file access as root is denied unless the config allows it",
    needs: "isolation",
    async run(context) {
      const sandbox = await context.create({ allowRoot: false });
      await rejectsWith(context, "denied", "stat as root", () => sandbox.stat("/workspace", { user: "root" }));
      await rejectsWith(context, "denied", "writing as root", () => sandbox.writeFile("/workspace/x", Buffer.from(""), { user: "root" }));
      return undefined;
    },
  },
  {
    name: "input: negative offsets, lengths and limits are invalid",
    async run(context) {
      const sandbox = await context.sandbox();
      const path = `${await context.folder()}/file`;
      await writeText(sandbox, path, "x");
      await rejectsWith(context, "invalid", "a negative offset", () => sandbox.readFile(path, { offset: -1 }));
      await rejectsWith(context, "invalid", "a negative length", () => sandbox.readFile(path, { length: -1 }));
      await rejectsWith(context, "invalid", "half a byte", () => sandbox.readFile(path, { offset: 0.5 }));
      await rejectsWith(context, "invalid", "no entries", () => sandbox.list("/workspace", { entriesMax: -1 }));
      await rejectsWith(context, "invalid", "an invalid mode", () => sandbox.mkdir(`${path}d`, { mode: 0o1000000 }));
      return undefined;
    },
  },
  {
    name: "input: a template that the runtime does not have is rejected",
    async run(context) {
      const reference = "/caisson/no/such/image";
      await rejectsWith(context, ["unsupported", "not_found", "invalid", "unavailable"], "a missing image", () =>
        context.create({ template: { kind: "image", reference } }),
      );
      await rejectsWith(context, ["unsupported", "not_found"], "a missing snapshot", () =>
        context.create({ template: { kind: "snapshot", id: "sn_aaaaaaaaaaaa" } }),
      );
      return undefined;
    },
  },
  {
    name: "input: a network policy that cannot be enforced is rejected",
    async run(context) {
      const capabilities = await context.runtime.capabilities();
      const open = { mode: "open" as const, rules: [], registries: [], transparent: false };
      const create = (network: NetworkPolicy) => async () =>
        context.adopt(await context.runtime.create({ ...context.configOf(), network }));
      if (!capabilities.network.includes("open")) await rejectsWith(context, "unsupported", "an open network", create(open));
      else if (!capabilities.transparentNetwork)
        await rejectsWith(context, "unsupported", "a transparent network", create({ ...open, transparent: true }));
      return undefined;
    },
  },
];

function invalidSpawn(context: ConformanceContext, what: string, call: () => Promise<unknown>): Promise<unknown> {
  return rejectsWith(context, "invalid", what, call);
}
